"""A call lasts as long as its own callback allows, and what depends on that follows."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.callbacks.aws.eventbridge import EventBridgeCallback
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.aws.sns import SnsCallback
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.aws.stepfunctions import StepFunctionsCallback
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import Callback, HttpCallback, OnOutcome, Told
from duewheel.rules.delivery import permits as rules
from duewheel.rules.delivery.circuit_breaker import SETTLE_MS
from duewheel.rules.delivery.permits import Holding, Wanted
from duewheel.rules.tasks.task import Status
from duewheel.stores.businesses.permits import PermitStore
from duewheel.targets.aws.calls import AwsCalls
from duewheel.workflows.delivery.attempt_call import SETTLE_RESERVE_MS
from duewheel.workflows.delivery.permits import Pool, SlotState, Taken
from tests.support import timers
from tests.support.receiver import OK, Received
from tests.support.world import FAR_MS, LAMBDA_MS, World

HOOK = HttpCallback("https://receiver.example/paid", timeout_seconds=25)
BUS = "arn:aws:events:us-east-1:123456789012:event-bus/b"


def test_a_task_is_called_with_the_timeout_of_its_callback_and_others_with_the_setting(
    world: World,
) -> None:
    world.configured("orders", timeout_seconds=4.0)
    slow, quick, usual = (
        world.created(FAR_MS, callback=HOOK),
        world.created(FAR_MS, callback=replace(HOOK, timeout_seconds=0.5)),
        world.created(FAR_MS),
    )
    world.fall_due(slow, quick, usual)
    found = {received.task_id: received.timeout_seconds for received in world.receiver.received}
    assert found == {slow.task_id: 25, quick.task_id: 0.5, usual.task_id: 4}


@pytest.mark.parametrize(
    "callback",
    [
        LambdaCallback("inbox-function", timeout_seconds=3),
        SqsCallback("https://sqs.us-east-1.amazonaws.com/123456789012/q", timeout_seconds=3),
        SnsCallback("arn:aws:sns:us-east-1:123456789012:t", timeout_seconds=3),
        EventBridgeCallback(BUS, "shop", "due", timeout_seconds=3),
        StepFunctionsCallback(
            "arn:aws:states:us-east-1:123456789012:stateMachine:m", timeout_seconds=3
        ),
    ],
)
def test_a_call_to_aws_has_the_timeout_of_its_callback(
    world: World, monkeypatch: pytest.MonkeyPatch, callback: Callback
) -> None:
    seconds: list[float] = []
    failed = Outcome(Verdict.RETRY, "no whole reply")

    async def called(self: AwsCalls, _: Any, __: Any, timeout_seconds: float, **___: Any) -> Any:
        seconds.append(timeout_seconds)
        return failed

    monkeypatch.setattr(AwsCalls, "__call__", called)
    task = world.created(FAR_MS, callback=callback)
    world.fall_due(task)
    assert seconds == [3]
    assert world.read(task).attempts == 1


def test_a_notice_is_called_with_the_timeout_of_its_own_callback(world: World) -> None:
    told = OnOutcome((Told.DELIVERED,), replace(HOOK, url="https://told.example"))
    world.fall_due(world.created(FAR_MS, on_outcome=told))
    world.clock.advance_ms(1_000)
    world.drain()
    found = [(one.url, one.timeout_seconds) for one in world.receiver.received]
    assert found == [("https://receiver.example/paid", 10), ("https://told.example", 25)]


def test_a_run_is_called_with_the_timeout_that_its_timer_has_at_the_call(world: World) -> None:
    timer = timers.made(world, 200, callback=HOOK)
    world.drain()
    runs = timers.occurrences(world, timer)
    world.fall_due(runs[0])
    timers.patched(world, timer, callback=replace(HOOK, timeout_seconds=2))
    world.clock.set_ms(runs[1].next_ms - 60_000)
    world.fall_due(runs[1])
    assert [one.timeout_seconds for one in world.receiver.received] == [25, 2]


@pytest.mark.parametrize(("seconds", "is_called"), [(5, True), (25, False)])
def test_a_call_begins_only_if_its_own_timeout_fits_into_the_rest_of_the_run(
    world: World, seconds: float, is_called: bool
) -> None:
    task = world.created(FAR_MS, callback=replace(HOOK, timeout_seconds=seconds))
    world.dispatch_until(task.home.second)
    world.clock.set_ms(task.next_ms)
    (message,) = world.receive()
    world.handle(message, lambda_ms=20_000 + SETTLE_RESERVE_MS)
    assert bool(world.receiver.received) is is_called
    world.clock.advance_ms(LAMBDA_MS)
    world.drain()
    assert world.receiver.task_ids == [task.task_id]
    assert world.read(task).status is Status.DELIVERED


# Permits


@pytest.mark.parametrize("seconds", [1.0, 25.0, None])
def test_a_permit_is_leased_for_the_timeout_of_its_call(
    world: World, seconds: float | None
) -> None:
    world.configured("orders", calls_in_flight=1, timeout_seconds=8.0)
    store = PermitStore(world.dynamodb, world.settings.registry_table)
    held_ms: list[int] = []

    def answer(received: Received) -> Outcome:
        (holding,) = store.read("orders").held.values()
        held_ms.append(holding.until_ms - received.at_ms)
        return OK

    world.receiver.answer = answer
    world.fall_due(world.created(FAR_MS, callback=replace(HOOK, timeout_seconds=seconds)))
    timeout_ms = 8_000 if seconds is None else round(seconds * 1000)
    (held,) = held_ms
    assert timeout_ms <= held <= timeout_ms + rules.BEGIN_MS


def test_a_pool_renews_its_permits_for_a_longer_call_before_that_begins(world: World) -> None:
    task, latest_ms = world.created(FAR_MS), world.clock.now_ms() + 60_000
    wanted_ms: list[int] = []

    def change(wanted: Wanted) -> Taken:
        wanted_ms.append(wanted.until_ms - world.clock.now_ms())
        return Taken(Holding(wanted.count, wanted.until_ms), wanted.count)

    async def lived() -> None:
        pool = Pool(world.clock, change, "a")
        first = await pool.acquire(task, 0, latest_ms, 1_000)
        assert pool.is_sure(first, 1_000)
        assert not pool.is_sure(first, 20_000)  # its callback was changed while it waited
        second = await pool.acquire(task, 0, latest_ms, 20_000)
        assert second.state is SlotState.FREE
        assert pool.is_sure(second, 20_000)
        for _ in range(2):
            pool.begins()
            pool.release(100)
        await pool.close()

    asyncio.run(lived())
    assert wanted_ms[:2] == [1_000 + rules.BEGIN_MS, 20_000 + rules.BEGIN_MS]


def test_a_probe_claims_its_breaker_for_the_timeout_of_its_call(world: World) -> None:
    host, now_ms = "receiver.example", world.clock.now_ms()
    breaker = Breaker(host=host, since_ms=now_ms, until_ms=now_ms + 1_000, owner_token="another")
    world.health_store.open("orders", breaker, BusinessHealth(), now_ms)
    claimed_ms: list[int] = []

    def answer(received: Received) -> Outcome:
        claimed = world.health_store.read("orders").breaker_of(host)
        assert claimed is not None
        claimed_ms.append(claimed.until_ms - received.at_ms)
        return OK

    world.receiver.answer = answer
    world.fall_due(world.created(FAR_MS, callback=HOOK))
    assert claimed_ms == [25_000 + SETTLE_MS]
