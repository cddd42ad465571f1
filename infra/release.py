"""`make release VERSION=1.2.3`: changelog, version, artefacts, commit, tag. A person pushes.

Invariant: whatever stops it, either the tag stands on a commit whose artefacts were built, or the
tree is as it was.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from re import fullmatch

from infra.release_changelog import has_entries, notes, released, unreleased
from infra.release_version import NUMBER, PLACES, ROOT, current_version, set_version

BRANCH = "main"
CHANGELOG = "CHANGELOG.md"


class Refused(Exception):
    """The repository is in no state to be released."""


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=root, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def refuse_what_is_in_no_state(root: Path, version: str) -> None:
    if not fullmatch(NUMBER, version):
        raise Refused(f"VERSION is to be three numbers such as 1.2.3, not {version!r}")
    if git(root, "status", "--porcelain"):
        raise Refused("the tree has changes that are not committed")
    if (branch := git(root, "branch", "--show-current")) != BRANCH:
        raise Refused(f"releases are made on {BRANCH}, not on {branch or 'no branch'}")
    if git(root, "tag", "--list", f"v{version}"):
        raise Refused(f"v{version} was released already")
    if _numbers(version) < _numbers(current := current_version(root)):
        raise Refused(f"{version} is older than {current}, which the repository is of")
    changelog = (root / CHANGELOG).read_text("utf-8")
    if notes(changelog, version):
        raise Refused(f"{CHANGELOG} has a section {version} already")
    if not has_entries(unreleased(changelog)):
        raise Refused(f"{CHANGELOG} has nothing under [Unreleased]")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def release(root: Path, version: str, day: str) -> None:
    """The artefacts are built before the commit, from what is then committed: a build that fails
    leaves nothing behind."""
    before = git(root, "rev-parse", "HEAD")
    try:
        _write(root, version, day)
        subprocess.run(["make", "artefacts"], cwd=root, check=True)
        git(root, "commit", "--quiet", "--message", f"Release {version}", "--", *_written())
        git(root, "tag", "--annotate", f"v{version}", "--message", f"Duewheel {version}")
    except BaseException:
        git(root, "reset", "--quiet", "--soft", before)
        git(root, "restore", "--staged", "--worktree", "--", *_written())
        raise


def _write(root: Path, version: str, day: str) -> None:
    path = root / CHANGELOG
    path.write_text(released(path.read_text("utf-8"), version, day), "utf-8")
    set_version(root, version)


def _written() -> list[str]:
    return [CHANGELOG, *PLACES]


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    (version,) = arguments
    day = f"{datetime.now(UTC):%Y-%m-%d}"  # noqa: TID251 - a person's day, which nothing waits for
    try:
        refuse_what_is_in_no_state(root, version)
    except (Refused, ValueError) as refusal:
        print(f"not released: {refusal}", file=sys.stderr)
        return 1
    if os.environ.get("DRY_RUN"):
        entries = unreleased((root / CHANGELOG).read_text("utf-8"))
        print(f"v{version} would be released, of {day}, with these entries:\n\n{entries}")
        return 0
    try:
        release(root, version, day)
    except subprocess.CalledProcessError as failure:
        print(f"not released, and the tree is as it was: {failure}", file=sys.stderr)
        return 1
    print(f"v{version} is tagged; its artefacts are in build/release. To publish it:\n")
    print(f"    git push --atomic origin {BRANCH} v{version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
