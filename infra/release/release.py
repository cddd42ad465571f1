"""`make release VERSION=1.2.3`: changelog, version, golden files, artefacts, commit, tag. A person
pushes.

Invariant: whatever stops it, either the tag stands on a commit whose artefacts were built, or
nothing is left of what it wrote, and a commit of somebody else's stays.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from re import fullmatch

from infra.release.changelog import has_entries, notes, released, unreleased
from infra.release.version import NUMBER, PLACES, ROOT, current_version, set_version

BRANCH = "main"
ORIGIN = "origin"
CHANGELOG = "CHANGELOG.md"
GOLDEN = "tests/upgrade/previous"

PUBLISH = f"""v{{version}} is tagged; its artefacts are in build/release. To publish it:

    git push --atomic {ORIGIN} {BRANCH} v{{version}}

Should {ORIGIN} refuse it, since {BRANCH} has moved on there, undo the release, pull, and make it
anew:

    git reset --keep v{{version}}~
    git tag --delete v{{version}}"""


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
    refuse_what_could_not_be_pushed(root, version)


def refuse_what_could_not_be_pushed(root: Path, version: str) -> None:
    """It changes nothing here, where a fetch would."""
    if ORIGIN not in git(root, "remote").splitlines():
        return
    branch, tag = f"refs/heads/{BRANCH}", f"refs/tags/v{version}"
    lines = git(root, "ls-remote", ORIGIN, branch, tag).splitlines()
    there = {name: commit for commit, name in map(str.split, lines)}
    if tag in there:
        raise Refused(f"v{version} was released already, at {ORIGIN}")
    if there.get(branch) != git(root, "rev-parse", "HEAD"):
        raise Refused(f"{BRANCH} is not as it is at {ORIGIN}: push or pull first")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def release(root: Path, version: str, day: str) -> None:
    """The artefacts are built before the commit, from what is then committed: a build that fails
    leaves nothing behind."""
    try:
        _write(root, version, day)
        make(root, "golden")
        written = _state(root)
        make(root, "release-test")
        make(root, "artefacts")
        if _state(root) != written:
            raise Refused("the repository changed while it was built, and the artefacts did not")
    except BaseException:
        _take_back(root)
        raise
    _record(root, version)


def make(root: Path, verb: str) -> None:
    subprocess.run(["make", verb], cwd=root, check=True)


def _state(root: Path) -> tuple[str, ...]:
    asked = (
        ["rev-parse", "HEAD"],
        ["branch", "--show-current"],
        ["status", "-s"],
        ["diff", "HEAD"],
    )
    return tuple(git(root, *question) for question in asked)


def _record(root: Path, version: str) -> None:
    before = git(root, "rev-parse", "HEAD")
    try:
        git(root, "add", "--", *_written())
        git(root, "commit", "--quiet", "--message", f"Release {version}", "--", *_written())
        git(root, "tag", "--annotate", f"v{version}", "--message", f"Duewheel {version}")
    except BaseException:
        git(root, "reset", "--quiet", "--soft", before)
        _take_back(root)
        raise


def _take_back(root: Path) -> None:
    git(root, "restore", "--staged", "--worktree", "--", *_written())
    git(root, "clean", "--quiet", "--force", "-d", "--", GOLDEN)


def _write(root: Path, version: str, day: str) -> None:
    path = root / CHANGELOG
    path.write_text(released(path.read_text("utf-8"), version, day), "utf-8")
    set_version(root, version)


def _written() -> list[str]:
    return [CHANGELOG, *PLACES, GOLDEN]


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    (version,) = arguments
    day = f"{datetime.now(UTC):%Y-%m-%d}"  # noqa: TID251 - a person's day, which nothing waits for
    try:
        refuse_what_is_in_no_state(root, version)
    except (Refused, ValueError, subprocess.CalledProcessError) as refusal:
        print(f"not released: {refusal}", file=sys.stderr)
        return 1
    if os.environ.get("DRY_RUN"):
        entries = unreleased((root / CHANGELOG).read_text("utf-8"))
        print(f"v{version} would be released, of {day}, with these entries:\n\n{entries}")
        return 0
    try:
        release(root, version, day)
    except (Refused, subprocess.CalledProcessError) as failure:
        print(f"not released, and nothing is left of it: {failure}", file=sys.stderr)
        return 1
    print(PUBLISH.format(version=version))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
