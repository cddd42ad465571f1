"""`make artefacts`: puts what a release consists of into one folder, with its checksums.

Invariant: the same inputs give the same bytes; an archive does not contain when or by whom it was
packed.
"""

import hashlib
import sys
import zipfile
from pathlib import Path
from shutil import copyfile, rmtree

from infra.release.release import CHANGELOG, ROOT, UNRELEASED, current_version, entries

ARCHITECTURES = ("arm64", "x86_64")
BILLS = ("sbom.json", "sbom-tools.json")
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest instant that a zip can say
FILE = 0o100644


def pack(folder: Path, archive: Path) -> None:
    """A built package: its template, and beside it the functions and layers that it names."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), LONG_AGO)
            info.external_attr = FILE << 16
            made.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)


def collect(build: Path, release: Path, version: str, changelog: str) -> None:
    rmtree(release, ignore_errors=True)
    release.mkdir(parents=True)
    for architecture in ARCHITECTURES:
        archive = release / f"duewheel-{version}-{architecture}.zip"
        pack(build / "package" / architecture, archive)
    (wheel,) = (build / "wheel").glob(f"duewheel-{version}-*.whl")
    for one in (wheel, *(build / name for name in BILLS)):
        copyfile(one, release / one.name)
    notes = entries(changelog, version) or entries(changelog, UNRELEASED)
    (release / "NOTES.md").write_text(notes + "\n", "utf-8")
    sums = [  # as sha256sum writes them, and checks them with -c
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(release.iterdir())
    ]
    (release / "SHA256SUMS").write_text("".join(sums), "utf-8")


if __name__ == "__main__":
    collect(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        current_version(ROOT),
        (ROOT / CHANGELOG).read_text("utf-8"),
    )
    print((Path(sys.argv[2]) / "SHA256SUMS").read_text("utf-8"), end="")
