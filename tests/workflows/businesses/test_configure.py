"""Settings of a business apply to its tasks, including those that are pending already."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import InvalidField, UnreadableItem
from duewheel.rules.tasks.task import Status
from duewheel.rules.tasks.updates import Change
from duewheel.stores.businesses.cache import KEPT_MS
from tests.support.receiver import BUSY, GONE, OK
from tests.support.recorder import Call
from tests.support.world import CALLER, World

URL = "https://receiver.example/paid"
ONCE = RetryPolicy(attempts_max=1)


def configure(world: World, biz_type: str = "orders", **settings: Any) -> None:
    world.configure_business(biz_type, settings, Precondition(), by=CALLER)


@pytest.fixture
def called(world: World, monkeypatch: pytest.MonkeyPatch) -> list[tuple[HttpCallback, float]]:
    """The callbacks that were made, each with its timeout."""
    calls: list[tuple[HttpCallback, float]] = []
    receive = world.receiver.call

    async def call(callback: Any, headers: Any, body: Any, timeout_seconds: float) -> Outcome:
        calls.append((callback, timeout_seconds))
        return await receive(callback, headers, body, timeout_seconds)

    monkeypatch.setattr(world.receiver, "call", call)
    return calls


Calls = list[tuple[HttpCallback, float]]


def test_a_callback_is_filled_in_when_it_is_called(world: World, called: Calls) -> None:
    configure(world, callback=HttpCallback("https://old.example/", "PUT", (("A", "1"), ("B", "2"))))
    own = HttpCallback(method="", headers=(("a", "own"),))
    nothing, some = world.created(callback=None), world.created(callback=own)
    elsewhere = world.created(callback=HttpCallback(URL, "GET"))
    new = HttpCallback("https://new.example/", "", (("A", "3"), ("B", "4")))
    configure(world, callback=new)
    world.clock.advance_ms(1)
    world.fall_due(nothing)

    made = {callback.headers: callback for callback, _ in called}
    assert made[(("A", "3"), ("B", "4"))].url == "https://new.example/"
    assert made[()].url == URL  # another origin, so the headers do not go there
    assert made[(("a", "own"), ("B", "4"))].url == "https://new.example/"
    assert sorted(callback.method for callback, _ in called) == ["GET", "POST", "POST"]
    for task in (nothing, some, elsewhere):
        assert world.read(task).status is Status.DELIVERED
    assert world.read(nothing).callback is None


def test_a_payload_that_the_default_callback_cannot_carry_is_refused(world: World) -> None:
    configure(world, callback=SqsCallback("https://sqs.us-east-1.example/1/orders", is_raw=True))
    task = world.created(callback=None, payload='"text"')
    with pytest.raises(InvalidField, match="must be a string") as refused:
        world.created(callback=None, payload="{}")
    assert refused.value.field == "payload"
    with pytest.raises(InvalidField, match="must be a string"):
        world.change(task.task_id, Change(sets_payload=True, payload="17"))
    assert world.read(task).payload == '"text"'


def test_a_change_by_another_process_takes_effect_when_the_cache_expires(
    world: World, called: Calls
) -> None:
    configure(world, timeout_seconds=2.0)
    world.created(in_ms=0)
    world.drain()
    other = world.businesses.read_whole("orders")
    cache = type(world.business_cache)(world.businesses, world.clock)
    elsewhere = replace(world.configure_business, known=cache)
    elsewhere("orders", {"timeout_seconds": 3.0}, Precondition(version=other.version), by=CALLER)
    world.created(in_ms=0)
    world.drain()
    world.clock.advance_ms(KEPT_MS)
    world.created(in_ms=0)
    world.drain()
    assert [timeout for _, timeout in called] == [2.0, 2.0, 3.0]


def test_a_task_dies_with_a_reason_when_its_business_has_no_callback_any_more(world: World) -> None:
    configure(world, callback=HttpCallback(URL))
    task = world.created(callback=None)
    configure(world, callback=None)
    dead = world.fall_due(world.read(task))
    assert (dead.status, dead.attempts) == (Status.DEAD, 1)
    assert dead.last_error == "neither the task nor its business says where to call"
    assert world.receiver.received == []


def test_a_host_that_is_no_longer_allowed_is_not_called(world: World) -> None:
    task, other = world.created(), world.created(biz_type="devices")
    configure(world, allowed_hosts=("other.example",))
    dead = world.fall_due(world.read(task))
    assert (dead.status, dead.reason) == (Status.DEAD, "stopped")
    assert dead.last_error == "host-not-allowed: its business does not allow this host"
    assert world.read(other).status is Status.DELIVERED


def test_the_retry_policy_of_a_task_takes_precedence_over_that_of_its_business(
    world: World,
) -> None:
    own = world.created(retry=RetryPolicy(2, delays_seconds=(7.0,)))
    usual, other = world.created(), world.created(biz_type="devices")
    configure(world, retry=ONCE)
    world.receiver.answer = lambda received: BUSY
    world.fall_due(own)
    assert world.read(usual).status is Status.DEAD
    assert world.read(own).next_ms == world.clock.now_ms() + 7_000
    assert world.read(other).next_ms == world.clock.now_ms() + 3_000  # the default


def test_a_failed_task_past_its_maximum_age_is_not_retried_until_it_is_redriven(
    world: World,
) -> None:
    configure(world, retry=RetryPolicy(delays_seconds=(40.0,), max_age_seconds=60.0))
    task = world.created()
    world.receiver.answer = lambda received: BUSY
    assert world.fall_due(world.read(task)).attempts == 1
    dead = world.fall_due(world.read(task))
    assert (dead.attempts, dead.reason) == (2, "older than max_age_seconds")
    world.redrive(task.task_id)
    world.drain()
    assert (world.read(task).status, world.read(task).attempts) == (Status.PENDING, 1)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Outcome(Verdict.STOP, "", status_code=410), Status.PENDING),
        (Outcome(Verdict.RETRY, "", status_code=404), Status.DEAD),
        (Outcome(Verdict.RETRY, "", status_code=503), Status.PENDING),
        (Outcome(Verdict.RETRY, "no answer"), Status.PENDING),
        (Outcome(Verdict.STOP, "", status_code=410, stopped_by_receiver=True), Status.DEAD),
        (OK, Status.DELIVERED),
    ],
)
def test_a_business_sets_which_responses_end_a_task(
    world: World, answer: Outcome, status: Status
) -> None:
    configure(world, retry_statuses=(410,), stop_statuses=(404,))
    task = world.created(in_ms=0)
    world.receiver.answer = lambda received: answer
    world.drain()
    assert world.read(task).status is status


def test_retention_is_that_of_the_business_however_a_task_ends(world: World) -> None:
    configure(world, retention_days=3, retry=ONCE)
    delivered, dead, cancelled = (world.created() for _ in range(3))
    expired = world.created(expires_after_seconds=0.5)
    other = world.created(biz_type="devices")
    failing = {dead.task_id}
    world.receiver.answer = lambda received: GONE if received.task_id in failing else OK
    world.cancel(cancelled.task_id)
    world.dispatch_until(delivered.due_ms // 1000)
    world.clock.set_ms(delivered.due_ms + 900)
    world.drain()
    for task, status in (
        (delivered, Status.DELIVERED),
        (dead, Status.DEAD),
        (cancelled, Status.CANCELLED),
        (expired, Status.EXPIRED),
    ):
        ended = world.read(task)
        assert ended.status is status
        assert ended.settled_ms is not None
        assert ended.expires_at == ended.settled_ms // 1000 + 3 * 86_400
    ended = world.read(other)
    assert ended.settled_ms is not None
    assert ended.expires_at == ended.settled_ms // 1000 + 30 * 86_400


def test_a_task_that_waits_for_a_call_slot_past_its_grace_expires_uncalled(world: World) -> None:
    world.deliver = world.notifier(call_slots=1)
    first = world.created()
    second = world.created(in_ms=60_001, expires_after_seconds=1.0)

    def slow(received: Any) -> Outcome:
        world.clock.advance_ms(5_000)
        return OK

    world.receiver.answer = slow
    world.dispatch_until(first.due_ms // 1000)
    world.clock.set_ms(second.due_ms)
    world.drain()
    assert world.read(first).status is Status.DELIVERED
    expired = world.read(second)
    assert (expired.status, expired.attempts) == (Status.EXPIRED, 0)
    assert world.receiver.task_ids == [first.task_id]


def test_a_business_is_read_once_a_page_before_anything_is_due_at_half_a_unit(world: World) -> None:
    tasks = [world.created() for _ in range(5)]
    world.clock.advance_ms(10_000)
    reads: list[tuple[int, bool]] = []

    def note(call: Call) -> None:
        request = call.request.get("RequestItems", {}).get(world.settings.registry_table)
        if call.operation == "BatchGetItem" and request is not None:
            reads.append((world.clock.now_ms(), request["ConsistentRead"]))

    world.recorder.before = note
    second = tasks[0].due_ms // 1000
    world.clock.set_ms(second * 1000 - world.settings.lead_ms)
    world.pointer()  # reads the time of AWS
    assert world.dispatch.tick(second - 1) == second
    world.drain()
    assert len(world.receiver.received) == 5
    assert reads == [(second * 1000 - world.settings.lead_ms, False)]


def test_damaged_settings_stop_no_other_business_and_lose_no_task(world: World) -> None:
    configure(world, retention_days=3)
    task, other = world.created(), world.created(biz_type="devices")
    key = {"kind": {"S": "business"}, "record": {"S": "orders"}}
    item = world.unrecorded.get_item(TableName=world.settings.registry_table, Key=key)["Item"]
    damaged = {**item, "settings": {"S": "nonsense"}}
    world.unrecorded.put_item(TableName=world.settings.registry_table, Item=damaged)
    world.business_cache.forget("orders")
    waiting = world.fall_due(world.read(task))
    assert (waiting.status, waiting.attempts) == (Status.PENDING, 1)
    assert waiting.last_error == "the settings of its business cannot be read"
    assert world.read(other).status is Status.DELIVERED
    with pytest.raises(UnreadableItem):
        configure(world, retention_days=4)
    world.unrecorded.put_item(TableName=world.settings.registry_table, Item=item)
    world.clock.advance_ms(KEPT_MS)
    assert world.fall_due(world.read(task)).status is Status.DELIVERED


# Notices of death
