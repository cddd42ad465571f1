"""The repair of one task: its entry, key or parked item.

It is one transaction, on condition that all items, and the home, are unchanged since they were
read. If another writer was faster, nothing is written.
"""

import secrets
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep.audit import Wrong
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at
from duewheel.stores.delivery import parked_items
from duewheel.stores.dynamodb import Conflict, Item, as_read, transact
from duewheel.stores.tasks import codec, keys
from duewheel.stores.tasks.keys import KeyStore
from infra.operate.reconciling import Reconciling
from infra.operate.restored import is_overdue

ENTRY = {Wrong.PASSED, Wrong.ENTRY_MISSING, Wrong.ENTRY_FOREIGN, Wrong.ENTRY_EXPIRES}
PARKED = {
    Wrong.PARKED_MISSING,
    Wrong.PARKED_FOREIGN,
    Wrong.PARKED_EXPIRES,
    Wrong.RELEASE_MISSING,
}
KEY = {Wrong.KEY_MISSING, Wrong.KEY_FOREIGN, Wrong.KEY_EXPIRES}
MENDED = frozenset({*ENTRY, *PARKED, *KEY, Wrong.PENDING_EXPIRES})


class Left(Exception):
    """Not repaired, for this reason."""


class Mending:
    """`task`: as it was read. `wrong`: the findings of the audit."""

    def __init__(
        self, run: Reconciling, task: Task, wrong: frozenset[Wrong], time_second: int
    ) -> None:
        self._run = run
        self._tasks = run.tasks
        self._task = task
        self._wrong = wrong
        self._time_second = time_second
        self._after = task
        self._actions: list[Any] = []

    def prepared(self) -> list[str]:
        """The reasons for parts that are not repaired."""
        left = []
        for words, mend in ((PARKED, self._park), (ENTRY, self._enter), (KEY, self._name)):
            try:
                if words & self._wrong:
                    mend()
            except Left as reason:
                left.append(str(reason))
        return left

    def is_written(self) -> bool:
        """False if any of it has changed since it was read. The version rises as with every change,
        so concurrent writers are refused."""
        if not self._actions and Wrong.PENDING_EXPIRES not in self._wrong:
            return True
        after = replace(self._after, version=self._task.version + 1, expires_at=None)
        update = {"Update": self._tasks.update_request(self._task, after)}
        try:
            return transact(self._tasks.client, [*self._actions, update])
        except Conflict:
            return False

    def _park(self) -> None:
        """Park the task again, because it fell due and was parked: it waits for its release."""
        current = self._item(parked_items.key_of(self._task))
        _home_in(current, parked_items.home_of_parked)
        self._put(parked_items.item_of(self._task), current)

    def _enter(self) -> None:
        """An entry ahead of the time pointer is put at its old place; one behind it would never
        fire. An item there that may be another task's is not touched."""
        task, place = self._task, codec.key(self._task.entry, self._tasks.buckets)
        current = None if task.names_its_home else self._item(place)
        is_own = current is not None and _is_reentry_of(task, current)
        is_missed = Wrong.PASSED in self._wrong or is_overdue(task, self._time_second)
        if is_missed and Wrong.ENTRY_EXPIRES not in self._wrong:
            self._after = self._run.rescheduled_ahead(task)
            if is_own:
                request = {"TableName": self._tasks.table, "Key": place, **as_read(current)}
                self._actions.append({"Delete": request})
            current = None
        elif current is not None and not is_own:
            random_bytes = secrets.token_bytes(TOKEN_BYTES)
            entry = address_at(task.entry.instant_ms, random_bytes, shard=task.entry.shard)
            self._after = replace(task, entry=entry)
            current = None
        now_ms, buckets = self._run.clock.now_ms(), self._tasks.buckets
        self._put(codec.reentry_item(self._after.entry, task.home, buckets, now_ms), current)

    def _name(self) -> None:
        """Unless another live task has the key since."""
        task, current = self._task, self._item(keys.key_of(self._task))
        named = _home_in(current, keys.home_named_by)
        if named is not None and named != task.home:
            others = self._tasks.items_at([named])
            if not others:  # a claim: its creator may be about to put the task
                self._actions.append({"Put": self._tasks.burial_request(named)})
            for other in others:
                if not _has_key(other, task):
                    continue
                if other.get("status") == {"S": Status.PENDING.value}:
                    raise Left("its key names another live task")
                self._actions.append(KeyStore(self._tasks).check_settled(named))
        self._put(keys.item_of(task), current)

    def _item(self, key: Any) -> Item | None:
        answer = self._tasks.client.get_item(
            TableName=self._tasks.table, Key=key, ConsistentRead=True
        )
        return answer.get("Item")

    def _put(self, item: Any, current: Item | None) -> None:
        request = {"TableName": self._tasks.table, "Item": item, **as_read(current)}
        self._actions.append({"Put": request})


def _is_reentry_of(task: Task, current: Item) -> bool:
    """An unreadable re-entry is, since only this task names it."""
    if not codec.is_reentry(current):
        return False
    return _home_in(current, codec.home_of_reentry) in (None, task.home)


def _has_key(other: Item, task: Task) -> bool:
    return (other.get("biz_type"), other.get("key")) == ({"S": task.biz_type}, {"S": task.key})


def _home_in(current: Item | None, read: Callable[[Item], Address]) -> Address | None:
    """None also if it cannot be read: it was edited."""
    try:
        return read(current) if current is not None else None
    except UnreadableItem:
        return None
