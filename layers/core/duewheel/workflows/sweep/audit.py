"""Audit: find each task, entry and pointer of a range of seconds whose state is inconsistent.

It walks the range in calls of bounded work. A healthy wheel changes while it is read. So the
pointers are read before the tasks, and each suspect is read again: it is reported only if its home
was unchanged while the items that it depends on were read.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct, field

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules.refusals import Unavailable, UnreadableItem
from duewheel.rules.sweep import audit
from duewheel.rules.sweep.audit import (
    AuditedTask,
    AuditRequest,
    Finding,
    Pointers,
    Position,
    Wrong,
    cursor_at,
    position_of,
)
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.sweep.audit_reads import AuditPage, AuditStore
from duewheel.stores.wheel import pointers as stored
from duewheel.stores.wheel.pointers import PointerStore
from duewheel.workflows.tasks.list_tasks import TOO_MANY_READS

READERS = 16
# Bounds of one call; the next call continues behind it.
SECONDS_MAX = 1_800
ITEMS_MAX = 2_000
ITEMS_AT_ONCE = 500
_LOOKS = 3  # reads of a suspect; a task that changes each time is in use


class Audited(Struct, kw_only=True):
    first_second: int
    last_second: int
    audited_until_second: int  # not included
    seconds: int = 0
    items: int = 0
    findings: list[Finding] = field(default_factory=list)
    cursor: str | None = None


class Audit(Struct, frozen=True, kw_only=True):
    clock: Clock
    pointers: PointerStore
    origin: int
    store: AuditStore
    readers: ThreadPoolExecutor
    secret: bytes

    def __call__(self, request: AuditRequest) -> Audited:
        with unavailable_when_throttled(Unavailable(TOO_MANY_READS)):
            return self._walk(request, position_of(request, self.secret))

    def _walk(self, request: AuditRequest, position: Position) -> Audited:
        pointers = self._pointers()
        done = Audited(
            first_second=request.first_second,
            last_second=request.last_second,
            audited_until_second=position.second,
        )
        done.findings += audit.judged_pointers(pointers, self.clock.now_ms())
        first = position.second
        while position.second <= request.last_second and not _is_enough(done, first, position):
            for page in self._pages(position, request.last_second):
                done.items += page.items
                done.findings += self._judged(page, pointers)
                position = page.following
                # The second has more, or the bound is reached: later seconds are read again by the
                # next call.
                if position.after is not None or position.shard or done.items >= ITEMS_MAX:
                    break
        done.seconds = position.second - first
        done.audited_until_second = position.second
        if position.second <= request.last_second:
            done.cursor = cursor_at(position, request, self.secret)
        done.findings = list(dict.fromkeys(done.findings))
        return done

    def _pointers(self) -> Pointers:
        """The sweep pointer first: it follows the time pointer, so it cannot overtake it in
        between."""
        sweep = self.pointers.read(stored.SWEEP, self.origin)
        time = self.pointers.read(stored.TIME, self.origin)
        return Pointers(sweep.position, time.position, sweep.open_places)

    def _pages(self, position: Position, last_second: int) -> list[AuditPage]:
        ahead = [position]
        if position.after is None and not position.shard:
            seconds = range(position.second + 1, min(position.second + READERS, last_second + 1))
            ahead += map(Position, seconds)
        return fan_out(self.readers, partial(self.store.page, items_max=ITEMS_AT_ONCE), ahead)

    def _judged(self, page: AuditPage, pointers: Pointers) -> list[Finding]:
        tasks = {one.task.home: one for one in page.tasks}
        elsewhere = {reentry.home for reentry in page.entries.values()} - tasks.keys()
        found, unreadable = self.store.tasks_at(elsewhere)
        there = tasks.keys() | {one.task.home for one in found}
        findings = self._orphans(page, there, unreadable)
        for _, wrong in suspects(self.store, [*tasks.values(), *found], pointers):
            findings += wrong
        findings += map(audit.unreadable, self.store.still_unreadable([*page.damaged, *unreadable]))
        return findings

    def _orphans(
        self, page: AuditPage, there: Iterable[Address], unreadable: list[UnreadableItem]
    ) -> list[Finding]:
        """Entries whose homes are gone; if a home cannot be read its entry is no orphan."""
        known = {*there, *(self.store.address_of(one) for one in unreadable)}
        now_ms = self.clock.now_ms()
        return [
            Finding(Wrong.HOME_GONE, reentry.home.task_id, at=self.store.name_of(entry))
            for entry, reentry in page.entries.items()
            if reentry.home not in known and reentry.is_orphan(now_ms)
        ]


def suspects(
    store: AuditStore, tasks: list[AuditedTask], pointers: Pointers
) -> Iterator[tuple[Task, list[Finding]]]:
    """Tasks that look inconsistent and are unchanged; a task that changed is judged again."""
    for _ in range(_LOOKS):
        judged = {
            one.task.home: (one.task, findings)
            for one in store.resting_on(tasks)
            if (findings := audit.judged(one, pointers))
        }
        tasks = []
        for one in store.tasks_at(judged)[0]:
            task, findings = judged[one.task.home]
            if one.task == task:
                yield task, findings
            else:
                tasks.append(one)


def _is_enough(done: Audited, first: int, position: Position) -> bool:
    return position.second - first >= SECONDS_MAX or done.items >= ITEMS_MAX
