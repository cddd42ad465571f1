"""Bring lost items back into a stack's tables, from tables restored from a point in time. Items
that are still in the stack's own tables are not touched.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from msgspec import Struct

from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks.task import Task
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Written, as_read, write_if
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.stores.tasks import codec
from duewheel.stores.tasks.keys import KeyStore, Taken
from duewheel.stores.wheel.sharding import HeaderStore
from infra.operate.reconciling import WRITERS, NotReconciled, Reconciling, line_of
from infra.operate.restored import (
    Fate,
    definition_of,
    fate_of_task,
    is_lost,
    is_overdue,
    key_of_definition,
)

BROUGHT_BACK = (Fate.GONE, Fate.EDITED)
KEY_TAKEN, CHANGED = "its key names another live task", "changed meanwhile: run it again"


class _Lost(Struct, frozen=True):
    task: Task  # as it was restored
    fate: Fate
    own: Item | None  # the present item


class BringBack(Struct, frozen=True):
    run: Reconciling

    def wheel(self, restored: str) -> Iterator[str]:
        """A line for each task that is brought back, or would be."""
        dispatched = self.run.dispatched_second()
        with ThreadPoolExecutor(WRITERS) as writers:
            for page in self.run.pages(restored):
                lost = self._lost(page)
                yield from writers.map(partial(self._bring_back, dispatched), lost)

    def definitions(self, restored: str) -> Iterator[str]:
        """A line for each record that is brought back, or would be. The records of a definition
        belong together: all lost definitions are found before the first write, and the main record
        of each is written last. So after an interruption the next run finds the rest lost, too."""
        records = [
            (named, item)
            for page in self.run.pages(restored)
            for item in page
            if (named := definition_of(item)) is not None
        ]
        records.sort(key=lambda record: _is_main(*record))
        lost = {named for named in {named for named, _ in records} if self._is_lost(*named)}
        for named, item in records:
            if named not in lost:
                self.run.count("records of definitions that exist, or were deleted since")
                continue
            self.run.count("records of definitions that are gone")
            yield f"{item['kind']['S']}  {item['record']['S']}"
            if self.run.writes:
                put = partial(
                    self.run.tasks.client.put_item, TableName=self.run.registry, Item=item
                )
                write_if(put, **registry_keys.IF_ABSENT)

    def wheel_records(self) -> Iterator[str]:
        """A line for each. They come last (see their module)."""
        for item in list(self.run.records.lost()):
            self.run.count("records of the wheel that are gone")
            yield f"{item['kind']['S']}  {item['record']['S']}"
            if self.run.writes:
                self.run.records.bring_back(item)

    def _is_lost(self, kind: str, name: str) -> bool:
        changes = ChangeRecords(self.run.tasks.client, self.run.registry)
        kept = changes.read(kind, name, self.run.clock.now_ms())
        last = kept.changes[0] if kept is not None and kept.changes else None
        return is_lost(self._registry_item(key_of_definition(kind, name)), last)

    def _registry_item(self, key: Any) -> Any:
        answer = self.run.tasks.client.get_item(
            TableName=self.run.registry, Key=key, ConsistentRead=True
        )
        return answer.get("Item")

    def _lost(self, items: Sequence[Any]) -> list[_Lost]:
        restored = [task for task in map(self._readable, items) if task is not None]
        own = {
            codec.address_of(item): item
            for item in self.run.tasks.items_at(task.home for task in restored)
        }
        now_ms = self.run.clock.now_ms()
        fates = [(task, fate_of_task(task, own.get(task.home), now_ms)) for task in restored]
        self.run.count(*(fate.value for _, fate in fates))
        return [
            _Lost(task, fate, own.get(task.home)) for task, fate in fates if fate in BROUGHT_BACK
        ]

    def _readable(self, item: Any) -> Task | None:
        """None for other items than tasks: these follow from the tasks."""
        if "status" not in item:
            return None
        try:
            task = codec.task_from(item)
        except UnreadableItem:
            self.run.count("unreadable in the restored table")
            return None
        if codec.key(task.home, self.run.tasks.buckets)["slot"] != item["slot"]:
            raise NotReconciled("The restored wheel was laid out with another number of BUCKETS.")
        return task

    def _bring_back(self, dispatched_second: int, lost: _Lost) -> str:
        task = lost.task
        if is_overdue(task, dispatched_second):
            task = self.run.rescheduled_ahead(task)
        left = self._left(task, lost) if self.run.writes else None
        if left is not None:
            self.run.count(f"left: {left}")
            return line_of(task, f"left: {left}")
        return line_of(task, lost.fate.value)

    def _left(self, task: Task, lost: _Lost) -> str | None:
        """Why it was not written. Entry and header are written before the home that needs them.
        Nothing is written if the key names another live task."""
        tasks, keys = self.run.tasks, KeyStore(self.run.tasks)
        is_by_key = task.key is not None and task.is_live
        try:
            key = keys.read(task.biz_type, str(task.key)) if is_by_key else None
        except UnreadableItem:
            is_by_key, key = False, None  # it is repaired when its task exists
        named = None if key is None else key.home
        if named is not None and named != task.home and self.run.is_live(named):
            return KEY_TAKEN
        headers = HeaderStore(tasks.client, self.run.clock, tasks.table, tasks.buckets)
        for address in {task.home, task.entry} if task.is_live else ():
            if address.shard:
                headers.raise_to(address.second, address.shard + 1)
        if task.is_live and not task.names_its_home:
            tasks.put_entry(task.entry, task.home)
        if lost.fate is Fate.EDITED and not self._is_deleted(task, lost):
            return CHANGED
        if is_by_key and named != task.home:
            is_absent = named is not None and not tasks.items_at([named])
            taken = keys.take(task, key, is_absent=is_absent)
            return None if taken is Taken.YES else KEY_TAKEN
        tasks.create(task)
        return None

    def _is_deleted(self, task: Task, lost: _Lost) -> bool:
        """Delete it if it is unchanged since it was read: a later change wins."""
        tasks = self.run.tasks
        delete = partial(
            tasks.client.delete_item,
            TableName=tasks.table,
            Key=codec.key(task.home, tasks.buckets),
        )
        return isinstance(write_if(delete, **as_read(lost.own)), Written)


def _is_main(named: tuple[str, str], item: Any) -> bool:
    return bool(key_of_definition(*named).items() <= item.items())
