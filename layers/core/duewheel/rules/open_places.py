"""Open places: what the sweep pointer has passed and the sweep has not finished.

The sweep never waits at a place: it notes it here and goes on, and looks at it again in each run.
The list is kept with the sweep pointer and is bounded; while it is full, the pointer waits.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from duewheel.rules.addresses import Address

OPEN_PLACES_MAX = 1_000


class Why(StrEnum):
    """Stable words: part of the interface."""

    HELD = "held"  # a notifier works on a page, or its message was sent again lately
    UNBEGUN = "unbegun"  # no notifier has begun a page, though its message was sent again
    TAKEN_APART = "taken-apart"  # a page that kept failing was closed, and its tasks entered anew
    CHANGED = "changed"  # a task changed while it was given a new entry
    FAILED = "failed"  # a request failed at this slice
    NEWER = "newer-release"  # an item was written by a newer release, which is waited for
    NOT_REACHED = "not-reached"  # this shard and all later ones of the second are yet to be read

    @classmethod
    def _missing_(cls, value: object) -> "Why":
        """A word of a newer release: the slice is unfinished, whatever it means."""
        return cls.FAILED


class OpenPlace(Struct, frozen=True, kw_only=True):
    """A slice with something unfinished. `page` is the first such page; '' where none applies."""

    second: int
    shard: int
    page: str = ""
    since_ms: int
    why: Why

    def covers(self, entry: Address) -> bool:
        if entry.second != self.second:
            return False
        is_later = self.why is Why.NOT_REACHED and entry.shard > self.shard
        return is_later or entry.shard == self.shard


def is_in_open_place(entry: Address, places: Iterable[OpenPlace]) -> bool:
    return any(place.covers(entry) for place in places)


def first_open_second(places: Iterable[OpenPlace], position: int) -> int:
    """Before this second the sweep has finished everything."""
    return min((place.second for place in places), default=position + 1)


def age_seconds(place: OpenPlace, now_ms: int) -> int:
    """0 for a place that a clock ahead of this one has noted."""
    return max(0, now_ms - place.since_ms) // 1000


def oldest_first(places: Iterable[OpenPlace]) -> list[OpenPlace]:
    return sorted(places, key=lambda place: (place.since_ms, place.second, place.shard))
