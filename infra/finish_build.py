"""Finishes what `sam build` made: `python3.13 infra/finish_build.py BUILD_DIR ARCHITECTURE`.

Bytecode goes beside every source file, since AWS mounts code read-only and would compile
it at each cold start; unchecked hashes, since packaging changes the files' times. The
built template has the architecture of its wheels in place of the parameter, and a digest of its
content, so that another package makes other versions of the functions.
"""

import compileall
import hashlib
import re
import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from shutil import rmtree

_PLACES_OF_THE_DIGEST = 2  # what the functions are hashed by, and their layer


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


def settle_architecture(template: Path, architecture: str) -> None:
    """No parameter is left: one that is not named at a deployment keeps the value that the stack
    has, whatever the package was built for."""
    text = template.read_text(encoding="utf-8")
    for place, settled in (
        (r"^  Architecture:\n(?:    .*\n)+", ""),
        (r"^ +- Architecture\n", ""),  # among those that the forms of the AWS console show
        (r"- Ref: Architecture$", f"- {architecture}"),
    ):
        text, count = re.subn(place, settled, text, flags=re.MULTILINE)
        if not count:
            raise SystemExit(f"{template} does not have the parameter Architecture as expected")
    if re.search(r"\bArchitecture\b", text):
        raise SystemExit(f"{template} has the parameter Architecture where it was not expected")
    template.write_text(text, encoding="utf-8")


def digest_of(build: Path) -> str:
    """The digest of the names and contents of all deployed files, without bytecode."""
    digest = hashlib.sha256()
    for path in sorted(build.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(build).as_posix()
            digest.update(f"{name} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def settle_digest(template: Path, digest: str) -> None:
    text, count = re.subn(r"\bunbuilt\b", digest, template.read_text("utf-8"))
    if count != _PLACES_OF_THE_DIGEST:
        raise SystemExit(f"{template} has not two places for what it was built from, but {count}")
    template.write_text(text, encoding="utf-8")


def main(build: Path, architecture: str) -> None:
    if sys.version_info[:2] != (3, 13):
        raise SystemExit("bytecode is of use only to the Python that made it: run with python3.13")
    settle_digest(build / "template.yaml", digest_of(build))
    for folder in sorted(build.iterdir()):
        if folder.is_dir():
            compile_folder(folder)
    settle_architecture(build / "template.yaml", architecture)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2])
