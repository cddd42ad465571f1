"""The contents of the whole wheel: the seconds to which the clock has to be moved.

Invariant: a second that is not owed has nothing that may fire, so the time pointer may skip it; one
that is not occupied has no task at all, so the sweep pointer may skip it. A slot is replaced as a
whole, so a change costs what its slot has, however many others there are.
"""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel import addresses
from duewheel.stores.tasks import codec

ATTRIBUTES = ("slot", "place", "home", "entry", "status")

Items = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Slot:
    """What the items of one slot contribute."""

    owed: frozenset[int] = frozenset()
    homes: frozenset[int] = frozenset()
    delivered: int = 0
    first_ms: Mapping[int, int] = field(default_factory=dict)  # of each second of its slices


class _Seconds:
    """Seconds in order, each with how many slots have it."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._sorted: list[int] = []

    def __iter__(self) -> Iterator[int]:
        return iter(self._sorted)

    def add(self, seconds: Iterable[int]) -> None:
        for second in seconds:
            self._counts[second] += 1
            if self._counts[second] == 1:
                insort(self._sorted, second)

    def remove(self, seconds: Iterable[int]) -> None:
        for second in seconds:
            self._counts[second] -= 1
            if not self._counts[second]:
                del self._counts[second]
                del self._sorted[bisect_right(self._sorted, second) - 1]

    def first_after(self, second: int) -> int | None:
        index = bisect_right(self._sorted, second)
        return self._sorted[index] if index < len(self._sorted) else None


class WheelContents:
    def __init__(self) -> None:
        self._slots: dict[str, _Slot] = {}
        self._owed = _Seconds()  # of named entries of pending tasks, and of all re-entries
        self._occupied = _Seconds()  # these, and those of all homes
        self._first_ms: dict[int, dict[str, int]] = {}  # of each second, by slot
        self.delivered = 0

    @property
    def owed(self) -> frozenset[int]:
        return frozenset(self._owed)

    def first_owed_after(self, second: int) -> int | None:
        return self._owed.first_after(second)

    def first_occupied_between(self, after: int, up_to: int) -> int | None:
        found = self._occupied.first_after(after)
        return found if found is not None and found <= up_to else None

    def first_ms(self, second: int) -> int:
        """Of the entries that the slices of the second hold; its beginning if there are none."""
        return min(self._first_ms.get(second, {}).values(), default=second * 1000)

    def replace(self, slot: str, items: Items) -> None:
        before, after = self._slots.pop(slot, _Slot()), _slot_of(items)
        self._owed.remove(before.owed - after.owed)
        self._owed.add(after.owed - before.owed)
        occupied_before, occupied = before.owed | before.homes, after.owed | after.homes
        self._occupied.remove(occupied_before - occupied)
        self._occupied.add(occupied - occupied_before)
        self.delivered += after.delivered - before.delivered
        for second in before.first_ms:
            del self._first_ms[second][slot]
            if not self._first_ms[second]:
                del self._first_ms[second]
        for second, instant_ms in after.first_ms.items():
            self._first_ms.setdefault(second, {})[slot] = instant_ms
        if after != _Slot():
            self._slots[slot] = after


def contents_of(items: Items) -> WheelContents:
    by_slot: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        by_slot.setdefault(item["slot"]["S"], []).append(item)
    contents = WheelContents()
    for slot, of_slot in by_slot.items():
        contents.replace(slot, of_slot)
    return contents


def _slot_of(items: Items) -> _Slot:
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
    return _Slot(frozenset(owed), frozenset(homes), delivered, first_ms)
