"""The parts that all steps of `make reconcile` share: the tables of the stack, the operator's
options, and the counts.
"""

import secrets
from collections import Counter
from collections.abc import Iterator
from itertools import count
from threading import Lock
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.instants import rfc3339
from duewheel.rules.sweep.audit import Pointers, judged_pointers
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at
from duewheel.stores.tasks.tasks import TaskStore
from infra.operate.wheel_records import WheelRecords

AHEAD_SECONDS = 300  # of now, where the new entries of overdue tasks begin: beyond every pointer
READ_AT_ONCE = 100
WRITERS = 16
DELIVER, EXPIRE = "deliver", "expire"


class NotReconciled(Exception):
    """Reconciling would do harm, or an option is missing."""


class Reconciling(Struct):
    """`overdue`: what to do with tasks that fell due since; None: there must be none."""

    clock: Clock
    tasks: TaskStore
    records: WheelRecords
    origin: int
    overdue: str | None
    per_second: int
    writes: bool
    found: Counter[str] = field(default_factory=Counter)
    _overdue_so_far: Iterator[int] = field(default_factory=count)
    _lock: Lock = field(default_factory=Lock)

    def count(self, *found: str) -> None:
        with self._lock:
            self.found.update(found)

    def pages(self, table: str) -> Iterator[list[Any]]:
        """All items of a table, a batch read at a time."""
        pages = self.tasks.client.get_paginator("scan").paginate(
            TableName=table, ConsistentRead=True, PaginationConfig={"PageSize": READ_AT_ONCE}
        )
        for page in pages:
            yield page["Items"]

    def pointers(self) -> Pointers:
        """Edited pointers are refused: nothing can be decided with them."""
        read = self.records.pointers(self.origin)
        for finding in judged_pointers(read, self.clock.now_ms()):
            raise NotReconciled(finding.sentence)
        return read

    @property
    def registry(self) -> str:
        return self.records.own

    def dispatched_second(self) -> int:
        """The last second whose lost tasks may have been called."""
        dispatched = self.pointers().time_second
        if self.records.knows_what_was_dispatched():
            return dispatched
        return max(dispatched, self.clock.now_ms() // 1000)

    def rescheduled_ahead(self, task: Task) -> Task:
        """The task with a new entry ahead of all pointers, a limited number to a second."""
        self.count("overdue")
        if self.writes and self.overdue is None:
            raise NotReconciled(
                "Tasks are overdue, or due in seconds that are dispatched: "
                "give --overdue deliver or expire."
            )
        later = AHEAD_SECONDS * 1000 + next(self._overdue_so_far) * 1000 // self.per_second
        is_to_expire = self.overdue == EXPIRE and task.plan is None
        return replace(
            task,
            entry=address_at(self.clock.now_ms() + later, secrets.token_bytes(TOKEN_BYTES)),
            parked=False,
            version=task.version + 1,
            expires_after_seconds=0.0 if is_to_expire else task.expires_after_seconds,
        )

    def is_live(self, home: Address) -> bool:
        """Whether a task is live, by the rule of a write under a key: also an unreadable one."""
        pending = {"S": Status.PENDING.value}
        return any(item.get("status") == pending for item in self.tasks.items_at([home]))


def line_of(task: Task, what: str) -> str:
    due = rfc3339(task.due_at_ms)
    return f"{task.task_id}  {task.biz_type}  {task.status.value}  due {due}  {what}"
