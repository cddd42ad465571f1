"""Tasks and their entries on the wheel.

Callers keep this order: a new entry is put before its home names it, and only the sweep deletes
entries, when their second is finished.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import report_unreadable
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep.verdict import HomeState
from duewheel.rules.tasks.lifecycle import FoundEntry
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import (
    Item,
    Refused,
    Written,
    get_batch,
    transact,
    write_all,
    write_batch,
    write_if,
    write_while_taken,
)
from duewheel.stores.item_attributes import readable, readable_ones
from duewheel.stores.tasks import codec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_KEY_ATTRIBUTES = ("slot", "place")


class TaskStore(Struct, frozen=True, kw_only=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str
    buckets: int
    list_index: bool

    def reach(self) -> list[str]:
        key = {"slot": {"S": "-"}, "place": {"S": "-"}}
        self.client.batch_get_item(RequestItems={self.table: {"Keys": [key]}})
        return [self.table]

    def create(self, task: Task) -> bool:
        """Put if absent. An existing item can only be the same task: by an earlier try of the same
        request, since the place is random, or the same occurrence of a timer, whose place is
        computed. It is left as it is: False."""
        return isinstance(write_if(self.client.put_item, **self.put_request(task)), Written)

    def create_unburied(self, task: Task) -> bool:
        """Put if absent, like `create`; False if the place was buried."""
        result = write_if(self.client.put_item, **self.put_request(task))
        return isinstance(result, Written) or not codec.is_reentry(result.item or {})

    def bury(self, home: Address) -> bool:
        """See to it that no task can be put at this home. False if one is there."""
        result = write_if(self.client.put_item, **self.burial_request(home))
        return isinstance(result, Written) or codec.is_reentry(result.item or {})

    def burial_request(self, home: Address) -> dict[str, Any]:
        """The put of a tombstone if absent."""
        now_ms = self.clock.now_ms()
        return self._put_if_absent(codec.tombstone_item(home, self.buckets, now_ms))

    def create_with_entry(self, task: Task, *along: Any) -> bool:
        """Put a task and the entry elsewhere that it names, in one transaction with other parts.
        False if the task is there already."""
        entry = codec.reentry_item(task.entry, task.home, self.buckets, task.created_ms)
        return self.create_with(task, {"Put": self._put_if_absent(entry)}, *along)

    def create_with(self, task: Task, *along: Any) -> bool:
        """Put a task, in one transaction with these parts. False if a condition failed."""
        return transact(self.client, [{"Put": self.put_request(task)}, *along])

    def create_many(self, tasks: Sequence[Task]) -> set[str]:
        """Write what DynamoDB accepts; return the ids of the tasks that were not written."""
        requests = [{"PutRequest": {"Item": self.item(task)}} for task in tasks]
        left = write_batch(self.client, self.clock, self.table, requests)
        return {codec.address_of(one["PutRequest"]["Item"]).task_id for one in left}

    def put_delivered(self, tasks: Sequence[Task]) -> list[Task]:
        """Put up to 25 whole items without a condition: their calls were answered, and no other run
        had them since they were read. Return the tasks that DynamoDB throttled."""
        requests = [{"PutRequest": {"Item": self.item(task)}} for task in tasks]
        left = write_while_taken(self.client, self.table, requests)
        unwritten = {codec.address_of(one["PutRequest"]["Item"]) for one in left}
        return [task for task in tasks if task.home in unwritten]

    def as_text(self, task: Task) -> str:
        """The item as text, for a message to another notifier."""
        return json.dumps(self.item(task), separators=(",", ":"))

    def from_text(self, text: str) -> Task:
        return codec.task_from(json.loads(text))

    def get(self, home: Address) -> Task | None:
        """Raises UnreadableItem, and reports it, if the task is damaged."""
        answer = self.client.get_item(
            TableName=self.table, Key=self._key(home), ConsistentRead=True
        )
        item = answer.get("Item")
        if item is None or codec.is_reentry(item):
            return None
        try:
            return codec.task_from(item)
        except UnreadableItem as damaged:
            report_unreadable(damaged)
            raise

    def get_many(self, homes: Iterable[Address]) -> dict[Address, Task]:
        """The tasks that exist and are readable; damaged ones are reported."""
        items = [item for item in self.items_at(homes) if not codec.is_reentry(item)]
        return {task.home: task for task in readable_ones(items, codec.task_from)}

    def present(self, homes: Iterable[Address]) -> set[Address]:
        """Those at which there is a task, readable or not."""
        items = self.items_at(homes)
        return {codec.address_of(item) for item in items if not codec.is_reentry(item)}

    def home_states(
        self, homes: Iterable[Address]
    ) -> tuple[dict[Address, HomeState], list[UnreadableItem]]:
        items = [item for item in self.items_at(homes) if not codec.is_reentry(item)]
        states, damaged = readable(items, codec.home_state_from)
        return {state.home: state for state in states}, damaged

    def find(self, entries: Iterable[Address]) -> list[FoundEntry]:
        """The entries at these addresses, in the order of their places; missing ones are left out,
        and damaged ones, which are reported."""
        found = readable_ones(self.items_at(entries), found_entry)
        return sorted(found, key=lambda entry: entry.address.place)

    def change(self, before: Task, after: Task) -> bool:
        """One conditional update of the home; False if the home changed since `before` was read.

        A late SDK retry changes nothing: every change raises the version, and a refusal that shows
        this very change counts as its success.
        """
        changed, removed = _difference(self.item(before), self.item(after))
        result = self._update_home(before, changed, removed)
        return not isinstance(result, Refused) or _shows(result.item or {}, changed, removed)

    def put_delivered_if_unchanged(self, task: Task) -> bool:
        """Put one of them on condition that its home is as the call was made by."""
        return isinstance(write_if(self.client.put_item, **self._put_if_unchanged(task)), Written)

    def _put_if_unchanged(self, task: Task) -> dict[str, Any]:
        """Since the task was read, nothing was written but an end of this very attempt: a report of
        it, its failure in another run, or an earlier try of this write."""
        return {
            "TableName": self.table,
            "Item": self.item(task),
            "ConditionExpression": (
                "#version = :read OR (#version = :written AND attempts = :attempts)"
            ),
            "ExpressionAttributeNames": {"#version": "version"},
            "ExpressionAttributeValues": {
                ":read": {"N": str(task.version - 1)},
                ":written": {"N": str(task.version)},
                ":attempts": {"N": str(task.attempts)},
            },
        }

    def put_told(self, task: Task, notice: Task) -> bool:
        """Put the whole item of a task whose call was answered, and its notice, in one transaction;
        False if the task had ended or was changed. A refusal after an earlier try of the same
        transaction counts as success."""
        put = self._put_if_unchanged(task)
        put["ConditionExpression"] = f"#status = :pending AND ({put['ConditionExpression']})"
        put["ExpressionAttributeNames"]["#status"] = "status"
        put["ExpressionAttributeValues"][":pending"] = {"S": Status.PENDING.value}
        if transact(self.client, [{"Put": put}, {"Put": self.put_request(notice)}]):
            return True
        current = self.get(task.home)
        return current is not None and current.notice_id == task.notice_id

    def change_along(self, before: Task, after: Task, *along: Any) -> bool:
        """Change the home together with other parts of a transaction; False if the home changed
        since `before` was read. A refusal after an earlier try of the same transaction counts as
        success."""
        changed, removed = _difference(self.item(before), self.item(after))
        update = self._home_update(before, changed, removed)
        if transact(self.client, [{"Update": update}, *along]):
            return True
        return any(_shows(item, changed, removed) for item in self.items_at([after.home]))

    def name_entry(self, home: HomeState, entry: Address) -> bool:
        """Make `entry` the one that may fire, if the home is as it was read."""
        named = {"entry": {"S": entry.name}, "version": {"N": str(home.version + 1)}}
        result = self._update_home(home, named, [])
        if not isinstance(result, Refused):
            return True
        return result.item is not None and result.item.get("entry") == named["entry"]

    def put_entry(self, entry: Address, home: Address) -> None:
        item = codec.reentry_item(entry, home, self.buckets, self.clock.now_ms())
        write_if(self.client.put_item, **self._put_if_absent(item))

    def put_entries(self, entries: Sequence[tuple[Address, Address]]) -> None:
        """Put entries of several homes. Their places are random, so nothing is there yet."""
        now_ms = self.clock.now_ms()
        items = [codec.reentry_item(entry, home, self.buckets, now_ms) for entry, home in entries]
        requests = [{"PutRequest": {"Item": item}} for item in items]
        write_all(self.client, self.clock, self.table, requests, "entries could not be put")

    def delete_entries(self, entries: Sequence[Address]) -> None:
        """Delete re-entries of finished seconds. A place is never used twice."""
        requests = [{"DeleteRequest": {"Key": self._key(entry)}} for entry in entries]
        write_all(self.client, self.clock, self.table, requests, "entries could not be deleted")

    def existing(self, addresses: Iterable[Address]) -> set[Address]:
        """The addresses at which a readable entry is, strongly consistent."""
        return set(readable(self.items_at(addresses), codec.address_of_entry)[0])

    def items_at(self, addresses: Iterable[Address]) -> list[Item]:
        """The items, strongly consistent, in no order."""
        keys = [self._key(address) for address in dict.fromkeys(addresses)]
        return get_batch(self.client, self.clock, self.table, keys)

    def put_request(self, task: Task) -> dict[str, Any]:
        """The put of a task if absent."""
        return self._put_if_absent(self.item(task))

    def _put_if_absent(self, item: dict[str, Any]) -> dict[str, Any]:
        return {
            "TableName": self.table,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(place)",
        }

    def update_request(self, before: Task, after: Task) -> dict[str, Any]:
        """The conditional update that makes `before` into `after`."""
        return self._home_update(before, *_difference(self.item(before), self.item(after)))

    def _update_home(
        self, read: Task | HomeState, changed: dict[str, Any], removed: list[str]
    ) -> Written | Refused:
        return write_if(self.client.update_item, **self._home_update(read, changed, removed))

    def _home_update(
        self, read: Task | HomeState, changed: dict[str, Any], removed: list[str]
    ) -> dict[str, Any]:
        """Conditional on status, version and named entry as read."""
        names = {"#status": "status", "#version": "version", "#entry": "entry"}
        values: dict[str, Any] = {
            ":read": {"S": read.status.value},
            ":version": {"N": str(read.version)},
        }
        condition = "#status = :read AND #version = :version"
        if read.entry == read.home:
            condition += " AND attribute_not_exists(#entry)"
        else:
            condition += " AND #entry = :entry"
            values[":entry"] = {"S": read.entry.name}
        for number, (name, value) in enumerate(changed.items()):
            names[f"#s{number}"] = name
            values[f":s{number}"] = value
        for number, name in enumerate(removed):
            names[f"#r{number}"] = name
        update = "SET " + ", ".join(f"#s{n} = :s{n}" for n in range(len(changed)))
        if removed:
            update += " REMOVE " + ", ".join(f"#r{n}" for n in range(len(removed)))
        return {
            "TableName": self.table,
            "Key": self._key(read.home),
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }

    def _key(self, address: Address) -> dict[str, Any]:
        return codec.key(address, self.buckets)

    def item(self, task: Task) -> dict[str, Any]:
        return codec.task_item(task, self.buckets, listed=self.list_index)


def found_entry(item: Item) -> FoundEntry:
    address = codec.address_of(item)
    if codec.is_reentry(item):
        return FoundEntry(address, codec.home_of_reentry(item), None)
    return FoundEntry(address, address, codec.task_from(item))


def _shows(current: Item, changed: dict[str, Any], removed: list[str]) -> bool:
    set_all = all(current.get(name) == value for name, value in changed.items())
    return set_all and not any(name in current for name in removed)


def _difference(old: dict[str, Any], new: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    changed = {
        name: value
        for name, value in new.items()
        if name not in _KEY_ATTRIBUTES and old.get(name) != value
    }
    return changed, [name for name in old if name not in new]
