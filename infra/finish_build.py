"""Finishes what `sam build` made: `python3.13 infra/finish_build.py BUILD_DIR ARCHITECTURE`.

Bytecode goes beside every source file, since AWS mounts code read-only and would compile
it at each cold start; unchecked hashes, since packaging changes the files' times. The
built template takes no other Architecture than the one whose wheels it holds.
"""

import compileall
import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from shutil import rmtree


def compile_folder(folder: Path) -> None:
    for foreign in list(folder.rglob("__pycache__")):
        rmtree(foreign)
    mounted_at = "/opt" if (folder / "python").is_dir() else "/var/task"
    if not compileall.compile_dir(
        folder,
        maxlevels=100,
        quiet=1,
        stripdir=str(folder),
        prependdir=mounted_at,
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    ):
        raise SystemExit(f"not everything in {folder} compiles")


def pin_architecture(template: Path, architecture: str) -> None:
    text = template.read_text(encoding="utf-8")
    choice = "    Default: arm64\n    AllowedValues:\n    - arm64\n    - x86_64\n"
    if text.count(choice) != 1:
        raise SystemExit(f"{template} has no parameter Architecture as expected")
    pinned = f"    Default: {architecture}\n    AllowedValues:\n    - {architecture}\n"
    template.write_text(text.replace(choice, pinned), encoding="utf-8")


def main(build: Path, architecture: str) -> None:
    if sys.version_info[:2] != (3, 13):
        raise SystemExit("bytecode is of use only to the Python that made it: run with python3.13")
    for folder in sorted(build.iterdir()):
        if folder.is_dir():
            compile_folder(folder)
    pin_architecture(build / "template.yaml", architecture)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2])
