"""A page of what its reader may see of a list, as full as it can be.

Neither the number on a page nor its cursor tells of what is left out: a cursor, which whoever holds
it can read, names the last that was shown, and there is one only if there is more to be shown.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

READ_AT_ONCE = 100


def within_reach(
    read: Callable[[str | None, int], tuple[list[T], str | None]],
    reaches: Callable[[T], bool],
    after: str | None,
    limit: int,
) -> tuple[list[T], bool]:
    """At most `limit` of them, and whether there are more. `read`: so many of those that follow a
    position, and the position that was come to, or None at the end."""
    shown: list[T] = []
    while True:
        found, after = read(after, READ_AT_ONCE)
        shown += [one for one in found if reaches(one)]
        if len(shown) > limit or after is None:
            return shown[:limit], len(shown) > limit
