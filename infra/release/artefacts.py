"""`make artefacts`: puts what a release consists of into one folder, with its checksums.

Invariant: the same inputs give the same bytes; nothing of an archive says when or by whom it was
packed.
"""

import hashlib
import sys
import zipfile
from pathlib import Path
from shutil import copyfile, rmtree

from infra.release.changelog import notes, unreleased
from infra.release.version import ROOT, current_version

ARCHITECTURES = ("arm64", "x86_64")
BILLS = ("sbom.json", "sbom-tools.json")
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest instant that a zip can say
FILE = 0o100644


def packed(folder: Path, archive: Path) -> None:
    """A built package: its template, and beside it the functions and layers that it names."""
    with zipfile.ZipFile(archive, "w") as made:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), LONG_AGO)
            info.external_attr = FILE << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(info, path.read_bytes())


def collected(build: Path, release: Path, version: str, changelog: str) -> None:
    rmtree(release, ignore_errors=True)
    release.mkdir(parents=True)
    for architecture in ARCHITECTURES:
        package = build / "package" / architecture
        packed(package, release / f"duewheel-{version}-{architecture}.zip")
    (wheel,) = (build / "wheel").glob(f"duewheel-{version}-*.whl")
    for one in (wheel, *(build / name for name in BILLS)):
        copyfile(one, release / one.name)
    text = notes(changelog, version) or unreleased(changelog)
    (release / "NOTES.md").write_text(text + "\n", "utf-8")
    (release / "SHA256SUMS").write_text(checksums(release), "utf-8")


def checksums(folder: Path) -> str:
    """As sha256sum writes them, and checks them with -c."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
    )


def main(build: Path, release: Path) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    collected(build, release, current_version(ROOT), changelog)
    print((release / "SHA256SUMS").read_text("utf-8"), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
