"""The pages of the documentation and their blocks of code."""

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("client/*.md"),
    )
)

_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_INDENT = "    "


@dataclass(frozen=True)
class Block:
    """A fenced block, between its fences."""

    language: str
    text: str
    line: int
    section: str


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def fenced(text: str) -> list[Block]:
    headings = _headings(text)
    return [
        Block(
            language=found[1],
            text=found[2],
            line=text.count("\n", 0, found.start(2)) + 1,
            section=next((title for at, title in reversed(headings) if at < found.start()), ""),
        )
        for found in _FENCE.finditer(text)
    ]


def indented(text: str) -> list[str]:
    """Indented blocks, each after an empty line: commands that the tests cannot run."""
    blocks: list[str] = []
    before = ""
    for is_in, run in groupby(_unfenced(text).splitlines(), lambda line: line.startswith(_INDENT)):
        lines = list(run)
        if is_in and not before.strip():
            blocks.append("\n".join(line.removeprefix(_INDENT) for line in lines))
        before = lines[-1]
    return blocks


def _headings(text: str) -> list[tuple[int, str]]:
    inside = [found.span() for found in _FENCE.finditer(text)]
    return [
        (found.start(), found[0])
        for found in _HEADING.finditer(text)
        if not any(start < found.start() < end for start, end in inside)
    ]


def _unfenced(text: str) -> str:
    return _FENCE.sub("", text)
