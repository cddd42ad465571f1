"""Repair what pending tasks of a stack's own wheel need: entries, keys, parked items, headers.

It repairs exactly what the audit finds, with the same checks; so afterwards the audit finds
nothing. All of it follows from the task. Only a scan of the tasks finds a missing header: without
the header not even the audit reads the other shards.
"""

import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from msgspec import Struct

from duewheel.rules.delivery.parked_tasks import PAUSE_MARK_BYTES
from duewheel.rules.sweep.audit import Pointers, Wrong
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import Address, holds_seconds
from duewheel.stores.businesses.parking_state import ParkingRecords
from duewheel.stores.item_attributes import readable
from duewheel.stores.sweep.audit_reads import AuditStore
from duewheel.stores.tasks import codec
from duewheel.stores.wheel.sharding import HeaderStore
from duewheel.workflows.sweep.audit import suspects
from infra.operate.mending import MENDED, PARKED, Mending
from infra.operate.reconciling import WRITERS, Reconciling, line_of


class Mend(Struct, frozen=True):
    run: Reconciling

    def __call__(self) -> Iterator[str]:
        """A line for each task and header that is repaired, or would be."""
        tasks = self.run.tasks
        store = AuditStore(tasks, self._records)
        with ThreadPoolExecutor(WRITERS) as writers:
            for page in self.run.pages(tasks.table):
                pointers = self.run.pointers()  # before the tasks, as the audit reads them
                live, _ = store.tasks_at(_homes_of_live(page))
                yield from self._headers([one.task for one in live], pointers)
                found = [
                    (task, wrong)
                    for task, findings in suspects(store, live, pointers)
                    if (wrong := MENDED & {finding.wrong for finding in findings})
                ]
                self._request_release(found)
                yield from writers.map(partial(self._mend, pointers), found)

    @property
    def _records(self) -> ParkingRecords:
        return ParkingRecords(self.run.tasks.client, self.run.clock, self.run.registry)

    def _headers(self, live: Sequence[Task], pointers: Pointers) -> Iterator[str]:
        """Raise headers of seconds that the sweep has not finished."""
        tasks = self.run.tasks
        needed: dict[int, int] = {}
        for address in (address for task in live for address in (task.home, task.entry)):
            if address.shard and pointers.are_yet_to_sweep(address):
                shards = max(needed.get(address.second, 1), address.shard + 1)
                needed[address.second] = shards
        headers = HeaderStore(tasks.client, self.run.clock, tasks.table, tasks.buckets)
        announced = headers.read(needed)
        for second, shards in needed.items():
            if announced.get(second, 1) < shards:
                self.run.count("header-missing")
                yield f"header of second {second}: {shards} shards"
                if self.run.writes:
                    headers.raise_to(second, shards)

    def _request_release(self, found: Sequence[tuple[Task, frozenset[Wrong]]]) -> None:
        """Request it before parking, as notifiers do: it drops needlessly parked items."""
        if self.run.writes:
            for scope in {task.parked_scope for task, wrong in found if wrong & PARKED}:
                self._records.mark(scope, secrets.token_urlsafe(PAUSE_MARK_BYTES))

    def _mend(self, pointers: Pointers, found: tuple[Task, frozenset[Wrong]]) -> str:
        task, wrong = found
        mending = Mending(self.run, task, wrong, pointers.time_second)
        left = mending.prepared()
        if self.run.writes and not mending.is_written():
            left.append("changed meanwhile: run it again")
        words = sorted(word.value for word in wrong)
        self.run.count(*words, *(f"left: {why}" for why in left))
        return line_of(task, "  ".join([*words, *(f"left: {why}" for why in left)]))


def _homes_of_live(items: Sequence[Any]) -> list[Address]:
    """Unreadable tasks are left out: the audit reports them."""
    pending = {"S": Status.PENDING.value}
    live = [
        item for item in items if item.get("status") == pending and holds_seconds(item["slot"]["S"])
    ]
    return readable(live, codec.address_of)[0]
