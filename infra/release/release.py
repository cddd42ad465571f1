"""`make release VERSION=1.2.3`: writes changelog and version, builds, commits and tags. A
person pushes.

Invariant: a release ends either with the tag on a commit whose artefacts were built, or with all
its changes removed. Commits of others are never removed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
BRANCH = "main"
ORIGIN = "origin"
CHANGELOG = "CHANGELOG.md"
UNRELEASED = "Unreleased"
NUMBER = r"\d+\.\d+\.\d+"
# The files that say the version. Pages that are made from the service's answers are among them, so
# that no release has to make them anew.
PLACES = [
    "layers/core/duewheel/__init__.py",
    "client/src/duewheel/version.py",
    "pyproject.toml",
    "template.yaml",
    "docs/api.md",
    "docs/xtimer.md",
    "layers/core/duewheel/interface/openapi.json",
    "layers/core/duewheel/xtimer/openapi.json",
]
BEFORE = r'^__version__ = "|^version = "|^    Value: |^user-agent: duewheel/|"version": "'
VERSION = re.compile(rf"({BEFORE})({NUMBER})\b", re.MULTILINE)
WRITTEN = [CHANGELOG, *PLACES]

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


# ---------------------------------------------------------------- the version and the changelog


def current_version(root: Path) -> str:
    texts = [(root / path).read_text("utf-8") for path in PLACES]
    found = [{match[2] for match in VERSION.finditer(text)} for text in texts]
    if len(set().union(*found)) != 1 or not all(found):
        raise Refused(f"the files are not of one version: {dict(zip(PLACES, found, strict=True))}")
    return found[0].pop()


def set_version(root: Path, version: str) -> None:
    for path in PLACES:
        text = (root / path).read_text("utf-8")
        (root / path).write_text(VERSION.sub(rf"\g<1>{version}", text), "utf-8")


def entries(changelog: str, section: str) -> str:
    """Empty where there are headings alone, or no such section."""
    body = rf"^## \[{re.escape(section)}\].*\n((?:(?!## \[).*\n?)*)"
    found = re.search(body, changelog, re.MULTILINE)
    return found[1].strip() if found and re.search(r"^[^#\s]", found[1], re.MULTILINE) else ""


# ---------------------------------------------------------------- what is refused


def reasons_against(root: Path, version: str) -> Iterator[str]:
    """The first one is enough; what comes later takes it for granted that there was none."""
    if not re.fullmatch(NUMBER, version):
        yield f"VERSION is to be three numbers such as 1.2.3, not {version!r}"
    if git(root, "status", "--porcelain"):
        yield "the tree has changes that are not committed"
    if (branch := git(root, "branch", "--show-current")) != BRANCH:
        yield f"releases are made on {BRANCH}, not on {branch or 'no branch'}"
    if git(root, "tag", "--list", f"v{version}"):
        yield f"v{version} was released already"
    numbers, current = map(int, version.split(".")), current_version(root)
    if tuple(numbers) < tuple(map(int, current.split("."))):
        yield f"{version} is older than {current}, which the repository is of"
    changelog = (root / CHANGELOG).read_text("utf-8")
    if f"\n## [{version}] - " in changelog:
        yield f"{CHANGELOG} has a section {version} already"
    if not entries(changelog, UNRELEASED):
        yield f"{CHANGELOG} has nothing under [{UNRELEASED}]"
    if ORIGIN in git(root, "remote").splitlines():
        yield from _reasons_against_a_push(root, version)


def _reasons_against_a_push(root: Path, version: str) -> Iterator[str]:
    """Changes nothing here, where a fetch would."""
    branch, tag = f"refs/heads/{BRANCH}", f"refs/tags/v{version}"
    lines = git(root, "ls-remote", ORIGIN, branch, tag).splitlines()
    there = {name: commit for commit, name in map(str.split, lines)}
    if tag in there:
        yield f"v{version} was released already, at {ORIGIN}"
    if there.get(branch) != git(root, "rev-parse", "HEAD"):
        yield f"{BRANCH} is not as it is at {ORIGIN}: push or pull first"


# ---------------------------------------------------------------- the release


def release(root: Path, version: str, day: str) -> None:
    """Builds before the commit, from what is then committed."""
    try:
        changelog = (root / CHANGELOG).read_text("utf-8")
        heading = f"## [{UNRELEASED}]\n"
        dated = changelog.replace(heading, f"{heading}\n## [{version}] - {day}\n", 1)
        (root / CHANGELOG).write_text(dated, "utf-8")
        set_version(root, version)
        written = _state(root)
        make(root, "release-test")
        make(root, "artefacts")
        if _state(root) != written:
            raise Refused("the repository changed while it was built, and the artefacts did not")
        _record(root, version)
    except BaseException:
        git(root, "restore", "--staged", "--worktree", "--", *WRITTEN)
        raise


def make(root: Path, verb: str) -> None:
    subprocess.run(["make", verb], cwd=root, check=True)


def _state(root: Path) -> tuple[str, str]:
    return git(root, "status", "--porcelain=v2", "--branch"), git(root, "diff", "HEAD")


def _record(root: Path, version: str) -> None:
    before = git(root, "rev-parse", "HEAD")
    try:
        git(root, "add", "--", *WRITTEN)
        git(root, "commit", "--quiet", "--message", f"Release {version}", "--", *WRITTEN)
        git(root, "tag", "--annotate", f"v{version}", "--message", f"Duewheel {version}")
    except BaseException:
        git(root, "reset", "--quiet", "--soft", before)
        raise


def main(version: str, root: Path = ROOT) -> int:
    day = f"{datetime.now(UTC):%Y-%m-%d}"  # noqa: TID251 - a person's day, which nothing waits for
    try:
        if reason := next(reasons_against(root, version), None):
            raise Refused(reason)
    except (Refused, subprocess.CalledProcessError) as refusal:
        print(f"not released: {refusal}", file=sys.stderr)
        return 1
    if os.environ.get("DRY_RUN"):
        text = entries((root / CHANGELOG).read_text("utf-8"), UNRELEASED)
        print(f"v{version} would be released, of {day}, with these entries:\n\n{text}")
        return 0
    try:
        release(root, version, day)
    except (Refused, subprocess.CalledProcessError) as failure:
        print(f"not released, and nothing is left of it: {failure}", file=sys.stderr)
        return 1
    print(PUBLISH.format(version=version))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
