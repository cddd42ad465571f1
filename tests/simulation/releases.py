"""Releases of the service that run side by side, as while a stack is updated.

Another release is taken from the history of this repository, under package names of its own, so
that one process runs both: its handlers, its wiring, its template.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ("api", "bulk", "ingest", "notifier", "scheduler", "sweeper")
_BEFORE = "_before"
_PARTS = ("layers/core/duewheel", "functions", "template.yaml")
_IMPORT = re.compile(r"^(\s*(?:from|import) )(duewheel|functions)\b", re.MULTILINE)


class Release(Struct, frozen=True):
    root: Path  # with its template
    core: str = "duewheel"  # the name of its package
    functions: str = "functions"

    @property
    def template(self) -> Path:
        return self.root / "template.yaml"

    def module(self, name: str) -> ModuleType:
        return import_module(f"{self.core}.{name}")

    def has(self, name: str) -> bool:
        """Whether it has this module: what only a later one has is not asked of it."""
        return find_spec(f"{self.core}.{name}") is not None

    def modules(self) -> list[ModuleType]:
        """What calls go through; the targets are stood in for as a whole."""
        return [
            module
            for name, module in sorted(sys.modules.items())
            if name.startswith(f"{self.core}.") and not name.startswith(f"{self.core}.targets")
        ]


THIS = Release(ROOT)


@cache
def handlers_of(release: Release) -> dict[str, Callable[[Any, Any], Any]]:
    """Of the functions that this release has."""
    return {
        name: import_module(f"{release.functions}.{name}.app").handler
        for name in FUNCTIONS
        if (release.root / "functions" / name).exists()
    }


def release_of(commit: str) -> Release:
    """The release of this commit. Its code stays in `build`, for the next soak."""
    name = _git("rev-parse", "--verify", f"{commit}^{{commit}}").decode().strip()
    folder = ROOT / "build/before" / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as made:
            _put_code(name, Path(made) / "code")
            (Path(made) / "code").rename(folder)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # behind this release, whose `functions` it must not hide
    return Release(folder, f"duewheel{_BEFORE}", f"functions{_BEFORE}")


def _put_code(commit: str, folder: Path) -> None:
    folder.mkdir()
    packed = _git("archive", commit, *_PARTS)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    (folder / "layers/core/duewheel").rename(folder / f"duewheel{_BEFORE}")
    for module in folder.rglob("*.py"):
        module.write_text(_IMPORT.sub(rf"\1\2{_BEFORE}", module.read_text()))
    (folder / f"functions{_BEFORE}").symlink_to("functions")  # whose name the template has


def _git(*command: str) -> bytes:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, check=True).stdout
