"""What the changelog says is not released yet, and what it says once it is. Pure."""

import re

UNRELEASED = "## [Unreleased]\n"
_SECTION = re.compile(r"^## \[", re.MULTILINE)


def unreleased(changelog: str) -> str:
    """Everything between its heading and the next version's."""
    _, heading, after = changelog.partition(UNRELEASED)
    if not heading:
        raise ValueError("CHANGELOG.md has no section [Unreleased]")
    following = _SECTION.search(after)
    return after[: following.start() if following else len(after)].strip()


def has_entries(section: str) -> bool:
    """Headings alone are none."""
    return any(line and not line.startswith("#") for line in section.splitlines())


def released(changelog: str, version: str, day: str) -> str:
    """With an empty section for what comes next above it."""
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {day}\n", 1)


def notes(changelog: str, version: str) -> str:
    """The section of a version; empty where it has none."""
    _, heading, after = changelog.partition(f"## [{version}] - ")
    if not heading:
        return ""
    body = after.partition("\n")[2]
    following = _SECTION.search(body)
    return body[: following.start() if following else len(body)].strip()
