"""The next page of a list on which there is something that its reader may see.

A cursor can be read by whoever holds it, so it must name nothing that is out of their reach: it
goes on behind the last that was shown, and what follows that one is looked at once more.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def next_within_reach(
    page: Callable[[str | None], tuple[list[T], str | None]],
    reaches: Callable[[T], bool],
    after: str | None,
) -> tuple[list[T], bool]:
    """What is within reach, and whether there may be more. `page`: what follows a position, and
    the position that was come to, or None at the end."""
    while True:
        found, after = page(after)
        shown = [one for one in found if reaches(one)]
        if shown or after is None:
            return shown, after is not None
