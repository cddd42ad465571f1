"""A worker of a bulk operation dies at any request, is frozen beside another, or is throttled or
refused: each task is changed once, and counted once."""

from collections import Counter
from functools import partial
from typing import Any

import pytest

from duewheel.rules.bulk.operation import LEASE_MS, RETRY_MS, TRIES_MAX, Operation, State
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.dynamodb import Throttled
from tests.support.bounds import quick_first
from tests.support.operations import (
    ALL,
    as_it_is,
    asked_for,
    in_one_thread,
    numbers,
    refused,
    retire_all,
    worked_on,
)
from tests.support.recorder import Call
from tests.support.world import World

HOUR_MS = 3_600_000
PER_SECOND = 2  # the pages are as small
TASKS = 5
SHIFT = {"filter": ALL, "shift_seconds": 60, "per_second": PER_SECOND}


class Prepared:
    """Ten tasks, one of which is past its cut-off, and an operation on them."""

    def __init__(self, world: World, action: str, **members: Any) -> None:
        self.world = world
        world.receiver.received.clear()
        self.near = world.created(1_500)
        news = [world.new(HOUR_MS + n * 1_000) for n in range(TASKS - 1)]
        found = world.created_many(news)
        self.tasks = [task for task in found if isinstance(task, Task)]
        self.due_ms = [task.due_ms for task in self.tasks]
        self.operation = asked_for(world, action, **members)

    def finish(self) -> Operation:
        """By the next workers; a dead one's lease runs out."""
        self.world.clock.advance_ms(LEASE_MS)
        return worked_on(self.world, self.operation)

    def check_shifted(self, after: Operation) -> None:
        assert after.state is State.DONE
        now = [self.world.read(task).due_ms for task in self.tasks]
        assert now == [ms + 60_000 for ms in self.due_ms]
        self.check_counts(after)

    def check_counts(self, after: Operation) -> None:
        assert numbers(after) == (TASKS - 1, 0, 1)
        assert after.counts.looked_at == TASKS
        found = refused(self.world, self.operation)
        assert [one.item_id for one in found] == [self.near.task_id]
        assert self.world.operations.open_ones().operations == []
        assert self.world.operations.open_ones().ended == []


def requests_of(world: World, action: str, **members: Any) -> list[Call]:
    """All requests of a worker that nothing interrupts."""
    prepared = Prepared(world, action, **members)
    world.recorder.clear()
    worked_on(world, prepared.operation)
    return list(world.recorder.calls)


@pytest.fixture
def _one_by_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    in_one_thread(monkeypatch)


MOMENTS = ("before", "after")
# Each request, or a part of them for the quick tests.
REACHED = [("before", 8), *((moment, 1) for moment in MOMENTS)]


@pytest.mark.usefixtures("_one_by_one")
@pytest.mark.parametrize(("moment", "step"), quick_first(REACHED, pytest.mark.exhaustive, 1))
def test_a_worker_that_dies_at_any_request_of_a_shift_moves_and_counts_each_task_once(
    world: World, moment: str, step: int
) -> None:
    number = len(requests_of(world, "reschedule", **SHIFT))
    retire_all(world)
    for at in range(1, number + 1, step):
        prepared = Prepared(world, "reschedule", **SHIFT)
        assert world.dies(partial(worked_on, world, prepared.operation), at, moment)
        prepared.check_shifted(prepared.finish())
        retire_all(world)


@pytest.mark.usefixtures("_one_by_one")
@pytest.mark.exhaustive
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("action", ["cancel", "run"])
def test_a_worker_that_dies_at_any_request_changes_and_counts_each_task_once(
    world: World, action: str, moment: str
) -> None:
    members = {"filter": ALL, "per_second": PER_SECOND}
    number = len(requests_of(world, action, **members))
    retire_all(world)
    for at in range(1, number + 1):
        prepared = Prepared(world, action, **members)
        assert world.dies(partial(worked_on, world, prepared.operation), at, moment)
        after = prepared.finish()
        assert after.state is State.DONE
        prepared.check_counts(after)
        versions = {world.read(task).version for task in prepared.tasks}
        assert versions == {2}, "changed once"
        retire_all(world)


@pytest.mark.usefixtures("_one_by_one")
@pytest.mark.parametrize("step", quick_first([8, 1], pytest.mark.exhaustive, 1))
def test_two_workers_that_meet_at_any_request_change_and_count_each_task_once(
    world: World, step: int
) -> None:
    """One is frozen for longer than its lease; another goes on; then the first thaws."""
    number = len(requests_of(world, "reschedule", **SHIFT))
    retire_all(world)
    for at in range(1, number + 1, step):
        prepared = Prepared(world, "reschedule", **SHIFT)
        left = at

        def other(_: Call, prepared: Prepared = prepared) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                world.recorder.before = None
                prepared.finish()

        world.recorder.before = other
        worked_on(world, prepared.operation)
        world.recorder.before = None
        prepared.check_shifted(prepared.finish())
        retire_all(world)


def test_two_operations_over_the_same_ids_both_take_effect(world: World) -> None:
    tasks = [world.created(HOUR_MS + n * 1_000) for n in range(4)]
    ids = [task.task_id for task in tasks]
    one, other = (
        asked_for(world, "reschedule", ids=ids, shift_seconds=60, per_second=PER_SECOND)
        for _ in range(2)
    )
    world.recorder.once("UpdateItem", lambda: world.run_operations.run(lambda: 900_000), at=4)
    worked_on(world, one)
    first, second = as_it_is(world, one), as_it_is(world, other)
    assert {first.state, second.state} == {State.DONE}
    assert numbers(first) == numbers(second) == (4, 0, 0)
    assert [world.read(task).due_ms for task in tasks] == [t.due_ms + 120_000 for t in tasks]


def test_what_is_throttled_is_tried_again_until_it_is_done(world: World) -> None:
    prepared = Prepared(world, "reschedule", **SHIFT)
    code = "ProvisionedThroughputExceededException"
    table = world.settings.wheel_table
    world.recorder.refuse("UpdateItem", code=code, times=30, of=table)
    after = worked_on(world, prepared.operation)
    world.recorder.before = None
    prepared.check_shifted(after)


def test_a_throttled_read_of_the_index_waits(world: World) -> None:
    prepared = Prepared(world, "cancel", filter=ALL)
    code = "ProvisionedThroughputExceededException"
    world.recorder.refuse("Query", code=code, times=40, of="by_business")
    after = worked_on(world, prepared.operation)
    world.recorder.before = None
    assert after.state is State.DONE
    assert numbers(after) == (TASKS - 1, 0, 1)


def test_an_error_is_raised_at_the_end_of_the_run_and_the_next_one_goes_on(world: World) -> None:
    prepared = Prepared(world, "reschedule", **SHIFT)
    world.recorder.refuse("UpdateItem", code="AccessDenied", times=1, of="due_ms")
    with pytest.raises(Exception, match="AccessDenied"):
        worked_on(world, prepared.operation)
    world.recorder.before = None
    failed = as_it_is(world, prepared.operation)
    assert (failed.state, failed.failures) == (State.RUNNING, 1)
    assert failed.last_problem is not None
    assert failed.last_problem.startswith("AccessDenied")
    after = prepared.finish()
    prepared.check_shifted(after)
    assert after.last_problem is None


def test_an_operation_whose_page_fails_again_and_again_has_failed(world: World) -> None:
    prepared = Prepared(world, "cancel", filter=ALL)
    world.recorder.refuse("UpdateItem", code="AccessDenied", of="cancelled")
    for _ in range(TRIES_MAX):
        assert as_it_is(world, prepared.operation).state is State.RUNNING
        with pytest.raises(Exception, match="AccessDenied"):
            worked_on(world, prepared.operation)
        world.clock.advance_ms(RETRY_MS)
    world.recorder.before = None
    after = as_it_is(world, prepared.operation)
    assert after.state is State.FAILED
    assert after.page is None
    assert world.operations.open_ones().operations == []
    assert all(world.read(task).is_live for task in prepared.tasks)


def test_an_error_of_one_operation_does_not_stop_another(world: World) -> None:
    prepared = Prepared(world, "cancel", filter=ALL, per_second=PER_SECOND)
    (other,) = [world.created(HOUR_MS, biz_type="shop")]
    theirs = asked_for(world, "cancel", filter=ALL, biz_type="shop")
    world.recorder.refuse("UpdateItem", code="AccessDenied", of=prepared.tasks[0].home.place)
    with pytest.raises(Exception, match="AccessDenied"):
        worked_on(world, prepared.operation)
    world.recorder.before = None
    assert as_it_is(world, theirs).state is State.DONE
    assert world.read(other).status is Status.CANCELLED


def test_the_answer_of_a_workers_write_may_be_lost(world: World) -> None:
    """The SDK repeats the write, which is refused then since it was made."""
    prepared = Prepared(world, "reschedule", **SHIFT)
    for at in (1, 2, 3):
        world.recorder.lose_answer(world.dynamodb, "UpdateItem", of="operations#", at=at)
    after = worked_on(world, prepared.operation)
    prepared.check_shifted(after)


def test_a_lost_lease_is_noticed_before_anything_is_counted(world: World) -> None:
    prepared = Prepared(world, "cancel", filter=ALL)
    claimed = world.operations.claim(
        as_it_is(world, prepared.operation), "a worker", world.clock.now_ms()
    )
    assert claimed is not None
    assert world.operations.claim(claimed, "another", world.clock.now_ms()) is None
    world.clock.advance_ms(LEASE_MS)
    other = world.operations.claim(claimed, "another", world.clock.now_ms())
    assert other is not None
    assert world.operations.write(claimed, claimed) is None
    assert world.operations.write(other, other) is not None


def test_a_throttled_write_of_the_record_is_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = Prepared(world, "reschedule", **SHIFT)
    write = type(world.operations).write
    seen: Counter[str] = Counter()

    def throttled(self: Any, *arguments: Any) -> Any:
        seen["writes"] += 1
        if seen["writes"] % 2:
            raise Throttled
        return write(self, *arguments)

    monkeypatch.setattr(type(world.operations), "write", throttled)
    prepared.check_shifted(worked_on(world, prepared.operation))
