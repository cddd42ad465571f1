"""A task that waits says why, by what the service has stored."""

from collections import Counter
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.callbacks.outcome import Outcome
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
def test_a_task_of_a_paused_flow_key_waits_for_it_parked_or_not(
    world: World, is_of_timer: bool
) -> None:
    task = world.created(in_ms=FAR_MS, flow_key="a", retry=SOON)
    world.receiver.answer = lambda _: BUSY
    world.come_up(task)
    world.configured("orders", paused_flow_keys={"a": True})
    assert why(world, task) == Wait(reason=Reason.PAUSED), "its retry would be parked"
    world.clock.advance_ms(10_000)
    if is_of_timer:
        parked = first_of(world, planned(world, flow_key="a"))
    else:
        parked = world.created(in_ms=60_000, flow_key="a")
    world.come_up(parked)
    assert world.read(parked).parked
    assert why(world, parked) == Wait(reason=Reason.PAUSED)
    world.configured("orders", paused_flow_keys={"a": None})
    assert why(world, parked) == in_backlog(Stage.PLACE)


def pause(world: World, *, paused: bool) -> None:
    world.configure_business.pause("orders", Precondition(), paused=paused, by=CALLER)


def test_a_parked_task_of_a_resumed_business_waits_for_its_place(world: World) -> None:
    pause(world, paused=True)
    world.clock.advance_ms(10_000)
    task = world.created(in_ms=60_000)
    world.come_up(task)
    pause(world, paused=False)
    assert why(world, task) == in_backlog(Stage.PLACE)
    world.drain()
    released = world.read(task)
    assert not released.parked
    expected = replace(in_backlog(Stage.PLACE), expected_ms=released.next_ms)
    assert world.why_waiting(released) == expected


def test_a_task_without_a_turn_waits_for_its_place_in_the_line(world: World) -> None:
    world.configured("orders", calls_per_second=0.1)
    tasks = [world.created(in_ms=FAR_MS) for _ in range(3)]
    world.come_up(tasks[0])
    found = [world.read(task) for task in tasks]
    waiting = [world.why_waiting(task) for task in found if task.is_live]
    instants = [task.next_ms for task in found if task.is_live]
    assert len(waiting) == 2
    assert waiting == [Wait(reason=Reason.RATE, expected_ms=instant) for instant in instants]


def opened(world: World, host: str = HOST) -> Breaker:
    now_ms = world.clock.now_ms()
    breaker = Breaker(host=host, since_ms=now_ms, until_ms=now_ms + 600_000, owner_token="other")
    world.health_store.open("orders", breaker, BusinessHealth(), now_ms)
    return breaker


def test_a_task_whose_host_is_blocked_waits_for_its_breaker(world: World) -> None:
    task = world.created(in_ms=60_000)
    breaker = opened(world)
    world.come_up(task)
    found = world.read(task)
    waiting = Wait(
        reason=Reason.OPEN_BREAKER,
        expected_ms=found.next_ms,
        host=HOST,
        until_ms=breaker.until_ms,
    )
    assert world.why_waiting(found) == waiting
    world.health_store.close("orders", breaker)
    assert why(world, task) == replace(waiting, until_ms=None)


def test_the_reason_for_another_instant_does_not_count(world: World) -> None:
    task = world.created(in_ms=60_000)
    opened(world)
    world.come_up(task)
    found = world.read(task)
    moved = replace(found, next_ms=found.next_ms + 1_000)
    waiting = world.why_waiting(moved)
    assert waiting == replace(in_backlog(Stage.PLACE), expected_ms=moved.next_ms)


def test_a_task_without_a_permit_waits_for_other_calls_and_the_business_shows_them(
    world: World,
) -> None:
    world.configured("orders", calls_in_flight=2)
    task = world.created(in_ms=FAR_MS)
    world.dispatch_until(task.due_ms // 1000)
    others = Permits(version=1, held={"other": Holding(2, task.due_ms + 60_000)})
    store = PermitStore(world.dynamodb, world.settings.registry_table)
    store.change("orders", lambda _: others)
    store.line_up("orders", 30, task.due_ms, 1_000_000, is_late=False)
    (message,) = world.receive()
    world.handle(message)
    found = world.read(task)
    waiting = Wait(reason=Reason.CONCURRENCY, expected_ms=found.next_ms)
    assert world.why_waiting(found) == waiting
    usage = world.read_businesses.one("orders").usage
    assert usage.permits is not None
    assert usage.permits.used == 2
    assert usage.permits.waiting >= 1


def test_a_task_of_the_slow_lane_waits_for_it_until_it_is_begun_or_postponed(world: World) -> None:
    world.found_slow("orders")
    task = world.created(in_ms=FAR_MS)
    world.handle(world.dispatched(task))
    (passed,) = world.receive(Lane.SLOW)
    world.clock.advance_ms(5_000)
    assert why(world, task) == Wait(reason=Reason.SLOW_LANE)
    world.sqs.delete_message(
        QueueUrl=world.slow_queue.url, ReceiptHandle=passed["ReceiptHandle"]
    )  # lost
    for _ in range(5):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        world.sweep_once()
    found = world.read(task)
    assert found.next_ms > found.due_ms
    assert world.why_waiting(found) == Wait(reason=Reason.SLOW_LANE, expected_ms=found.next_ms)


def test_a_direct_task_that_was_passed_to_the_slow_lane_waits_for_it(world: World) -> None:
    world.found_slow("orders")
    task = world.created(in_ms=1_000)
    world.clock.advance_ms(2_000)
    world.drain(Lane.MAIN)
    assert task.entry.direct
    assert why(world, task) == Wait(reason=Reason.SLOW_LANE)


def test_a_task_is_being_called_while_a_run_has_its_page(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    found: list[Wait | None] = []

    def answer(_: Received) -> Outcome:
        world.clock.advance_ms(300)
        world.recorder.clear()
        found.append(why(world, task))
        return OK

    world.receiver.answer = answer
    message = world.dispatched(task)
    world.handle(message)
    (waiting,) = found
    assert waiting is not None
    assert waiting.reason is Reason.CALLING
    assert waiting.run is not None
    assert waiting.since_ms is not None
    assert waiting.since_ms <= task.due_ms


def test_a_task_that_waits_for_a_permit_in_a_notifier_waits_for_other_calls(world: World) -> None:
    world.configured("orders", calls_in_flight=1)
    tasks = [world.created(in_ms=FAR_MS) for _ in range(3)]
    found: list[Wait | None] = []

    def answer(_: Received) -> Outcome:
        world.clock.advance_ms(300)
        found.append(why(world, tasks[-1]))
        return OK

    world.receiver.answer = answer
    world.handle(world.dispatched(tasks[0]))
    assert Wait(reason=Reason.CONCURRENCY) in found


def test_a_task_waits_for_its_flow_key(world: World) -> None:
    flow = Flow(FlowLimits(calls_per_second=1.0))
    world.configured("orders", flow=flow)
    tasks = [world.created(in_ms=FAR_MS, flow_key="key") for _ in range(9)]
    world.handle(world.dispatched(tasks[0]))
    world.clock.set_ms(tasks[0].due_ms)
    put_off = [world.read(task) for task in tasks if not world.read(task).history]
    assert put_off
    waiting = {world.why_waiting(task) for task in put_off}
    assert waiting == {Wait(reason=Reason.FLOW_KEY, expected_ms=t.next_ms) for t in put_off}


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


@pytest.mark.parametrize("what", ["run", "redriven"])
def test_a_task_that_a_caller_makes_due_says_what_keeps_it_from_its_call(
    world: World, what: str
) -> None:
    task = world.created(in_ms=600_000)
    if what == "run":
        due = world.change.run(task.task_id)
    else:
        world.cancel(task.task_id)
        world.clock.set_ms(task.due_ms)
        due = world.redrive(task.task_id)
    assert world.why_waiting.of_due(due) is None

    breaker = opened(world)
    until_ms = breaker.until_ms
    blocked = Wait(reason=Reason.OPEN_BREAKER, expected_ms=until_ms, host=HOST, until_ms=until_ms)
    assert world.why_waiting.of_due(due) == blocked
    world.clock.set_ms(until_ms)
    assert world.why_waiting.of_due(due) is None, "it is the probe"
    pause(world, paused=True)
    assert world.why_waiting.of_due(due) == Wait(reason=Reason.PAUSED)


def test_a_redriven_run_says_that_the_host_of_its_timer_is_blocked(world: World) -> None:
    run = world.read(first_of(world, planned(world, callback=HttpCallback(f"https://{HOST}/"))))
    opened(world)
    waiting = world.why_waiting.of_due(replace(run, next_ms=world.clock.now_ms()))
    assert waiting is not None
    assert (waiting.reason, waiting.host) == (Reason.OPEN_BREAKER, HOST)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"calls_in_flight": 1}, Reason.CONCURRENCY),
        ({"flow": Flow(FlowLimits(calls_in_flight=1))}, Reason.FLOW_KEY),
        ({"calls_per_second": 0.1}, Reason.RATE),
        ({"flow": Flow(FlowLimits(calls_per_second=0.1))}, Reason.FLOW_KEY),
    ],
)
def test_a_task_that_a_caller_makes_due_says_that_a_limit_is_reached(
    world: World, settings: dict[str, Any], reason: Reason
) -> None:
    world.configured("orders", **settings)
    called = world.created(in_ms=FAR_MS, flow_key="a")
    due = replace(world.created(in_ms=10 * FAR_MS, flow_key="a"), next_ms=world.clock.now_ms())
    assert world.why_waiting.of_due(due) is None
    found: list[Wait | None] = []

    def answer(_: Received) -> Outcome:
        found.append(world.why_waiting.of_due(due))
        return OK

    world.receiver.answer = answer
    world.handle(world.dispatched(called))
    assert found[0] == Wait(reason=reason)
