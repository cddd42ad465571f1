"""Reads of the audit: whole items, page by page.

The audit only reads. A page is eventually consistent; the items that its tasks rest on are read
strongly consistent.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep.audit import AuditedTask, Pointing, Position
from duewheel.rules.sweep.verdict import Reentry
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.addresses import Address
from duewheel.stores import item_attributes
from duewheel.stores.businesses.parking_state import ParkingRecords
from duewheel.stores.delivery.page_leases import lease_from
from duewheel.stores.delivery.parked_items import home_of_parked
from duewheel.stores.delivery.parked_items import key_of as parked_item_key
from duewheel.stores.dynamodb import Item, get_batch
from duewheel.stores.item_attributes import readable
from duewheel.stores.sweep.slices import shards_from
from duewheel.stores.tasks import codec, keys
from duewheel.stores.tasks.tasks import TaskStore


class AuditPage(Struct, kw_only=True):
    """The items of one read of a slice."""

    following: Position
    items: int = 0
    tasks: list[AuditedTask] = field(default_factory=list)
    entries: dict[Address, Reentry] = field(default_factory=dict)
    damaged: list[UnreadableItem] = field(default_factory=list)


class AuditStore(Struct, frozen=True):
    tasks: TaskStore
    parking_records: ParkingRecords

    def page(self, position: Position, items_max: int) -> AuditPage:
        low, high = addresses.second_range(position.second)
        slot = addresses.slot(position.second, position.shard, self.tasks.buckets)
        start: dict[str, Any] = {}
        if position.after is not None:
            start["ExclusiveStartKey"] = {"slot": {"S": slot}, "place": {"S": position.after}}
        answer = self.tasks.client.query(
            TableName=self.tasks.table,
            KeyConditionExpression="slot = :slot AND place BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":slot": {"S": slot},
                ":low": {"S": low},
                ":high": {"S": high},
            },
            Limit=items_max,
            **start,
        )
        page = AuditPage(following=position, items=len(answer["Items"]))
        shards = position.shards
        for item in answer["Items"]:
            try:
                shards = _add(page, item) or shards
            except UnreadableItem as damaged:
                page.damaged.append(damaged)
                if addresses.is_header(damaged.place):
                    shards = addresses.SHARDS_MAX
        last = answer.get("LastEvaluatedKey")
        page.following = _following(position, shards, last)
        return page

    def tasks_at(self, homes: Iterable[Address]) -> tuple[list[AuditedTask], list[UnreadableItem]]:
        items = self.tasks.items_at(homes)
        return readable([i for i in items if not codec.is_reentry(i)], _audited)

    def resting_on(self, audited: Iterable[AuditedTask]) -> list[AuditedTask]:
        """The same with all items that they depend on, as far as these can be read."""
        audited = list(audited)
        live = [one.task for one in audited if one.task.is_live]
        entries = self._pointing(
            [codec.key(t.entry, self.tasks.buckets) for t in live if not t.names_its_home],
            _pointing_entry,
        )
        kept_keys = self._pointing(
            [keys.key_of(t) for t in live if t.key is not None], _pointing_key
        )
        parked = [task for task in live if task.parked]
        parked_items = self._pointing(list(map(parked_item_key, parked)), _pointing_parked)
        known = self.parking_records.known_of(task.parked_scope for task in parked)
        return [
            replace(
                one,
                parked=parked_items.get(_name(parked_item_key(one.task))),
                is_to_be_released=one.task.parked_scope in known,
                entry=entries.get(_name(codec.key(one.task.entry, self.tasks.buckets))),
                key=kept_keys.get(_name(keys.key_of(one.task))) if one.task.key else None,
            )
            for one in audited
        ]

    def name_of(self, entry: Address) -> str:
        return " ".join(_name(codec.key(entry, self.tasks.buckets)))

    def address_of(self, damaged: UnreadableItem) -> Address:
        return addresses.address_from(addresses.shard_of(damaged.slot), damaged.place)

    def still_unreadable(self, damaged: Iterable[UnreadableItem]) -> list[UnreadableItem]:
        """In the order of their places."""
        wanted = [{"slot": {"S": one.slot}, "place": {"S": one.place}} for one in damaged]
        _, unreadable = readable(
            self._items(wanted), partial(_add, AuditPage(following=Position(0)))
        )
        return sorted(unreadable, key=lambda one: (one.place, one.slot))

    def _pointing(self, wanted: list[Any], read: Any) -> dict[tuple[str, str], Pointing]:
        found, _ = readable(self._items(wanted), lambda item: (_name(item), read(item)))
        return dict(found)

    def _items(self, wanted: list[Any]) -> list[Item]:
        each_once = list({_name(key): key for key in wanted}.values())  # BatchGetItem needs it
        return get_batch(self.tasks.client, self.tasks.clock, self.tasks.table, each_once)


def _add(page: AuditPage, item: Item) -> int | None:
    """Sort the item into the page; return the number of shards if it is a header."""
    place = item["place"]["S"]
    if addresses.is_header(place):
        return shards_from(item)
    if addresses.is_lease(place):
        lease_from(item)
    elif codec.is_reentry(item):
        page.entries[codec.address_of(item)] = codec.reentry_from(item)
    else:
        page.tasks.append(_audited(item))
    return None


def _following(position: Position, shards: int, last: Any) -> Position:
    if last is not None:
        return replace(position, shards=shards, after=last["place"]["S"])
    if position.shard + 1 < shards:
        return Position(position.second, position.shard + 1, shards)
    return Position(position.second + 1)


def _audited(item: Item) -> AuditedTask:
    partition = item["biz_part"].get("S") if "biz_part" in item else None
    return AuditedTask(codec.task_from(item), partition)


def _pointing_entry(item: Item) -> Pointing:
    if not codec.is_reentry(item):
        raise item_attributes.unreadable(item, "home")
    return Pointing(codec.reentry_from(item).home, "expires_at" in item)


def _pointing_parked(item: Item) -> Pointing:
    return Pointing(home_of_parked(item), "expires_at" in item)


def _pointing_key(item: Item) -> Pointing:
    return Pointing(keys.home_named_by(item), "expires_at" in item)


def _name(item: Item) -> tuple[str, str]:
    return item["slot"]["S"], item["place"]["S"]
