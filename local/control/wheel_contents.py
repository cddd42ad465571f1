"""The contents of the whole wheel: the seconds to which the clock has to be moved.

Invariant: a second that is not in `owed` has nothing that may fire, so the time pointer may skip
it; one that is not in `occupied` has no task at all, so the sweep pointer may skip it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel import addresses
from duewheel.stores.tasks import codec

ATTRIBUTES = ("slot", "place", "home", "entry", "status")


@dataclass(frozen=True, slots=True)
class WheelContents:
    owed: frozenset[int]  # seconds of named entries of pending tasks, and of all re-entries
    occupied: frozenset[int]  # these, and those of all homes
    delivered: int
    first_ms: Mapping[int, int]  # of each second, of the entries that its slices hold

    def first_owed_after(self, second: int) -> int | None:
        return min((s for s in self.owed if s > second), default=None)

    def first_occupied_between(self, after: int, up_to: int) -> int | None:
        return min((s for s in self.occupied if after < s <= up_to), default=None)


def contents_of(items: Iterable[Mapping[str, Any]]) -> WheelContents:
    owed: set[int] = set()
    homes: set[int] = set()
    delivered = 0
    first_ms: dict[int, int] = {}
    for item in items:
        place = item["place"]["S"]
        if not addresses.holds_seconds(item["slot"]["S"]):
            continue
        if addresses.is_header(place) or addresses.is_lease(place):
            continue
        try:
            instant_ms = addresses.instant_of_place(place)
        except ValueError:
            continue  # a place of no second, which no range of a second contains
        if not addresses.is_direct(place):
            second = instant_ms // 1000
            first_ms[second] = min(instant_ms, first_ms.get(second, instant_ms))
        try:
            second = codec.address_of(item).second
            if codec.is_reentry(item):
                owed.add(second)
                continue
            homes.add(second)
            status, entry = codec.status_of(item), codec.entry_named_by(item)
        except UnreadableItem:
            continue  # it is not used, but its reader reports it
        if status is Status.PENDING:
            owed.add(entry.second)
        delivered += status is Status.DELIVERED
    return WheelContents(frozenset(owed), frozenset(owed | homes), delivered, first_ms)
