"""Open places: slices that the sweep pointer has passed and the sweep has not finished.

The sweep never waits at a place: it notes the place, continues, and reads the place again in each
run. The list is kept with the sweep pointer and is bounded; while it is full, the pointer waits.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.wheel.addresses import Address

OPEN_PLACES_MAX = 1_000
OF_ONE_SECOND_MAX = 32  # a crowded second with more of them is looked at again from there on


class Why(StrEnum):
    """Stable words: part of the interface."""

    HELD = "held"  # a notifier works on a page, or its message was resent recently
    UNBEGUN = "unbegun"  # no notifier has begun a page, though its message was sent again
    TAKEN_APART = (
        "taken-apart"  # a page that kept failing was closed, and its tasks got new entries
    )
    CHANGED = "changed"  # a task changed while it was given a new entry
    FAILED = "failed"  # a request failed at this slice
    NOT_REACHED = "not-reached"  # this shard and all later ones of the second are not read yet
    NOT_COUNTED = "not-counted"  # all is finished; from this shard on it is not counted yet


class OpenPlace(Struct, frozen=True, kw_only=True, array_like=True):
    """A slice with something unfinished. `page` is the first such page; '' if none applies. Stored
    as a short row, since the sweep pointer is written every few seconds."""

    second: int
    shard: int
    page: str = ""
    since_ms: int
    why: Why

    def covers(self, entry: Address) -> bool:
        if entry.second != self.second or self.why is Why.NOT_COUNTED:
            return False
        is_later = self.why is Why.NOT_REACHED and entry.shard > self.shard
        return is_later or entry.shard == self.shard


def is_in_open_place(entry: Address, places: Iterable[OpenPlace]) -> bool:
    return any(place.covers(entry) for place in places)


def first_open_second(places: Iterable[OpenPlace], position: int) -> int:
    """Before this second the sweep has finished everything."""
    return min((place.second for place in places), default=position + 1)


def age_seconds(place: OpenPlace, now_ms: int) -> int:
    """0 if the place was noted by a clock that is ahead of this one."""
    return max(0, now_ms - place.since_ms) // 1000


def oldest_first(places: Iterable[OpenPlace]) -> list[OpenPlace]:
    return sorted(places, key=lambda place: (place.since_ms, place.second, place.shard))


class OpenPlaces:
    """The list as a sweeper works on it: one place for a slice, `since_ms` of its first look."""

    def __init__(self, places: Iterable[OpenPlace] = ()) -> None:
        self._places = {(place.second, place.shard): place for place in places}
        self._of: dict[int, set[int]] = {}
        for second, shard in self._places:
            self._of.setdefault(second, set()).add(shard)

    def __iter__(self) -> Iterator[OpenPlace]:
        """The oldest second first."""
        return (self._places[key] for key in sorted(self._places))

    def __len__(self) -> int:
        return len(self._places)

    @property
    def has_room(self) -> bool:
        """Whether there is room for another second, even if all its slices are open."""
        return len(self) + OF_ONE_SECOND_MAX < OPEN_PLACES_MAX

    @property
    def seconds(self) -> frozenset[int]:
        return frozenset(self._of)

    def of(self, second: int) -> list[OpenPlace]:
        return [self._places[second, shard] for shard in sorted(self._of.get(second, ()))]

    def at(self, second: int, shard: int) -> OpenPlace | None:
        return self._places.get((second, shard))

    def covers(self, entry: Address) -> bool:
        return is_in_open_place(entry, self.of(entry.second))

    def note(self, place: OpenPlace) -> None:
        noted = self.at(place.second, place.shard)
        if noted is not None:
            place = replace(place, since_ms=noted.since_ms)
        self._places[place.second, place.shard] = place
        self._of.setdefault(place.second, set()).add(place.shard)

    def close(self, second: int, shard: int) -> None:
        if self._places.pop((second, shard), None) is not None:
            self._of[second].discard(shard)
            if not self._of[second]:
                del self._of[second]
