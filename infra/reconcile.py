"""`make reconcile STACK=… WHEEL=…`: bring back into a stack's tables what was lost from them, out
of tables restored from a point in time.

What the stack's own tables still tell is left alone. By default it only says, a line for each, what
it would bring back; `--write` does it. It may be run again at any time, and then finds less. A task
that came up meanwhile may or may not have been called: `--overdue` says what to do with those.
Run it while everything is paused: docs/operations.md says how.
"""

import argparse
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.clock import Clock, SystemClock
from duewheel.rules.addresses import TOKEN_BYTES, Address, address_at
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.task import Status, Task
from duewheel.stores import pointers, registry_keys, task_items
from duewheel.stores.change_records import ChangeRecords
from duewheel.stores.conditions import write_if
from duewheel.stores.headers import HeaderStore
from duewheel.stores.keys import KeyStore
from duewheel.stores.pointers import PointerStore
from duewheel.stores.tasks import TaskStore
from infra.admin_key import NoSuchStack, outputs_of
from infra.restored import (
    Fate,
    definition_of,
    fate_of_task,
    is_lost,
    is_overdue,
    key_of_definition,
)

AHEAD_SECONDS = 300  # of now, where overdue tasks begin to come up: further than any pointer runs
READ_AT_ONCE = 100
WRITERS = 16
DELIVER, EXPIRE = "deliver", "expire"
BROUGHT_BACK = (Fate.GONE, Fate.EDITED)


class NotReconciled(Exception):
    """It would do harm, or nobody said what to do."""


class Reconcile(Struct):
    """`overdue`: what to do with tasks that came up since; None says that there are to be none."""

    clock: Clock
    tasks: TaskStore
    registry: str
    overdue: str | None
    per_second: int
    writes: bool
    found: Counter[str] = field(default_factory=Counter)
    _overdue_so_far: Iterator[int] = field(default_factory=count)

    def wheel(self, restored: str) -> Iterator[str]:
        """A line for each task that is brought back, or would be."""
        dispatched = PointerStore(self.tasks.client, self.registry).read(pointers.TIME, 0).position
        with ThreadPoolExecutor(WRITERS) as writers:
            for page in _pages(self.tasks.client, restored):
                lost = self._lost(page)
                yield from filter(None, writers.map(partial(self._bring_back, dispatched), lost))

    def definitions(self, restored: str) -> Iterator[str]:
        """A line for each record that is brought back, or would be: those of a definition go
        together, so what is lost is known before the first is written, and the record that it is
        told by is written last: whatever ends this, the next run finds the rest lost as well."""
        records = [
            (named, item)
            for page in _pages(self.tasks.client, restored)
            for item in page
            if (named := definition_of(item)) is not None
        ]
        records.sort(key=lambda record: _is_main(*record))
        lost = {named for named in {named for named, _ in records} if self._is_lost(*named)}
        for named, item in records:
            if named not in lost:
                self.found["records of definitions that stand, or were deleted since"] += 1
                continue
            self.found["records of definitions that are gone"] += 1
            yield f"{item['kind']['S']}  {item['record']['S']}"
            if self.writes:
                put = partial(self.tasks.client.put_item, TableName=self.registry, Item=item)
                write_if(put, **registry_keys.IF_ABSENT)

    def _is_lost(self, kind: str, name: str) -> bool:
        changes = ChangeRecords(self.tasks.client, self.registry)
        kept = changes.read(kind, name, self.clock.now_ms())
        last = kept.changes[0] if kept is not None and kept.changes else None
        return is_lost(self._registry_item(key_of_definition(kind, name)), last)

    def _registry_item(self, key: Any) -> Any:
        answer = self.tasks.client.get_item(TableName=self.registry, Key=key, ConsistentRead=True)
        return answer.get("Item")

    def _lost(self, items: Sequence[Any]) -> list[tuple[Task, Fate]]:
        restored = [task for task in map(self._readable, items) if task is not None]
        own = {
            task_items.address_of(item): item
            for item in self.tasks.items_at(task.home for task in restored)
        }
        now_ms = self.clock.now_ms()
        fates = [(task, fate_of_task(task, own.get(task.home), now_ms)) for task in restored]
        self.found.update(fate.value for _, fate in fates)
        return [(task, fate) for task, fate in fates if fate in BROUGHT_BACK]

    def _readable(self, item: Any) -> Task | None:
        """None for what is no task: all else follows from the tasks."""
        if "status" not in item:
            return None
        try:
            task = task_items.task_from(item)
        except UnreadableItem:
            self.found["unreadable in the restored table"] += 1
            return None
        if task_items.key(task.home, self.tasks.buckets)["slot"] != item["slot"]:
            raise NotReconciled("The restored wheel was laid out with another number of BUCKETS.")
        return task

    def _bring_back(self, dispatched_second: int, lost: tuple[Task, Fate]) -> str | None:
        task, fate = lost
        if is_overdue(task, dispatched_second):
            self.found["overdue"] += 1
            if self.writes and self.overdue is None:
                raise NotReconciled("Tasks are overdue: say --overdue deliver or expire.")
            task = self._coming_up_again(task)
        if self.writes and not self._written(task, fate):
            self.found["left, since their keys name other live tasks"] += 1
            return f"{_line(task)}  left: its key names another live task"
        return f"{_line(task)}  {fate.value}"

    def _coming_up_again(self, task: Task) -> Task:
        """An entry of its own ahead of all pointers, so many to a second."""
        later = AHEAD_SECONDS * 1000 + next(self._overdue_so_far) * 1000 // self.per_second
        entry = address_at(self.clock.now_ms() + later, secrets.token_bytes(TOKEN_BYTES))
        is_to_expire = self.overdue == EXPIRE and task.plan is None
        return replace(
            task,
            entry=entry,
            parked=False,
            version=task.version + 1,
            expires_after_seconds=0.0 if is_to_expire else task.expires_after_seconds,
        )

    def _written(self, task: Task, fate: Fate) -> bool:
        """Entry and header before the home that needs them; nothing at all where the key names
        another live task."""
        tasks, keys = self.tasks, KeyStore(self.tasks)
        is_by_key = task.key is not None and task.is_live
        named = keys.home(task.biz_type, str(task.key)) if is_by_key else None
        if named is not None and named != task.home and self._is_live(named):
            return False
        headers = HeaderStore(tasks.client, self.clock, tasks.table, tasks.buckets)
        for address in {task.home, task.entry} if task.is_live else ():
            if address.shard:
                headers.raise_to(address.second, address.shard + 1)
        if task.is_live and not task.names_its_home:
            tasks.put_entry(task.entry, task.home)
        if fate is Fate.EDITED:
            tasks.delete_entries([task.home])
        if is_by_key and named != task.home:
            return keys.create(task, named)
        tasks.create(task)
        return True

    def _is_live(self, home: Address) -> bool:
        """As the write under a key judges it: also of one that cannot be read."""
        pending = {"S": Status.PENDING.value}
        return any(item.get("status") == pending for item in self.tasks.items_at([home]))


def _is_main(named: tuple[str, str], item: Any) -> bool:
    return bool(key_of_definition(*named).items() <= item.items())


def _line(task: Task) -> str:
    return f"{task.task_id}  {task.biz_type}  {task.status.value}  due {rfc3339(task.due_ms)}"


def _pages(client: Any, table: str) -> Iterator[list[Any]]:
    pages = client.get_paginator("scan").paginate(
        TableName=table, ConsistentRead=True, PaginationConfig={"PageSize": READ_AT_ONCE}
    )
    for page in pages:
        yield page["Items"]


def of_stack(client: Any, outputs: dict[str, str], clock: Clock, asked: Any) -> Reconcile:
    """Over the tables of the stack, as they are laid out."""
    wheel, registry = outputs["WheelTable"], outputs["RegistryTable"]
    key: Any = registry_keys.SHAPE
    shape = client.get_item(TableName=registry, Key=key, ConsistentRead=True).get("Item")
    if shape is None:
        raise NotReconciled("The stack has never run: let it start once, then pause it again.")
    table = client.describe_table(TableName=wheel)["Table"]
    indexes = {index["IndexName"] for index in table.get("GlobalSecondaryIndexes", [])}
    tasks = TaskStore(client, clock, wheel, int(shape["buckets"]["N"]), "by_business" in indexes)
    return Reconcile(clock, tasks, registry, asked.overdue, asked.per_second, asked.write)


def main(arguments: list[str] | None = None) -> int:
    asked = _asked(arguments)
    client = boto3.client("dynamodb")
    try:
        outputs = outputs_of(boto3.client("cloudformation"), asked.stack)
        reconcile = of_stack(client, outputs, SystemClock(), asked)
        if asked.registry:
            print(*reconcile.definitions(asked.registry), sep="\n")
        for line in reconcile.wheel(asked.wheel):
            print(line)
    except (BotoCoreError, ClientError, NoSuchStack, NotReconciled) as error:
        print(f"Not reconciled: {error}", file=sys.stderr)
        return 1
    for what, number in sorted(reconcile.found.items()):
        print(f"{number:>10}  {what}", file=sys.stderr)
    done = "These were brought back." if asked.write else "Nothing was written: add --write."
    print(done, file=sys.stderr)
    return 0


def _asked(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make reconcile", description=__doc__)
    parser.add_argument("stack", help="the name of the deployed stack")
    parser.add_argument("wheel", help="the table that its Wheel was restored to")
    parser.add_argument("--registry", help="the table that its Registry was restored to")
    parser.add_argument("--overdue", choices=(DELIVER, EXPIRE))
    parser.add_argument("--per-second", type=int, choices=range(1, 901), default=100, metavar="N")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
