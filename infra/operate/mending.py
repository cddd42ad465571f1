"""What one task needs, so that nothing is wrong any more with what it rests on.

It is one transaction, on condition that all of it stands as it was read, the home too: whoever
changed the task meanwhile was first, and nothing is written.
"""

import secrets
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from duewheel.rules.refusals import NewerItem, UnreadableItem
from duewheel.rules.sweep.audit import Wrong
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at
from duewheel.stores.conditional_writes import Conflict, Item, as_read, transact
from duewheel.stores.delivery import parked_items
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
    """As it is, for this reason."""


class Mending:
    """`task` as it was read, and what the audit finds wrong with it."""

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
        """Why some of it is left, if it is."""
        left = []
        for words, mend in ((PARKED, self._park), (ENTRY, self._enter), (KEY, self._name)):
            try:
                if words & self._wrong:
                    mend()
            except Left as reason:
                left.append(str(reason))
        return left

    def is_written(self) -> bool:
        """False if any of it has changed since it was read. The version rises as with every
        change, and so tells others that they were not first."""
        if not self._actions and Wrong.PENDING_EXPIRES not in self._wrong:
            return True
        after = replace(self._after, version=self._task.version + 1, expires_at=None)
        update = {"Update": self._tasks.update_request(self._task, after)}
        try:
            return transact(self._tasks.client, [*self._actions, update])
        except Conflict:
            return False

    def _park(self) -> None:
        """It came up, and was held back: so it waits for its release, as before."""
        stands = self._item(parked_items.key_of(self._task))
        _home_in(stands, parked_items.home_of_parked)
        self._put(parked_items.item_of(self._task), stands)

    def _enter(self) -> None:
        """One that is yet to come up stands again where it stood; behind the time pointer it would
        never fire. What stands there and may be another task's is left alone."""
        task, place = self._task, codec.key(self._task.entry, self._tasks.buckets)
        stands = None if task.names_its_home else self._item(place)
        is_own = stands is not None and _is_reentry_of(task, stands)
        is_missed = Wrong.PASSED in self._wrong or is_overdue(task, self._time_second)
        if is_missed and Wrong.ENTRY_EXPIRES not in self._wrong:
            self._after = self._run.coming_up_again(task)
            if is_own:
                request = {"TableName": self._tasks.table, "Key": place, **as_read(stands)}
                self._actions.append({"Delete": request})
            stands = None
        elif stands is not None and not is_own:
            random_bytes = secrets.token_bytes(TOKEN_BYTES)
            entry = address_at(task.entry.instant_ms, random_bytes, shard=task.entry.shard)
            self._after = replace(task, entry=entry)
            stands = None
        now_ms, buckets = self._run.clock.now_ms(), self._tasks.buckets
        self._put(codec.reentry_item(self._after.entry, task.home, buckets, now_ms), stands)

    def _name(self) -> None:
        """Unless its key has been given to another task since, and that is live."""
        task, stands = self._task, self._item(keys.key_of(self._task))
        named = _home_in(stands, keys.home_named_by)
        if named is not None and named != task.home:
            for other in self._tasks.items_at([named]):
                if not _has_key(other, task):
                    continue
                if other.get("status") == {"S": Status.PENDING.value}:
                    raise Left("its key names another live task")
                self._actions.append(KeyStore(self._tasks).check_settled(named))
        self._put(keys.item_of(task), stands)

    def _item(self, key: Any) -> Item | None:
        answer = self._tasks.client.get_item(
            TableName=self._tasks.table, Key=key, ConsistentRead=True
        )
        return answer.get("Item")

    def _put(self, item: Any, stands: Item | None) -> None:
        request = {"TableName": self._tasks.table, "Item": item, **as_read(stands)}
        self._actions.append({"Put": request})


def _is_reentry_of(task: Task, stands: Item) -> bool:
    """One that cannot be read is, since this task names it: no other ever named it."""
    if not codec.is_reentry(stands):
        return False
    return _home_in(stands, codec.home_of_reentry) in (None, task.home)


def _has_key(other: Item, task: Task) -> bool:
    return (other.get("biz_type"), other.get("key")) == ({"S": task.biz_type}, {"S": task.key})


def _home_in(stands: Item | None, read: Callable[[Item], Address]) -> Address | None:
    """None where it cannot be read, too: it was edited."""
    try:
        return read(stands) if stands is not None else None
    except NewerItem as newer:
        raise Left("written by a newer release") from newer
    except UnreadableItem:
        return None
