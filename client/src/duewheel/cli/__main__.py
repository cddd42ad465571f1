"""`python -m duewheel.cli`, and the entry point `duewheel`."""

import sys


def main() -> None:
    try:
        from duewheel.cli.root import duewheel
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit(f"The command line needs {error.name}: pip install 'duewheel[cli]'")
    duewheel(prog_name="duewheel")


if __name__ == "__main__":
    main()
