"""Fill a page with the items that its reader may see.

Neither the number of items nor the cursor shows what was left out: the cursor, which its holder can
read, names the last item shown, and there is one only if there is more to show.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

READ_AT_ONCE = 100


def within_reach(
    read: Callable[[str | None, int], tuple[list[T], str | None]],
    reaches: Callable[[T], bool],
    name_of: Callable[[T], str],
    after: str | None,
    limit: int,
) -> tuple[list[T], str | None]:
    """At most `limit` items, and the name of the last one if there are more. `read`: the items
    behind a position, and the position reached, or None at the end."""
    shown: list[T] = []
    while True:
        found, after = read(after, READ_AT_ONCE)
        shown += [one for one in found if reaches(one)]
        if len(shown) > limit or after is None:
            return shown[:limit], name_of(shown[limit - 1]) if len(shown) > limit else None
