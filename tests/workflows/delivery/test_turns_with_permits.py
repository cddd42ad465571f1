"""A business that limits both its rate and its calls in flight: a call takes its turns when it has
its permits."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.rate_limit import US_PER_MS
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.delivery.reservations import PERMIT_WAIT_MS
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.businesses.permits import PermitStore
from duewheel.workflows.delivery.call_rate import LimitCallRate, Turns
from tests.support.limited_business import a_task
from tests.support.receiver import OK, Received
from tests.support.recorder import Call
from tests.support.world import FAR_MS, World
from tests.workflows.delivery.test_permits import fall_due, hold


@pytest.fixture
def store(world: World) -> PermitStore:
    return PermitStore(world.dynamodb, world.settings.registry_table)


def both_limits(world: World, in_flight: int = 2, per_second: float = 10.0, **own: object) -> None:
    world.configured("orders", calls_in_flight=in_flight, calls_per_second=per_second, **own)


def turn_requests(world: World) -> list[str]:
    return [
        call.operation
        for call in world.recorder.calls
        if call.request.get("Key", {}).get("record") == {"S": "calls"}
    ]


def called_ms(world: World) -> list[int]:
    return sorted(one.at_ms for one in world.receiver.received)


def takes(world: World, *durations_ms: int) -> None:
    """The calls last so long, one after the other."""
    left = list(durations_ms)

    def answer(_: Received) -> Outcome:
        world.clock.advance_ms(left.pop(0) if left else 0)
        return OK

    world.receiver.answer = answer


def test_a_task_that_finds_no_permit_takes_no_turn(world: World, store: PermitStore) -> None:
    both_limits(world)
    task = world.created(FAR_MS)
    hold(store, 2, task.next_ms + 60_000)
    waiting = fall_due(world, task)
    assert (waiting.status, waiting.attempts) == (Status.PENDING, 0)
    assert turn_requests(world) == ["GetItem"]
    hold(store, 0, 0)
    assert fall_due(world, waiting).status is Status.DELIVERED


def test_calls_that_waited_for_a_permit_begin_at_turns_of_then(world: World) -> None:
    both_limits(world, in_flight=1)
    tasks = [world.created(FAR_MS) for _ in range(8)]
    takes(world, 9_000)
    fall_due(world, tasks[0])
    first, *others = called_ms(world)
    assert others[0] >= first + 9_000
    assert others[-1] - others[0] >= 500  # the first may use the turn that has just passed
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}


def test_a_page_that_finds_permits_reads_turns_once_and_takes_them_in_two_writes(
    world: World,
) -> None:
    """The first call takes its turn alone; the others come during its write. A third one creates
    the record."""
    both_limits(world, in_flight=20)
    tasks = [world.created(FAR_MS) for _ in range(20)]
    fall_due(world, tasks[0])
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    requests = turn_requests(world)
    assert requests.count("GetItem") == 1
    assert requests.count("UpdateItem") <= 3


def test_one_limit_alone_makes_the_requests_that_it_made(world: World) -> None:
    world.configured("orders", calls_per_second=10.0)
    fall_due(world, world.created(FAR_MS))
    assert turn_requests(world) == ["UpdateItem"] * 2  # with the creation of the record
    world.recorder.calls.clear()
    world.configured("parcels", calls_in_flight=2)
    fall_due(world, world.created(FAR_MS, biz_type="parcels"))
    assert turn_requests(world) == []


def test_tasks_beyond_the_patience_line_up_without_a_permit(world: World) -> None:
    both_limits(world, in_flight=1)
    tasks = [world.created(FAR_MS) for _ in range(40)]
    fall_due(world, tasks[0])
    waiting = [one for task in tasks if (one := world.read(task)).status is Status.PENDING]
    places = sorted(task.next_ms for task in waiting)
    assert len(waiting) == 19
    assert {later - at for at, later in pairwise(places)} == {100}
    assert all(task.reservation and not task.attempts for task in waiting)


def test_a_task_with_a_permit_does_not_stand_behind_the_line_of_the_rate(world: World) -> None:
    both_limits(world)
    (business,) = world.business_cache.many(["orders"]).values()
    rate, now_ms = business.call_rate, world.clock.now_ms()
    assert rate is not None
    world.turns.line_up("orders", rate, 50, now_ms * US_PER_MS)
    limit = LimitCallRate(world.clock, world.turns)
    newcomer = [a_task(1, now_ms)]
    assert limit.within(newcomer, business, "orders", rate)[0] == []
    soon, later = limit.within(newcomer, business, "orders", rate, how=Turns.TAKEN_WITH_PERMITS)
    assert [at for _, at in soon] == [now_ms]
    assert later == []


@pytest.mark.parametrize("of_business", [None, 5])
def test_a_task_with_a_permit_of_its_business_waits_briefly_for_a_turn_of_its_key(
    world: World, of_business: int | None
) -> None:
    flow = Flow(FlowLimits(calls_per_second=10.0, calls_in_flight=5))
    world.configured("orders", flow=flow, calls_in_flight=of_business)
    (business,) = world.business_cache.many(["orders"]).values()
    rate, now_ms = business.key_rate("key"), world.clock.now_ms()
    assert rate is not None
    limit = LimitCallRate(world.clock, world.turns)
    tasks = [a_task(number, now_ms) for number in range(20)]
    soon, later = limit.within(tasks, business, "orders#key", rate, how=Turns.TAKEN_WITH_PERMITS)
    waits_ms = 2_000 if of_business is None else PERMIT_WAIT_MS
    assert max(at for _, at in soon) == now_ms + min(waits_ms // 100 * 100, 1_900)
    assert len(soon) + len(later) == 20


def test_to_look_for_turns_takes_none(world: World) -> None:
    both_limits(world)
    (business,) = world.business_cache.many(["orders"]).values()
    rate, now_ms = business.call_rate, world.clock.now_ms()
    assert rate is not None
    limit = LimitCallRate(world.clock, world.turns)

    def look(tasks: Sequence[Task]) -> tuple[list[int], list[int]]:
        soon, later = limit.within(tasks, business, "orders", rate, how=Turns.LOOKED_FOR)
        return [at - now_ms for _, at in soon], [held.at_ms - now_ms for _, held in later]

    few = [a_task(number, now_ms) for number in range(3)]
    assert look(few) == look(few) == ([0, 100, 200], [])
    many = [a_task(number, now_ms) for number in range(25)]
    assert look(many)[1] == [2_100, 2_200, 2_300, 2_400]
    soon, _ = limit.within(few, business, "orders", rate, how=Turns.TAKEN_WITH_PERMITS)
    assert [at - now_ms for _, at in soon] == [0, 100, 200]


def test_a_page_whose_turns_cannot_be_written_fails_and_loses_no_task(
    world: World, store: PermitStore
) -> None:
    both_limits(world, in_flight=3)
    tasks = [world.created(FAR_MS) for _ in range(3)]
    error = {"Error": {"Code": "InternalServerError", "Message": ""}}

    def refuse(call: Call) -> None:
        is_turns = call.request.get("Key", {}).get("record") == {"S": "calls"}
        if call.operation == "UpdateItem" and is_turns:
            raise ClientError(error, call.operation)  # type: ignore[arg-type]

    world.recorder.before = refuse
    world.dispatch_until(tasks[0].next_ms // 1000)
    world.clock.set_ms(tasks[0].next_ms)
    (message,) = world.receive()
    with pytest.raises(ClientError):
        world.handle(message)
    assert world.receiver.received == []
    assert store.read("orders").held == {}
    world.recorder.before = None
    world.clock.advance_ms(100_000)
    world.handle(message)
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}


@pytest.mark.parametrize("limit", [{"calls_in_flight": 1}, {"calls_per_second": 0.5}])
def test_a_first_limit_holds_within_five_seconds_for_tasks_that_wait_in_a_notifier(
    world: World, limit: dict[str, float]
) -> None:
    world.configured("orders", timeout_seconds=5.0)
    tasks = [world.created(FAR_MS) for _ in range(8)]
    set_ms: list[int] = []

    def answer(_: Received) -> Outcome:
        if not set_ms:
            world.configured("orders", **limit)
            set_ms.append(world.clock.now_ms())
        world.clock.advance_ms(3_000)
        return OK

    world.receiver.answer = answer
    world.dispatch_until(tasks[0].next_ms // 1000)
    world.clock.set_ms(tasks[0].next_ms)
    one_at_a_time = world.notifier(call_slots=1)
    (message,) = world.receive()
    world.handle(message, one_at_a_time)
    called = called_ms(world)
    assert called[-1] <= set_ms[0] + KEPT_MS
    assert len(called) < 4
    left = [one for task in tasks if (one := world.read(task)).status is Status.PENDING]
    assert {task.attempts for task in left} == {0}
    (rest,) = world.receive()
    world.handle(rest)
    record = "permits" if "calls_in_flight" in limit else "calls"
    written = [call.request.get("Key", {}).get("record") for call in world.recorder.calls]
    assert {"S": record} in written


@pytest.mark.parametrize("raised", [10.0, None])
def test_tasks_in_line_keep_their_places_when_the_rate_is_raised_and_new_ones_go_before_them(
    world: World, raised: float | None
) -> None:
    world.configured("orders", calls_per_second=0.1)
    tasks = [world.created(FAR_MS) for _ in range(3)]
    fall_due(world, tasks[0])
    waiting = [one for task in tasks if (one := world.read(task)).status is Status.PENDING]
    places = [task.next_ms for task in waiting]
    world.configured("orders", calls_per_second=raised)
    world.clock.advance_ms(KEPT_MS)
    new = world.created(1_000)
    assert fall_due(world, new).status is Status.DELIVERED
    assert [world.read(task).next_ms for task in waiting] == places
    assert max(places) > world.clock.now_ms()
    for task in sorted(waiting, key=lambda task: task.next_ms):
        assert fall_due(world, task).status is Status.DELIVERED
    assert called_ms(world)[2:] == sorted(places)
