"""Workers die and are frozen at random while others change the tasks: whatever the order, each task
is changed once by the operation, what it counts is what it did, and it ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.bulk.marks import is_marked
from duewheel.rules.bulk.operation import LEASE_MS, Operation, State
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from tests.support.operations import (
    as_it_is,
    asked_for,
    in_one_thread,
    numbers,
    refused,
    retire_all,
    worked_on,
)
from tests.support.recorder import Call, Death
from tests.support.world import World

DUE_MS = 10 * 3_600_000  # far behind all that happens
MOVED_MS = 1_800_000  # by another caller
PER_SECOND = 2  # the pages are as small
KINDS = ("waits", "waits", "waits", "near", "cancelled", "dead", "of another business")
ACTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("reschedule", {"shift_seconds": 2}),
    ("reschedule", {"shift_seconds": 3_600}),
    ("reschedule", {"shift_seconds": -2}),
    ("reschedule", {}),  # to the instant at which the third task is due
    ("cancel", {}),
    ("run", {}),
    ("redrive", {}),
)
# What an action changes, if nobody else does; all else it refuses.
CHANGES = {
    "reschedule": {"waits"},
    "cancel": {"waits"},
    "run": {"waits"},
    "redrive": {"cancelled", "dead"},
}


class Step(NamedTuple):
    """What happens at an AWS call of a worker. `which`: of the tasks."""

    calls_before: int
    moment: str
    happens: str
    which: int


happenings = ("dies", "dies", "is frozen", "has company", "moved", "cancelled", "delivered")
steps = st.builds(
    Step,
    st.integers(0, 12),
    st.sampled_from(("before", "after")),
    st.sampled_from(happenings),
    st.integers(0, 5),
)
kinds = st.lists(st.sampled_from(KINDS), min_size=1, max_size=6)


class Walk:
    """One operation, its workers, and those who change its tasks beside it."""

    def __init__(
        self,
        world: World,
        kinds: list[str],
        action: str,
        members: dict[str, Any],
        *,
        by_filter: bool,
    ) -> None:
        self.world = world
        self.kinds = kinds
        self.action = action
        third_ms = world.clock.now_ms() + DUE_MS + 2_000
        self.tasks = [self._made(n, kind) for n, kind in enumerate(kinds)]
        self.others: list[list[str]] = [[] for _ in kinds]  # what others did to each task
        if action == "reschedule" and not members:
            members = {"due_at": rfc3339(third_ms)}
        if by_filter:
            members = members | {"filter": {"status": "dead"} if action == "redrive" else {}}
        else:
            members = members | {"ids": [task.task_id for task in self.tasks]}
        self.operation = asked_for(world, action, per_second=PER_SECOND, **members)
        self._steps: list[Step] = []
        self._left = 0

    def _made(self, number: int, kind: str) -> Task:
        biz_type = "shop" if kind == "of another business" else "orders"
        in_ms = 1_500 if kind == "near" else DUE_MS + number * 1_000
        task = self.world.created(in_ms, biz_type=biz_type)
        if kind in ("cancelled", "dead"):
            self._end(task, Status(kind))
        return self.world.read(task)

    def _end(self, task: Task, status: Status) -> bool:
        now_ms = self.world.clock.now_ms()
        ended = replace(
            task,
            status=status,
            settled_ms=now_ms,
            updated_ms=now_ms,
            expires_at=now_ms // 1000 + 30 * 86_400,
            version=task.version + 1,
        )
        return self.world.tasks.change(task, ended)

    # The workers

    def work(self, steps: list[Step]) -> Operation:
        """Until the steps are over; then a last worker, which nothing interrupts."""
        self._steps = list(steps)
        self._arm()
        while self._steps and self._now().state.is_open:
            self._one_worker()
            self.world.clock.advance_ms(LEASE_MS)
        self._steps = []
        self._arm()
        return worked_on(self.world, self.operation)

    def _now(self) -> Operation:
        with _unheard(self.world):
            return as_it_is(self.world, self.operation)

    def _one_worker(self) -> None:
        try:
            worked_on(self.world, self.operation)
        except Death:
            event("a worker died")

    def _arm(self) -> None:
        recorder = self.world.recorder
        recorder.before = recorder.after = None
        if self._steps:
            self._left = self._steps[0].calls_before
            setattr(recorder, self._steps[0].moment, self._hear)

    def _hear(self, _: Call) -> None:
        self._left -= 1
        if self._left >= 0:
            return
        step = self._steps.pop(0)
        if step.happens in ("moved", "cancelled", "delivered"):
            with _unheard(self.world):
                self._change(step.which % len(self.tasks), step.happens)
        self._arm()
        match step.happens:
            case "dies":
                raise Death
            case "is frozen":
                self.world.clock.advance_ms(LEASE_MS)
                self._one_worker()
            case "has company":
                self._one_worker()

    def _change(self, number: int, happens: str) -> None:
        """By another caller, or by a notifier."""
        task = self.world.read(self.tasks[number])
        try:
            match happens:
                case "moved":
                    change = Change(due_ms=task.due_ms + MOVED_MS)
                    self.world.change(task.task_id, change)
                case "cancelled":
                    if not task.is_live:
                        return
                    self.world.cancel(task.task_id)
                case _:
                    if not task.is_live or not self._end(task, Status.DELIVERED):
                        return
        except Refusal:
            return
        event(f"{happens} by another")
        self.others[number].append(happens)

    # What came of it

    def check(self, after: Operation) -> None:
        assert after.state is State.DONE
        now = [self.world.read(task) for task in self.tasks]
        changed = [is_marked(task, self.operation.mark) for task in now]
        for number, task in enumerate(now):
            own, others = changed[number], self.others[number]
            assert task.version == self.tasks[number].version + own + len(others), "changed once"
            self._check_due(task, number, own=own)
            if not others:
                assert own is self._is_meant(number), self.kinds[number]
        assert after.counts.changed == sum(changed)
        found = refused(self.world, self.operation)
        assert len(found) == after.counts.refused
        if after.wish.total is not None:
            assert sum(numbers(after)) == after.counts.looked_at == len(self.tasks)
            assert len({one.item_id for one in found}) == len(found)
        assert self.world.operations.open_ones().operations == []

    def _is_meant(self, number: int) -> bool:
        kind, wish = self.kinds[number], self.operation.wish
        if wish.filter and wish.filter.status is Status.DEAD:
            return kind == "dead"
        return kind in CHANGES[self.action] and wish.due_ms != self.tasks[number].due_ms

    def _check_due(self, task: Task, number: int, *, own: bool) -> None:
        """A shift and the moves of others add up, in whichever order they came."""
        wish, others = self.operation.wish, self.others[number]
        if wish.due_ms is None:
            moved_ms = MOVED_MS * others.count("moved") + 1_000 * (wish.shift_seconds or 0) * own
            assert task.due_ms == self.tasks[number].due_ms + moved_ms
        elif own:
            later_ms = {wish.due_ms + MOVED_MS * n for n in range(others.count("moved") + 1)}
            assert task.due_ms in later_ms


@contextmanager
def _unheard(world: World) -> Iterator[None]:
    """Calls that no worker makes."""
    recorder = world.recorder
    hooks, (recorder.before, recorder.after) = (recorder.before, recorder.after), (None, None)
    try:
        yield
    finally:
        recorder.before, recorder.after = hooks


@settings(
    max_examples=settings.default.max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(kinds, st.sampled_from(ACTIONS), st.booleans(), st.lists(steps, max_size=8))
def test_each_task_is_changed_and_counted_once_whoever_dies_is_frozen_or_comes_between(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    kinds: list[str],
    action: tuple[str, dict[str, Any]],
    by_filter: bool,
    steps: list[Step],
) -> None:
    in_one_thread(monkeypatch)
    retire_all(world)
    walk = Walk(world, kinds, *action, by_filter=by_filter)
    walk.check(walk.work(steps))
