"""Keys: the callers' own names for live tasks, one item each beside the tasks.

A key item names a home. It has no TTL while that task is pending, gets the task's when the task is
settled, and may then be taken by another task. A notifier that crashes between the two writes
leaves a key without a TTL. The sweep reads every task once after its end, and releases the key.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from heapq import merge
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field

from duewheel.fan_out import fan_out
from duewheel.log import logger, report_unreadable
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep.verdict import HomeState
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.addresses import Address, address_named
from duewheel.stores import item_attributes
from duewheel.stores.dynamodb import (
    Item,
    Throttled,
    Written,
    as_read,
    get_batch,
    transact,
    write_if,
)
from duewheel.stores.item_attributes import readable_ones, reads_an_item
from duewheel.stores.tasks import codec
from duewheel.stores.tasks.tasks import TaskStore

# Keys are spread over the slots by their hash, so twice the average of a slot, and a few, fill a
# page.
_SLOT_SPARE = 4

_SETTLED = "attribute_not_exists(place) OR #status <> :pending"


class NamedKey(Struct, frozen=True):
    """A key item as it was read, and the home that it names."""

    item: Item
    home: Address

    @property
    def is_claim(self) -> bool:
        """Of a key whose task is absent: whether the task is about to be put, or its creator has
        crashed. The key of a task that has ended and is gone expires as well."""
        return "expires_at" not in self.item


class Taken(Enum):
    YES = "the key names the task, which is stored"
    LOST = "another writer was first"
    BURIED = "the home was buried, and the task needs another place"


class KeyStore(Struct, frozen=True):
    tasks: TaskStore
    readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8))

    def read(self, biz_type: str, key: str) -> NamedKey | None:
        """The key as it is, strongly consistent. Raises UnreadableItem, and reports it, if the key
        item is damaged."""
        answer = self.tasks.client.get_item(
            TableName=self.tasks.table, Key=key_named(biz_type, key), ConsistentRead=True
        )
        item = answer.get("Item")
        try:
            return NamedKey(item, home_named_by(item)) if item else None
        except UnreadableItem as damaged:
            report_unreadable(damaged)
            raise

    def take(self, task: Task, key: NamedKey | None, *, is_absent: bool) -> Taken:
        """Claim the key for the task, and put the task. `key` is as it was read before the home
        that it names, which had ended, or was absent."""
        if key is not None and is_absent and not self.tasks.bury(key.home):
            return Taken.LOST
        if not self._claim(task, key):
            return Taken.LOST
        if not self.tasks.create_unburied(task):
            return Taken.BURIED
        return Taken.YES

    def _claim(self, task: Task, key: NamedKey | None) -> bool:
        claim = item_of(task)
        result = write_if(
            self.tasks.client.put_item,
            TableName=self.tasks.table,
            Item=claim,
            **as_read(key.item if key is not None else None),
        )
        # Refused, it may still be ours: an earlier try of the same write.
        return isinstance(result, Written) or (result.item or {}).get("task") == claim["task"]

    def redrive(self, before: Task, after: Task, buried: Address | None = None) -> bool:
        """Make a dead task live again, if its key names it, or nothing, or a home that was
        `buried`. Key and task change in one transaction, so a claim that was begun before fails."""
        key_update = {
            "TableName": self.tasks.table,
            "Key": key_of(before),
            "UpdateExpression": "SET #task = :home, redrives = :redrives REMOVE expires_at",
            "ConditionExpression": "attribute_not_exists(place) OR #task IN (:home, :buried)",
            "ExpressionAttributeNames": {"#task": "task"},
            "ExpressionAttributeValues": {
                ":home": {"S": before.home.name},
                ":buried": {"S": (buried or before.home).name},
                ":redrives": {"N": str(after.redrives)},
            },
        }
        home_update = self.tasks.update_request(before, after)
        return transact(self.tasks.client, [{"Update": home_update}, {"Update": key_update}])

    def release(self, tasks: Sequence[Task]) -> None:
        """Let the keys of settled tasks expire with them. A key that names another task, or a task
        that was redriven since, is left alone. A failed write is left to the sweep."""
        keyed = [task for task in tasks if task.key is not None]
        for number, task in enumerate(keyed):
            try:
                release(self.tasks, key_of(task), task.home, task.redrives, task.expires_at)
            except (ClientError, BotoCoreError, Throttled) as error:
                logger.warning(
                    "keys left to the sweep",
                    action="keys-not-released",
                    task_ids=[one.task_id for one in keyed[number:]],
                    error=str(error),
                )
                return  # each further one would take as long

    def with_prefix(
        self, biz_type: str, prefix: str, after: str | None, limit: int
    ) -> tuple[list[tuple[str, Address | None]], bool]:
        """Keys in order with the homes that they name, and whether there may be more. The list ends
        where a slot has more than was read of it, so it may be shorter than `limit`. The key of a
        task that has ended names no home, nor does a damaged key item, which is reported."""
        at_once = min(limit + 1, 2 * limit // addresses.KEY_SLOTS + _SLOT_SPARE)

        def read(slot: str) -> list[tuple[str, Address | None]]:
            return self._slot_page(slot, prefix, after, at_once)

        slots = fan_out(self.readers, read, addresses.key_slots(biz_type))
        ends = [keys[-1][0] for keys in slots if len(keys) == at_once]
        known = [named for named in merge(*slots) if not ends or named[0] <= min(ends)]
        return known[:limit], bool(ends) or len(known) > limit

    def _slot_page(
        self, slot: str, prefix: str, after: str | None, limit: int
    ) -> list[tuple[str, Address | None]]:
        arguments: dict[str, Any] = {}
        if after is not None:
            arguments["ExclusiveStartKey"] = {"slot": {"S": slot}, "place": {"S": after}}
        answer = self.tasks.client.query(
            TableName=self.tasks.table,
            KeyConditionExpression="slot = :slot AND begins_with(place, :prefix)",
            ExpressionAttributeValues={":slot": {"S": slot}, ":prefix": {"S": prefix}},
            Limit=limit,
            ConsistentRead=True,
            **arguments,
        )
        return [
            (item["place"]["S"], None if "expires_at" in item else _home_if_readable(item))
            for item in answer["Items"]
        ]

    def check_settled(self, home: Address) -> dict[str, Any]:
        """Of a transaction that lets a key name another task than this."""
        return {
            "ConditionCheck": {
                "TableName": self.tasks.table,
                "Key": codec.key(home, self.tasks.buckets),
                "ConditionExpression": _SETTLED,
                "ExpressionAttributeNames": {"#status": "status"},
                "ExpressionAttributeValues": {":pending": {"S": "pending"}},
            }
        }


def release(
    tasks: TaskStore, key: dict[str, Any], home: Address, redrives: int, expires_at: int | None
) -> None:
    """Let the key expire, if it still names this home and the task was not redriven since."""
    write_if(
        tasks.client.update_item,
        TableName=tasks.table,
        Key=key,
        UpdateExpression="SET expires_at = :expires_at",
        ConditionExpression="#task = :home AND redrives = :redrives",
        ExpressionAttributeNames={"#task": "task"},
        ExpressionAttributeValues={
            ":expires_at": {"N": str(expires_at)},
            ":home": {"S": home.name},
            ":redrives": {"N": str(redrives)},
        },
    )


@reads_an_item
def home_named_by(item: Item) -> Address:
    return item_attributes.built(
        item, "task", lambda: address_named(item_attributes.text(item, "task"))
    )


def _home_if_readable(item: Item) -> Address | None:
    return next(iter(readable_ones([item], home_named_by)), None)


def item_of(task: Task) -> dict[str, Any]:
    """The attributes by which its key names a live task."""
    return {
        **key_of(task),
        "task": {"S": task.home.name},
        "redrives": {"N": str(task.redrives)},
    }


def key_of(task: Task) -> dict[str, Any]:
    return key_named(task.biz_type, str(task.key))


def key_named(biz_type: str, key: str) -> dict[str, Any]:
    return {"slot": {"S": addresses.key_slot(biz_type, key)}, "place": {"S": key}}


class LeftKeys(Struct, frozen=True):
    tasks: TaskStore

    def release(self, homes: Iterable[HomeState], second: int) -> None:
        """Of tasks that ended on an entry of this second, which are `homes` or some of them. The
        keys are read eventually consistent: the sweep comes long after the end. A damaged task
        without a TTL gives its key none."""
        ended: dict[tuple[str, str], list[HomeState]] = defaultdict(list)
        for home in homes:
            is_ended = home.status is not Status.PENDING and home.entry.second == second
            if is_ended and home.key is not None and home.expires_at is not None:
                ended[_name(key_named(home.biz_type, home.key))].append(home)
        keys = [{"slot": {"S": slot}, "place": {"S": place}} for slot, place in ended]
        table = self.tasks
        for item in get_batch(table.client, table.clock, table.table, keys, strongly=False):
            if "expires_at" not in item:
                self._release(item, ended[_name(item)])

    def _release(self, item: Any, ended: Iterable[HomeState]) -> None:
        for home in ended:
            if item.get("task") == {"S": home.home.name}:
                key = {"slot": item["slot"], "place": item["place"]}
                release(self.tasks, key, home.home, home.redrives, home.expires_at)
                logger.info("key released", action="key-released", task_id=home.home.task_id)


def _name(item: Any) -> tuple[str, str]:
    return item["slot"]["S"], item["place"]["S"]
