"""Filling a page of a list from what an index names, up to its limit and its size."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from duewheel.rules.listing import PAYLOAD_BYTES_MAX

K = TypeVar("K")
V = TypeVar("V")


def filled(
    keys: Sequence[K],
    find: Callable[[K], V | None],
    payload_of: Callable[[V], str | None],
    limit: int,
) -> tuple[list[V], Sequence[K]]:
    """What the keys lead to, and the keys that were looked at for it. `find` answers None for
    what is not to be shown."""
    found: list[V] = []
    payload_bytes = 0
    for number, key in enumerate(keys, start=1):
        if (one := find(key)) is None:
            continue
        found.append(one)
        payload_bytes += len((payload_of(one) or "").encode())
        if len(found) == limit or payload_bytes > PAYLOAD_BYTES_MAX:
            return found, keys[:number]
    return found, keys
