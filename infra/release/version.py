"""Where the version stands, and how a new one gets there. Run as a module, it prints it.

Invariant: it is the same in all these places. Pages that are made from the service's answers are
among them, so that no release has to make them anew.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NUMBER = r"\d+\.\d+\.\d+"
PLACES = {
    "layers/core/duewheel/__init__.py": r'^__version__ = "(.+)"$',
    "client/src/duewheel/version.py": r'^__version__ = "(.+)"$',
    "pyproject.toml": r'^version = "(.+)"$',
    "template.yaml": rf"^    Value: ({NUMBER})$",
    "docs/api.md": rf'(?:^user-agent: duewheel/|"version": ")({NUMBER})(?:$|"\}}$)',
    "layers/core/duewheel/interface/openapi.json": rf'"version": "({NUMBER})"',
}


def current_version(root: Path) -> str:
    found = {version for path in PLACES for version in _found(root, path)}
    if len(found) != 1:
        raise ValueError(f"the repository is of several versions: {', '.join(sorted(found))}")
    return found.pop()


def set_version(root: Path, version: str) -> None:
    for path, pattern in PLACES.items():
        text = (root / path).read_text("utf-8")
        changed = re.sub(pattern, lambda m: _with(m, version), text, flags=re.MULTILINE)
        (root / path).write_text(changed, "utf-8")


def _found(root: Path, path: str) -> list[str]:
    found = re.findall(PLACES[path], (root / path).read_text("utf-8"), re.MULTILINE)
    if not found:
        raise ValueError(f"{path} does not say its version")
    return found


def _with(match: re.Match[str], version: str) -> str:
    start, end = (place - match.start() for place in match.span(1))
    return match[0][:start] + version + match[0][end:]


if __name__ == "__main__":
    print(current_version(ROOT))
