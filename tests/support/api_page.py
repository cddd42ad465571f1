"""docs/api.md as the tests read it: its tables and its examples."""

import re
from itertools import takewhile

from docs.examples.make import PAGE
from docs.examples.page import examples_in

TEXT = PAGE.read_text("utf-8")
EXAMPLES = examples_in(TEXT)


def first_table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, its own head left out."""
    under = TEXT.partition(f"\n## {heading}\n")[2].splitlines()
    start = next(number for number, line in enumerate(under) if line.startswith("|"))
    rows = takewhile(lambda line: line.startswith("|"), under[start + 2 :])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def in_ticks(cell: str) -> str:
    found = re.match(r"`([^`]+)`", cell)
    assert found, f"nothing in ticks begins {cell!r}"
    return found[1]
