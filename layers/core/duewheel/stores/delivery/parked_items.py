"""Parked items: one for each parked task, in sixteen slots of the business or flow key that is
paused, by when they fell due.

An item is put before its home says that the task is parked, and deleted after the home has named
another entry. It has no TTL.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import merge
from typing import Any

from msgspec import Struct

from duewheel.fan_out import fan_out
from duewheel.rules.delivery.parked_tasks import ParkedItem
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import (
    PARKED_SLOTS,
    Address,
    address_named,
    parked_place,
    parked_slot,
    parked_slots,
)
from duewheel.stores import item_attributes
from duewheel.stores.dynamodb import Item, write_all
from duewheel.stores.item_attributes import readable_ones, reads_an_item
from duewheel.stores.tasks import codec
from duewheel.stores.tasks.tasks import TaskStore

# Tasks are spread over the slots by their ids, so twice the average of a slot, and a
# few, fill a block.
_SLOT_SPARE = 4


class ParkedBlock(Struct, frozen=True):
    """Consecutive items. `after`: where the next block begins; None at the end."""

    items: list[ParkedItem]
    after: str | None
    is_empty: bool  # no item at all, even unreadable


class ParkedStore(Struct, frozen=True):
    tasks: TaskStore
    readers: ThreadPoolExecutor

    def put(self, tasks: Sequence[Task]) -> None:
        """An existing item is the same one: its key follows from home and entry."""
        self._write([{"PutRequest": {"Item": item_of(task)}} for task in tasks])

    def block(
        self, scope: str, after: str | None, size: int, part: int | None = None
    ) -> ParkedBlock:
        """The next items, of all slots or of one, strongly consistent. The block ends where a slot
        has more than was read of it. Damaged items are reported and left out."""
        wanted, at_once = parked_slots(scope), 2 * size // PARKED_SLOTS + _SLOT_SPARE
        if part is not None:
            wanted, at_once = wanted[part : part + 1], size

        def read(slot: str) -> list[Item]:
            return self._slot_page(slot, after, at_once)

        slots = fan_out(self.readers, read, wanted)
        ends = [_place(items[-1]) for items in slots if len(items) == at_once]
        known = [
            item for item in merge(*slots, key=_place) if not ends or _place(item) <= min(ends)
        ]
        goes_on = bool(ends) or len(known) > size
        last = _place(known[:size][-1]) if goes_on else None
        return ParkedBlock(readable_ones(known[:size], _parked_item), last, not known)

    def homes(self, items: Iterable[ParkedItem]) -> dict[Address, Task | None]:
        """The homes of the items; None for those that are gone. Damaged ones are reported and left
        out."""
        wanted = [item.home for item in items]
        found = [one for one in self.tasks.items_at(wanted) if not codec.is_reentry(one)]
        there = {codec.address_of(one) for one in found}
        gone: dict[Address, Task | None] = {home: None for home in wanted if home not in there}
        return gone | {task.home: task for task in readable_ones(found, codec.task_from)}

    def delete(self, items: Sequence[ParkedItem]) -> None:
        """Each item belongs to one parking, which is over."""
        keys = [{"slot": {"S": item.slot}, "place": {"S": item.place}} for item in items]
        self._write([{"DeleteRequest": {"Key": key}} for key in keys])

    def _write(self, requests: Sequence[Any]) -> None:
        tasks = self.tasks
        what = "parked items could not be written"
        write_all(tasks.client, tasks.clock, tasks.table, requests, what)

    def _slot_page(self, slot: str, after: str | None, limit: int) -> list[Item]:
        start: dict[str, Any] = {}
        if after is not None:
            start["ExclusiveStartKey"] = {"slot": {"S": slot}, "place": {"S": after}}
        answer = self.tasks.client.query(
            TableName=self.tasks.table,
            KeyConditionExpression="slot = :slot",
            ExpressionAttributeValues={":slot": {"S": slot}},
            Limit=limit,
            ConsistentRead=True,
            **start,
        )
        return list(answer["Items"])


def item_of(task: Task) -> dict[str, Any]:
    return {**key_of(task), "task": {"S": task.home.name}}


def key_of(task: Task) -> dict[str, Any]:
    """The key of the parked item of a task, which follows from its home and entry."""
    slot = parked_slot(task.parked_scope, task.home)
    return {"slot": {"S": slot}, "place": {"S": parked_place(task.entry)}}


@reads_an_item
def home_of_parked(item: Item) -> Address:
    return item_attributes.built(
        item, "task", lambda: address_named(item_attributes.text(item, "task"))
    )


def _parked_item(item: Item) -> ParkedItem:
    return ParkedItem(item["slot"]["S"], _place(item), home_of_parked(item))


def _place(item: Item) -> str:
    return str(item["place"]["S"])
