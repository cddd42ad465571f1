"""A host that keeps failing is probed, not hammered. Its tasks wait and use up no attempts."""

import asyncio
import os
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.delivery.circuit_breaker import CALLS_MIN, SETTLE_MS, WAIT_FIRST_MS
from duewheel.rules.refusals import InvalidField
from duewheel.rules.tasks.task import Reservation, Status, Task
from duewheel.rules.wheel.queue_messages import decode
from duewheel.stores import registry_keys
from duewheel.stores.businesses.cache import KEPT_MS, BusinessCache
from duewheel.workflows.delivery.deliver_message import Deliver
from tests.support.bounds import quick_first
from tests.support.receiver import BUSY, OK, Received
from tests.support.recorder import Call
from tests.support.world import FAR_MS, World

PROVE = os.environ.get("HYPOTHESIS_PROFILE") == "prove"
DEAD, HEALTHY = "dead.example", "well.example"
TIMEOUT_MS = 10_000


class Hosts:
    """`down`: the hosts whose receivers do not work."""

    def __init__(self, world: World) -> None:
        self.down = {DEAD}
        world.receiver.answer = self.answer

    def answer(self, received: Received) -> Outcome:
        return BUSY if received.url.split("/")[2] in self.down else OK


@pytest.fixture
def hosts(world: World) -> Hosts:
    return Hosts(world)


def at(host: str) -> HttpCallback:
    return HttpCallback(f"https://{host}/paid", "POST")


def created(world: World, count: int, host: str = DEAD, **fields: Any) -> list[Task]:
    news = [world.new(callback=at(host), **fields) for _ in range(count)]
    return [task for task in world.created_many(news) if isinstance(task, Task)]


def run_for(world: World, seconds: int, stride: int = 1) -> None:
    """Dispatch and deliver the tasks that have fallen due, `stride` seconds at a time."""
    for _ in range(0, seconds, stride):
        world.dispatch_until(world.clock.now_ms() // 1000 + stride)
        world.drain()


def open_breaker(world: World, biz_type: str = "orders", host: str = DEAD) -> Breaker:
    """Open the breaker by failing calls of tasks that have a single attempt."""
    once = RetryPolicy(attempts_max=1)
    created(world, CALLS_MIN, host, in_ms=0, biz_type=biz_type, retry=once)
    world.drain()
    world.receiver.received.clear()
    return breaker_of(world, host, biz_type)


def opened_by_another(
    world: World, wait_ms: int = WAIT_FIRST_MS, biz_type: str = "orders"
) -> Breaker:
    """Open the breaker as another notifier would."""
    now_ms = world.clock.now_ms()
    breaker = Breaker(host=DEAD, since_ms=now_ms, until_ms=now_ms + wait_ms, owner_token="another")
    world.health_store.open(biz_type, breaker, BusinessHealth(), now_ms)
    return breaker


def breaker_of(world: World, host: str = DEAD, biz_type: str = "orders") -> Breaker:
    breaker = world.health_store.read(biz_type).breaker_of(host)
    assert breaker is not None
    return breaker


def calls_of(world: World, *tasks: Task) -> list[Received]:
    ids = {task.task_id for task in tasks}
    return [received for received in world.receiver.received if received.task_id in ids]


def another_notifier(world: World) -> Deliver:
    known = BusinessCache(replace(world.businesses, reads_health=True), world.clock)
    return world.notifier(known=known)


def statuses(world: World, tasks: list[Task]) -> set[tuple[Status, int]]:
    return {(read.status, read.attempts) for read in map(world.read, tasks)}


def test_many_tasks_wait_for_a_failing_host_and_are_called_when_it_recovers(
    world: World, hosts: Hosts
) -> None:
    open_breaker(world)
    crowd = created(world, 1_000 if PROVE else 20, in_ms=1_000)
    run_for(world, 70, stride=2)
    calls = len(world.receiver.received)
    assert 2 <= calls <= 4  # about 10, 20 and 40 seconds after the opening
    read = [world.read(task) for task in crowd]
    assert {task.status for task in read} == {Status.PENDING}
    assert sum(task.attempts for task in read) == calls
    assert breaker_of(world).probes_failed == calls

    hosts.down.clear()
    begins_ms = world.clock.now_ms()
    waits_ms = 2 * breaker_of(world).until_ms - begins_ms - breaker_of(world).since_ms
    while any(world.read(task).is_live for task in crowd):
        run_for(world, 6, stride=2)
        assert world.clock.now_ms() <= begins_ms + waits_ms + 60_000
    assert {world.read(task).status for task in crowd} == {Status.DELIVERED}
    assert len(world.receiver.received) == calls + len(crowd)
    assert world.health_store.read("orders").breakers == ()


@pytest.mark.exhaustive
def test_a_task_that_has_been_due_for_a_day_is_called_until_it_ends(
    world: World, hosts: Hosts
) -> None:
    twice = RetryPolicy(attempts_max=2, delays_seconds=(60.0,))
    day_ms = 86_400_000
    old, young = created(world, 1, in_ms=-day_ms, retry=twice), created(world, 1, retry=twice)
    opened_by_another(world, wait_ms=300_000)
    run_for(world, 120)
    assert statuses(world, old) == {(Status.DEAD, 2)}
    assert statuses(world, young) == {(Status.PENDING, 0)}


@pytest.mark.exhaustive
def test_postponed_tasks_are_spread_over_a_wait(world: World, hosts: Hosts) -> None:
    crowd = created(world, 100, in_ms=60_000)
    world.dispatch_until(crowd[0].due_ms // 1000)
    breaker = opened_by_another(world)
    world.drain()
    instants = sorted(world.read(task).next_ms for task in crowd)
    gaps = {after - before for before, after in pairwise(instants)}
    assert gaps <= {99, 100, 101}
    assert 0 <= instants[0] - breaker.until_ms <= WAIT_FIRST_MS / 100


def test_other_hosts_and_the_same_host_of_other_businesses_are_called_as_usual(
    world: World, hosts: Hosts
) -> None:
    opened_by_another(world)
    elsewhere = created(world, 3, HEALTHY, in_ms=1_000)
    of_another = created(world, 3, in_ms=1_000, biz_type="invoices")
    waiting = created(world, 3, in_ms=1_000)
    run_for(world, 2)
    assert statuses(world, elsewhere) == {(Status.DELIVERED, 1)}
    assert statuses(world, of_another) == {(Status.PENDING, 1)}
    assert statuses(world, waiting) == {(Status.PENDING, 0)}
    assert [r.at_ms for r in calls_of(world, *elsewhere)] == [elsewhere[0].due_ms] * 3


@pytest.mark.exhaustive
def test_tasks_that_wait_for_call_slots_are_postponed_once_the_breaker_opens(
    world: World, hosts: Hosts
) -> None:
    world.configured("orders", calls_in_flight=5)
    crowd = created(world, 100, in_ms=1_000)
    run_for(world, 2)
    assert CALLS_MIN <= len(world.receiver.received) <= CALLS_MIN + 10
    attempts = [world.read(task).attempts for task in crowd]
    assert sum(attempts) == len(world.receiver.received)


def test_a_blocked_task_shows_its_next_instant_and_can_be_cancelled(
    world: World, hosts: Hosts
) -> None:
    breaker = opened_by_another(world)
    (task,) = created(world, 1, in_ms=1_000)
    run_for(world, 2)
    waiting = world.read(task)
    assert waiting.next_ms >= breaker.until_ms
    assert (waiting.due_ms, waiting.history, waiting.last_error) == (task.due_ms, (), None)
    world.cancel(task.task_id)
    hosts.down.clear()
    run_for(world, 30)
    assert world.receiver.received == []


def test_a_task_that_is_blocked_past_its_grace_expires(world: World, hosts: Hosts) -> None:
    opened_by_another(world)
    (task,) = created(world, 1, in_ms=1_000, expires_after_seconds=5)
    run_for(world, 30)
    assert statuses(world, [task]) == {(Status.EXPIRED, 0)}
    assert calls_of(world, task) == []


def test_a_failed_probe_doubles_the_wait(world: World, hosts: Hosts) -> None:
    first = opened_by_another(world)
    crowd = created(world, 5, in_ms=1_000)
    run_for(world, 25)
    second = breaker_of(world)
    assert second.probes_failed == 1
    assert second.since_ms == first.since_ms
    (probe,) = world.receiver.received
    assert 2 * WAIT_FIRST_MS <= second.until_ms - probe.at_ms <= 2.4 * WAIT_FIRST_MS + 100
    assert sorted(world.read(task).attempts for task in crowd) == [0, 0, 0, 0, 1]


def test_a_caller_lets_the_next_due_call_probe_the_host_at_once(world: World, hosts: Hosts) -> None:
    opened_by_another(world, wait_ms=300_000)
    of_another = opened_by_another(world, biz_type="invoices")
    crowd = created(world, 3, in_ms=1_000)
    run_for(world, 2)
    assert statuses(world, crowd) == {(Status.PENDING, 0)}
    world.probe_host("orders", DEAD)
    for task in crowd:
        world.change.run(task.task_id)
    world.drain()
    assert len(world.receiver.received) == 1, "one call, also by what a notifier has cached"
    assert breaker_of(world).probes_failed == 1

    hosts.down.clear()
    world.probe_host("orders", DEAD)
    waits = next(task for task in crowd if world.read(task).next_ms > world.clock.now_ms() + 5_000)
    world.change.run(waits.task_id)
    world.drain()
    assert world.read(waits).status is Status.DELIVERED
    assert world.health_store.read("orders").breakers == ()
    assert breaker_of(world, biz_type="invoices") == of_another


def test_a_host_that_is_not_blocked_is_not_probed(world: World) -> None:
    with pytest.raises(InvalidField, match="no open breaker") as refused:
        world.probe_host("orders", DEAD)
    assert refused.value.field == "host"


def test_a_notifier_that_dies_while_it_probes_leaves_the_probe_to_another(
    world: World, hosts: Hosts
) -> None:
    breaker = opened_by_another(world)
    crowd = created(world, 3, in_ms=1_000)
    run_for(world, 2)
    died: list[int] = []

    def dies(received: Received) -> Outcome:
        died.append(received.at_ms)
        raise OSError("the environment is gone")

    world.receiver.answer = dies
    with pytest.raises(OSError, match="gone"):
        run_for(world, 30)
    claimed = breaker_of(world)
    assert claimed.until_ms == died[0] + TIMEOUT_MS + SETTLE_MS
    assert claimed.probes_failed == breaker.probes_failed

    world.receiver.answer = hosts.answer
    hosts.down.clear()
    world.receiver.received.clear()
    run_for(world, 150, stride=10)
    world.sweep_past(world.clock.now_ms() // 1000 - 130)
    assert statuses(world, crowd) == {(Status.DELIVERED, 1)}
    assert min(received.at_ms for received in world.receiver.received) >= claimed.until_ms


def test_only_one_of_two_notifiers_probes(world: World, hosts: Hosts) -> None:
    breaker = opened_by_another(world)
    crowd = created(world, 2, in_ms=1_000)
    other = another_notifier(world)
    run_for(world, 2)
    world.receiver.received.clear()
    world.clock.set_ms(max(world.read(task).next_ms for task in crowd))
    world.lead_once()
    messages = world.receive()
    assert len(messages) == 2

    async def both_at_once() -> None:
        deadline_ms = world.clock.now_ms() + 60_000
        await asyncio.gather(
            world.deliver(decode(messages[0]["Body"]), "one", deadline_ms),
            other(decode(messages[1]["Body"]), "other", deadline_ms),
        )

    world.loop.run_until_complete(both_at_once())
    assert len(world.receiver.received) == 1
    assert breaker_of(world).probes_failed == breaker.probes_failed + 1


def test_a_breaker_that_one_notifier_opens_blocks_calls_of_another_within_seconds(
    world: World, hosts: Hosts
) -> None:
    other = another_notifier(world)
    created(world, 1, HEALTHY, in_ms=0)
    for message in world.receive():
        world.handle(message, other)  # caches the business for some seconds
    open_breaker(world)
    world.clock.advance_ms(KEPT_MS)
    (task,) = created(world, 1, in_ms=0)
    for message in world.receive():
        world.handle(message, other)
    assert statuses(world, [task]) == {(Status.PENDING, 0)}
    assert calls_of(world, task) == []


@pytest.mark.parametrize("ahead_ms", quick_first([-2_000, 2_000], pytest.mark.exhaustive))
def test_clock_skew_between_notifiers_only_shifts_the_wait(
    world: World, hosts: Hosts, ahead_ms: int
) -> None:
    world.clock.advance_ms(ahead_ms)
    opened_by_another(world)
    world.clock.advance_ms(-ahead_ms)
    crowd = created(world, 10, in_ms=1_000)
    hosts.down.clear()
    run_for(world, 40)
    assert statuses(world, crowd) == {(Status.DELIVERED, 1)}
    assert all(received.at_ms >= crowd[0].due_ms for received in world.receiver.received)


def test_a_reservation_of_a_turn_is_dropped_when_the_breaker_opens(
    world: World, hosts: Hosts
) -> None:
    hosts.down.clear()
    version = world.configured("orders", calls_per_second=0.1).updated_ms
    crowd = created(world, 4, in_ms=60_000)
    world.come_up(crowd[0])
    reserved = [task for task in map(world.read, crowd) if task.is_live]
    assert [task.reservation for task in reserved] == [
        Reservation(t.next_ms, version) for t in reserved
    ]
    assert len(reserved) == 3
    breaker = opened_by_another(world, wait_ms=15_000)
    run_for(world, 12)
    (first,) = [task for task in map(world.read, reserved) if task.reservation is None]
    assert (first.status, first.attempts) == (Status.PENDING, 0)
    assert first.next_ms >= breaker.until_ms
    run_for(world, 60, stride=2)
    assert statuses(world, crowd) == {(Status.DELIVERED, 1)}


def test_answers_that_concern_single_tasks_do_not_open_the_breaker(world: World) -> None:
    world.receiver.answer = lambda received: Outcome(Verdict.RETRY, "not found", status_code=404)
    tasks = created(world, 50, in_ms=0)
    world.drain()
    assert statuses(world, tasks) == {(Status.PENDING, 1)}
    assert world.health_store.read("orders") == BusinessHealth()


def test_healthy_calls_write_no_health_record(world: World) -> None:
    world.recorder.clear()
    created(world, 50, HEALTHY, in_ms=0)
    world.drain()
    kinds = [c.request.get("Key", {}).get("kind", {}).get("S", "") for c in world.recorder.calls]
    assert not any(kind.startswith("standing") for kind in kinds)


def refuse_health(world: World) -> None:
    record = str(registry_keys.health("orders"))
    world.recorder.refuse("GetItem", "UpdateItem", "PutItem", "DeleteItem", of=record)


def test_a_failing_registry_opens_no_breaker_and_stops_no_page(
    world: World, hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_health(world)
    tasks = created(world, 50, in_ms=0)
    world.drain()
    assert statuses(world, tasks) == {(Status.PENDING, 1)}
    assert "standing-unknown" in {getattr(record, "action", "") for record in caplog.records}


@pytest.mark.exhaustive
def test_a_registry_that_fails_during_a_probe_loses_no_task(world: World, hosts: Hosts) -> None:
    opened_by_another(world)
    crowd = created(world, 5, in_ms=1_000)
    hosts.down.clear()

    refuse_health(world)
    run_for(world, 30)
    assert statuses(world, crowd) == {(Status.PENDING, 0)}
    world.recorder.before = None
    run_for(world, 40)
    assert statuses(world, crowd) == {(Status.DELIVERED, 1)}


@pytest.mark.parametrize("operation", ["BatchWriteItem", "UpdateItem"])
def test_a_crash_while_tasks_are_postponed_loses_none_and_calls_none_twice(
    world: World, hosts: Hosts, operation: str
) -> None:
    crowd = created(world, 5, in_ms=FAR_MS)
    world.dispatch_until(crowd[0].due_ms // 1000)
    opened_by_another(world)
    (message,) = world.receive()
    crashes_at = 1 if operation == "BatchWriteItem" else 3  # before any home is named; after two

    def crash(call: Call) -> None:
        operations = [one.operation for one in world.recorder.calls if _is_of_wheel(world, one)]
        if call.operation == operation and operations.count(operation) >= crashes_at - 1:
            raise OSError("the environment is gone")

    world.recorder.clear()
    world.recorder.before = crash
    with pytest.raises(OSError, match="gone"):
        world.handle(message)
    world.recorder.before = None
    hosts.down.clear()
    run_for(world, 120, stride=10)
    assert statuses(world, crowd) == {(Status.DELIVERED, 1)}
    assert len(world.receiver.received) == len(crowd)


def _is_of_wheel(world: World, call: Call) -> bool:
    table = world.settings.wheel_table
    return table in (call.request.get("TableName"), *call.request.get("RequestItems", ()))


@pytest.mark.parametrize("recovers", [False, True])
def test_the_host_of_a_damaged_breaker_gets_one_probe_which_writes_the_breaker_anew(
    world: World, hosts: Hosts, recovers: bool
) -> None:
    open_breaker(world)
    key = registry_keys.health("orders")
    damaged = {**key, f"host#{DEAD}": {"S": "?"}}
    world.unrecorded.put_item(TableName=world.settings.registry_table, Item=damaged)
    world.clock.advance_ms(KEPT_MS)
    if recovers:
        hosts.down.clear()
    tasks = created(world, 30, in_ms=0)
    world.drain()
    if recovers:
        assert statuses(world, tasks) == {(Status.DELIVERED, 1)}
        assert world.health_store.read("orders").breakers == ()
    else:
        assert len(world.receiver.received) == 1
        assert breaker_of(world).probes_failed == 1


def test_a_breaker_with_a_wait_of_years_is_probed_immediately(world: World, hosts: Hosts) -> None:
    breaker = Breaker(
        host=DEAD, since_ms=0, until_ms=world.clock.now_ms() + 10**11, owner_token="nobody"
    )
    world.health_store.open("orders", breaker, BusinessHealth(), world.clock.now_ms())
    hosts.down.clear()
    tasks = created(world, 3, in_ms=0)
    world.drain()
    assert statuses(world, tasks) == {(Status.DELIVERED, 1)}
    assert world.health_store.read("orders").breakers == ()
