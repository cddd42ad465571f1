"""A task that waits says why, by what the service has stored."""

from collections import Counter

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.delivery.page_lease import LEASE_MS, PageLease
from duewheel.rules.delivery.permits import Holding, Permits
from duewheel.rules.delivery.waiting import Reason, Stage, Wait
from duewheel.rules.preconditions import Precondition
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.queue_messages import Lane
from duewheel.rules.wheel.timing import DIRECT_LATE_MS
from duewheel.stores.businesses.permits import PermitStore
from tests.support.receiver import BUSY, OK, Received
from tests.support.recorder import Call
from tests.support.world import CALLER, FAR_MS, World
from tests.workflows.timers.test_fire import first_of, planned

HOST = "receiver.example"
SOON = RetryPolicy(attempts_max=3, delays_seconds=(60.0,))


def why(world: World, task: Task) -> Wait | None:
    return world.why_waiting(world.read(task))


def in_backlog(stage: Stage) -> Wait:
    return Wait(reason=Reason.BACKLOG, stage=stage)


def test_a_task_that_is_not_due_or_has_ended_does_not_wait_and_costs_no_request(
    world: World,
) -> None:
    task = world.created(in_ms=FAR_MS)
    found = world.read(task)
    world.recorder.clear()
    assert world.why_waiting(found) is None
    assert world.recorder.operations() == []
    world.come_up(task)
    assert world.read(task).status is Status.DELIVERED
    assert why(world, task) is None


def test_a_failed_task_waits_for_its_retry(world: World) -> None:
    task = world.created(retry=SOON)
    world.receiver.answer = lambda _: BUSY
    world.come_up(task)
    found = world.read(task)
    world.recorder.clear()
    expected = Wait(reason=Reason.RETRY, expected_ms=found.next_ms)
    assert world.why_waiting(found) == expected
    assert world.recorder.operations() == ["BatchGetItem"]


def test_a_task_of_a_paused_business_waits_for_it_parked_or_not(world: World) -> None:
    task = world.created(in_ms=FAR_MS, retry=SOON)
    world.receiver.answer = lambda _: BUSY
    world.come_up(task)
    pause(world, paused=True)
    assert why(world, task) == Wait(reason=Reason.PAUSED), "its retry would be parked"
    world.clock.advance_ms(10_000)
    parked = world.created(in_ms=60_000)
    world.come_up(parked)
    assert world.read(parked).parked
    assert why(world, parked) == Wait(reason=Reason.PAUSED)


@pytest.mark.parametrize("is_of_timer", [False, True])
def test_an_overdue_task_is_explained_by_three_requests_at_most(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.clock.set_ms(task.due_ms + 1)
    found = world.read(task)
    world.recorder.clear()
    assert world.why_waiting(found) == in_backlog(Stage.DISPATCH)
    assert Counter(world.recorder.operations()) == Counter(
        BatchGetItem=1,  # settings and health
        Query=1,  # leases
        GetItem=1,  # time pointer
    )


def test_a_dispatched_task_waits_for_a_notifier_also_when_one_has_crashed(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.dispatched(task)
    world.clock.set_ms(max(world.clock.now_ms(), task.due_ms))
    assert why(world, task) == in_backlog(Stage.NOTIFIER)
    take(world, task)
    world.clock.advance_ms(LEASE_MS + 1)
    assert why(world, task) == in_backlog(Stage.NOTIFIER)


def take(world: World, task: Task) -> PageLease:
    page = PageLease(task.home.second, task.home.shard)
    taken = world.pages.take(page, "crashed", world.clock.now_ms(), LEASE_MS)
    assert isinstance(taken, PageLease)
    return taken


def test_a_reason_that_cannot_be_read_leaves_the_task_readable(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.clock.set_ms(task.due_ms)
    found = world.read(task)
    for refused in ("BatchGetItem", "Query", "GetItem"):

        def refuse(call: Call, refused: str = refused) -> None:
            if call.operation == refused:
                raise ClientError({"Error": {"Code": "InternalServerError"}}, refused)

        world.recorder.before = refuse
        assert world.why_waiting(found) == Wait(reason=Reason.UNKNOWN)


def test_a_direct_task_whose_message_is_lost_waits_for_the_sweep(world: World) -> None:
    task = world.created(in_ms=1_000)
    assert task.entry.direct
    world.clock.set_ms(task.due_ms + 1)
    assert why(world, task) == in_backlog(Stage.NOTIFIER)
    world.clock.set_ms(task.due_ms + DIRECT_LATE_MS + 1_000)
    assert why(world, task) == in_backlog(Stage.SWEEP)


def test_a_task_of_a_page_that_was_done_without_it_waits_for_the_sweep(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.clock.set_ms(task.due_ms)
    world.pages.mark_done(take(world, task))
    assert why(world, task) == in_backlog(Stage.SWEEP)


def test_a_task_without_a_callable_callback_waits_as_any_other(world: World) -> None:
    task = world.created(in_ms=60_000, callback=HttpCallback(f"https://{HOST}/", "POST"))
    opened(world)
    world.come_up(task)
    found = replace(world.read(task), callback=None)
    waiting = world.why_waiting(found)
    assert waiting == Wait(reason=Reason.OPEN_BREAKER, expected_ms=found.next_ms)
