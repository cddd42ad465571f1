"""Rare paths of the functions, each with the role of its function: with keys of AWS, and with a
customer managed key for tables and queues."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import boto3
import pytest

from duewheel.rules.businesses import lanes
from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.rules.wheel.queue_messages import PageMessage, decode
from duewheel.stores.businesses.health import HealthStore
from duewheel.stores.tasks import codec
from duewheel.wiring import businesses, process
from duewheel.wiring import wheel as wheel_wiring
from functions.authorizer import app as authorizer
from functions.bulk import app as bulk
from functions.notifier import app as notifier
from functions.stack_timers import app as stack_timers
from functions.sweeper import app as sweeper
from local.aws.emulator import Emulator
from local.aws.invocations import Invocation
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from tests.functions import ingest_poller
from tests.functions.conftest import Context, call, created, event_from, received, records_of, tick
from tests.functions.ingest_poller import TASK
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock
from tests.support.http_receiver import Receiver
from tests.support.rights_in_use import CUSTOMER_KEY, TEMPLATE
from tests.support.stack_requests import StackOfATeam, Storage


def found_slow(clock: ManualClock) -> None:
    store = HealthStore(process.dynamodb(), process.settings().registry_table)
    store.note_slow("orders", clock.now_ms() + 3_600_000)


@pytest.fixture(
    params=quick_first([{"KmsKeyArn": CUSTOMER_KEY}, {}], pytest.mark.exhaustive),
    ids=["a key of one's own", "keys of AWS"],
)
def resources(emulator: Emulator, request: pytest.FixtureRequest) -> Resources:
    ways = {
        "AuthMode": "keys",
        "IngestBusinesses": "*",
        "StackTimersAs": "duewheel-write",
    }
    ways |= request.param
    template = load_template(TEMPLATE, ways)
    return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


@pytest.fixture
def past_the_queue(emulator: Emulator) -> list[Invocation]:
    """The events that are sent by invocation while the queues refuse messages."""
    accepted: list[Invocation] = []
    emulator.accept_invocation = accepted.append
    return accepted


def drain() -> list[dict[str, Any]]:
    """Process all messages of the slice queue."""
    messages = received(process.settings().slice_queue_url)
    if messages:
        assert worked_off(messages) == {"batchItemFailures": []}
    return messages


def worked_off(messages: list[dict[str, Any]]) -> Any:
    return notifier.handler({"Records": records_of(messages)}, Context())


def sweep(clock: ManualClock) -> None:
    """Run the sweep over a little more than two minutes; the scheduler leads in the first."""
    for _ in range(3):
        clock.advance_ms(60_000)
        tick()
        sweeper.handler({}, Context())


@contextmanager
def queues_refuse() -> Iterator[None]:
    def answer(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request).startswith("SendMessage"):
            return do(Fault.FAILED, request, handle, Random(1))
        return handle(request)

    with answered_by(answer):
        yield


def test_a_create_uses_the_second_link_while_the_queue_refuses(
    wired: ManualClock, past_the_queue: list[Invocation]
) -> None:
    with queues_refuse():
        created(delay_seconds=0)
    assert len(past_the_queue) == 1


def test_failed_attempts_and_rescued_tasks_fall_due_again(
    wired: ManualClock, receiver: Receiver
) -> None:
    created(f"{receiver.origin}/503", delay_seconds=30, retry={"delays_seconds": [1]})
    lost = created(f"{receiver.origin}/200", delay_seconds=31)
    wired.advance_ms(30_000)
    tick()
    drain()
    wired.advance_ms(1_000)
    tick()
    received(process.settings().slice_queue_url)  # and is not delivered
    sweep(wired)
    drain()
    assert call("GET", f"/v1/tasks/{lost['task_id']}")[1]["status"] == "delivered"


def test_the_notifier_notes_the_business_of_a_task_that_died(
    wired: ManualClock, receiver: Receiver
) -> None:
    created(f"{receiver.origin}/410", delay_seconds=30)
    wired.advance_ms(30_000)
    tick()
    drain()
    assert businesses.seen_businesses().day_of("orders") is not None


def test_the_notifier_looks_for_other_businesses_before_it_publishes_slow_calls(
    wired: ManualClock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MEAN_MS_MAX", -1)
    for _ in range(lanes.CALLS_MIN):
        created(f"{receiver.origin}/200", delay_seconds=30)
    wired.advance_ms(30_000)
    tick()
    drain()
    assert len(receiver.bodies) == lanes.CALLS_MIN
    store = HealthStore(process.dynamodb(), process.settings().registry_table)
    assert store.read("orders").slow_until_ms == 0


def test_the_sweep_uses_the_second_link_while_the_queue_refuses(
    wired: ManualClock, past_the_queue: list[Invocation]
) -> None:
    created(delay_seconds=30)
    with queues_refuse():
        wired.advance_ms(30_000)
        tick()
        before = len(past_the_queue)
        sweep(wired)
    assert len(past_the_queue) > before


def test_a_page_of_the_slow_lane_is_sent_there_again_after_its_notifier_died(
    wired: ManualClock,
) -> None:
    found_slow(wired)
    created(delay_seconds=30)
    wired.advance_ms(30_000)
    tick()
    drain()
    (message,) = received(process.settings().slow_queue_url)
    asked = decode(message["Body"])
    assert isinstance(asked, PageMessage)
    begun = PageLease(asked.second, asked.shard, page=asked.page)
    assert isinstance(wheel_wiring.pages().take(begun, "gone", wired.now_ms(), 50_000), PageLease)
    assert worked_off([message])["batchItemFailures"], "hidden: another run has begun it"
    boto3.client("sqs").delete_message(
        QueueUrl=process.settings().slow_queue_url, ReceiptHandle=message["ReceiptHandle"]
    )
    sweep(wired)
    (again,) = received(process.settings().slow_queue_url)
    assert decode(again["Body"]) == asked


def test_the_notifier_disables_a_timer_whose_receiver_answers_stop(
    wired: ManualClock, receiver: Receiver
) -> None:
    timer = {
        "biz_type": "orders",
        "name": "close",
        "every_seconds": 10,
        "callback": {"url": f"{receiver.origin}/410"},
        "disable_on_stop": True,
    }
    status, made = call("POST", "/v1/timers", timer)
    assert status == 201, made
    for _ in range(25):
        tick()
        drain()
        wired.advance_ms(1_000)
    assert call("GET", f"/v1/timers/{made['timer_id']}")[1]["enabled"] is False


def test_the_notifier_reads_a_task_again_after_a_concurrent_beat(wired: ManualClock) -> None:
    path = "/v1/businesses/orders/tasks/dog"
    beat = {"callback": {"url": "https://receiver.example/"}}
    assert call("PUT", path, {**beat, "delay_seconds": 30})[0] == 201
    status, task = call("PUT", path, {**beat, "delay_seconds": 600})
    assert status == 200
    home = address_of_task(task["task_id"]).place
    met: list[str] = []

    def answer(request: Any, handle: Handle) -> Reply | None:
        """Change the task right before the notifier does."""
        if json.loads(request.body).get("Key", {}).get("place") == {"S": home}:
            met.append(operation_of(request))
            if met == ["UpdateItem"]:
                _raise_version(task)
        return handle(request)

    wired.advance_ms(30_000)
    tick()
    with answered_by(answer):
        drain()
    # The second update is that of the other caller.
    assert met == ["UpdateItem", "UpdateItem", "GetItem", "UpdateItem"]


def _raise_version(task: dict[str, Any]) -> None:
    config = process.settings()
    boto3.client("dynamodb").update_item(
        TableName=config.wheel_table,
        Key=codec.key(address_of_task(task["task_id"]), config.buckets),
        UpdateExpression="SET version = version + :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )


def test_the_authorizer_reads_a_key_and_records_the_day_of_use(wired: ManualClock) -> None:
    new = {"name": "orders", "grants": [{"right": "read", "businesses": "orders"}]}
    status, made = call("POST", "/v1/keys", new)
    assert status == 201, made
    event = event_from("authorizer-request.json")
    event["identitySource"] = [f"Bearer {made['key']}"]
    assert authorizer.handler(event, Context())["isAuthorized"] is True
    _, key = call("GET", f"/v1/keys/{made['key_id']}")
    assert key["last_used_on"] is not None


def test_messages_create_keyed_crowded_and_near_tasks_while_the_queue_refuses(
    wired: ManualClock, past_the_queue: list[Invocation]
) -> None:
    task = {**TASK, "biz_type": "orders"}
    status, old = call("POST", "/v1/tasks", {**task, "key": "order-17"})
    assert status == 201, old
    assert call("DELETE", f"/v1/tasks/{old['task_id']}")[0] == 200
    ingest_poller.send({**task, "key": "order-17"})
    for _ in range(2):
        ingest_poller.send({"tasks": [task] * 400})
    assert ingest_poller.poll() == 0
    ingest_poller.send({**task, "delay_seconds": 0})
    with queues_refuse():
        assert ingest_poller.poll() == 0
    assert len(past_the_queue) == 1
    ingest_poller.send("{rubbish")
    assert ingest_poller.poll() == 0
    assert len(ingest_poller.dead_letters()) == 1


@pytest.fixture
def stack(wired: ManualClock, monkeypatch: pytest.MonkeyPatch) -> StackOfATeam:
    storage = Storage()
    monkeypatch.setattr(stack_timers, "HTTPSConnection", storage.connection)

    def send(event: dict[str, Any]) -> Any:
        stack_timers.handler(event, Context(lambda: 180_000))
        return storage.taken[-1].body

    return StackOfATeam(send=send)


SECONDLY = {
    "biz_type": "orders",
    "name": "beat",
    "every_seconds": 1,
    "callback": {"url": "https://receiver.example/"},
}


def test_a_timer_of_a_stack_is_announced_by_the_slice_queue_and_by_the_second_link(
    wired: ManualClock, stack: StackOfATeam, past_the_queue: list[Invocation]
) -> None:
    assert call("PUT", "/v1/businesses/orders", {"priority": "high"})[0] == 201
    assert stack.create(SECONDLY)["Status"] == "SUCCESS"
    drain()  # the notifier plans its runs
    with queues_refuse():
        assert stack.update({**SECONDLY, "every_seconds": 2})["Status"] == "SUCCESS"
    assert past_the_queue, "to take back what was planned"


def operated(**members: Any) -> dict[str, Any]:
    """What a worker makes of an operation."""
    status, operation = call("POST", "/v1/operations", {"biz_type": "orders", **members})
    assert status == 201, operation
    bulk.handler({}, Context(lambda: 900_000))
    status, operation = call("GET", f"/v1/operations/{operation['operation_id']}")
    assert (status, operation["state"]) == (200, "done"), operation
    return dict(operation)


def test_a_worker_changes_tasks_with_keys_and_in_order_and_redrives_them(
    wired: ManualClock, past_the_queue: list[Invocation]
) -> None:
    in_order = {"flow": {"prefixes": {"customer-": {"in_order": True}}}}
    status, answer = call("PUT", "/v1/businesses/orders", in_order)
    assert status == 201, answer
    tasks = [
        created(delay_seconds=3_600 + n, key=f"order-{n}", flow_key="customer-7") for n in range(3)
    ]
    moved = operated(action="reschedule", shift_seconds=-60, filter={"flow_key": "customer-7"})
    assert (moved["changed"], moved["refused"]) == (3, 0)
    absent = tasks[0]["task_id"]
    cancelled = operated(action="cancel", ids=[one["task_id"] for one in tasks])
    assert cancelled["changed"] == 3
    wired.advance_ms(1_000)
    due = {"due_from": "2027-01-15T08:00:00Z", "due_to": "2027-01-16T00:00:00Z"}
    redriven = operated(action="redrive", filter={"status": "cancelled", **due})
    assert redriven["changed"] == 3
    assert operated(action="redrive", ids=[absent])["refused"] == 1
    assert operated(action="redrive", filter={"status": "dead"})["changed"] == 0


def test_a_worker_announces_near_tasks_by_the_queue_and_past_it(
    wired: ManualClock, past_the_queue: list[Invocation]
) -> None:
    created(delay_seconds=3_600)
    assert operated(action="run", filter={})["changed"] == 1
    assert received(process.settings().slice_queue_url)
    created(delay_seconds=3_600)
    before = len(past_the_queue)
    with queues_refuse():
        assert operated(action="run", filter={})["changed"] == 1
    assert len(past_the_queue) > before + 1, "the worker's own and that of the task"


def test_the_sweeper_starts_a_worker_that_is_missing(
    wired: ManualClock, past_the_queue: list[Invocation]
) -> None:
    created(delay_seconds=3_600)
    status, _ = call(
        "POST", "/v1/operations", {"biz_type": "orders", "action": "cancel", "filter": {}}
    )
    assert status == 201
    past_the_queue.clear()  # the one of the api is lost
    sweeper.handler({}, Context())
    assert [one.function for one in past_the_queue] == [process.settings().bulk_function]


def test_the_notifier_removes_the_order_item_of_a_task_that_is_gone(
    wired: ManualClock, receiver: Receiver
) -> None:
    assert call("PUT", "/v1/businesses/orders", {"flow": {"default": {"in_order": True}}})[0] == 201
    gone, later = (
        created(receiver.url, flow_key="customer-7", delay_seconds=seconds)["task_id"]
        for seconds in (100, 120)
    )
    config = process.settings()
    key = codec.key(address_of_task(gone), config.buckets)
    boto3.client("dynamodb").delete_item(TableName=config.wheel_table, Key=key)
    for _ in range(30):
        tick()
        drain()
        wired.advance_ms(5_000)
    assert call("GET", f"/v1/tasks/{later}")[1]["status"] == "delivered"
