"""What the wheel still owes, seen whole: which seconds are worth turning to.

Invariant: a second left out holds nothing that may fire, so pointers may skip it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from duewheel.rules import addresses
from duewheel.rules.task import Status
from duewheel.stores import task_items

ATTRIBUTES = ("slot", "place", "home", "entry", "status")


@dataclass(frozen=True, slots=True)
class WheelContents:
    owed_seconds: frozenset[int]  # of named entries of pending tasks, and of all re-entries
    delivered: int

    def first_between(self, after: int, up_to: int | None) -> int | None:
        return min(
            (s for s in self.owed_seconds if s > after and (up_to is None or s <= up_to)),
            default=None,
        )


def contents_of(items: Iterable[Mapping[str, Any]]) -> WheelContents:
    seconds: set[int] = set()
    delivered = 0
    for item in items:
        place = item["place"]["S"]
        if addresses.is_key_slot(item["slot"]["S"]):
            continue
        if addresses.is_header(place) or addresses.is_lease(place):
            continue
        if task_items.is_reentry(item):
            seconds.add(task_items.address_of(item).second)
        elif item["status"]["S"] == Status.PENDING:
            seconds.add(task_items.entry_named_by(item).second)
        elif item["status"]["S"] == Status.DELIVERED:
            delivered += 1
    return WheelContents(frozenset(seconds), delivered)
