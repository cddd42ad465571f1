"""Each alarm goes off by its fault, without any other, and is over when that is mended."""

import ast
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest

from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.tasks import codec
from local.aws.template import source_of
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do
from tests.support.bounds import quick_first
from tests.support.watched_stack import TASKS_PER_DAY, WatchedStack

ROOT = Path(__file__).parents[2]
BUCKETS = 10_000_000  # as the template has it by default
MINUTES_MAX = 20
HELD_MS = 45 * 60_000
FAR_SECONDS = 200  # in no profile near, so a slice's message and not one of its own


@pytest.fixture
def watched() -> Iterator[WatchedStack]:
    """As it is when it has run for a while. None goes off while it starts: nothing is told yet."""
    with WatchedStack() as running:
        assert running.off() == set()
        for _ in range(6):
            running.passes(minutes=1)
            assert running.off() == set()
        yield running


def goes_off(watched: WatchedStack, alarm: str, minute: Callable[[], None], *follows: str) -> None:
    """Minute by minute, and until then nothing does but what this one follows."""
    for _ in range(MINUTES_MAX):
        minute()
        if off := watched.off() - set(follows):
            assert off == {alarm}
            return
    raise AssertionError(f"{alarm} did not go off")


def is_over(watched: WatchedStack, alarm: str, *followed_by: str) -> None:
    """As the wheel turns again; and in the meantime nothing goes off that does not follow."""
    for _ in range(MINUTES_MAX):
        watched.passes(minutes=1)
        off = watched.off()
        assert off <= {alarm, *followed_by}
        if not off:
            return
    raise AssertionError(f"{alarm} is not over")


def creates(watched: WatchedStack, inbox: str, number: int = 1, **more: Any) -> dict[str, Any]:
    task = watched.service.new_task(inbox, **{"delay_seconds": 20, **more})
    status, answer = watched.service.call("POST", "/v1/tasks/batch", {"tasks": [task] * number})
    assert status == 200, answer
    first: dict[str, Any] = answer["results"][0]["task"]
    return first


def slice_queue() -> str:
    return boto3.client("sqs").get_queue_url(QueueName="duewheel-SliceQueue")["QueueUrl"]


@contextmanager
def refusing(*what: str, fault: Fault = Fault.THROTTLED) -> Iterator[None]:
    """Requests of which this is a part are refused, by default for load, at all of the SDK's tries
    at once."""

    def answer(request: Any, handle: Handle) -> Reply | None:
        asked = f"{request.headers.get('X-Amz-Target', b'')!r} {request.url}"
        if any(each in asked for each in what):
            return do(fault, request, handle, Random(1))
        return handle(request)

    with answered_by(answer):
        yield


def test_every_alarm_of_either_template_is_shown_to_go_off_and_to_be_over() -> None:
    """By a call in this file that names it, whatever parameter brings it."""
    alarms = {
        logical_id.removesuffix("Alarm")
        for name in ("template.yaml", "infra/observability.yaml")
        for logical_id, resource in source_of(ROOT / name)["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }
    assert named_in_calls_of("goes_off") == alarms
    assert named_in_calls_of("is_over") == alarms


def named_in_calls_of(function: str) -> set[str]:
    calls = [
        node
        for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function
    ]
    return {ast.literal_eval(call.args[1]) for call in calls}


@pytest.mark.exhaustive
def test_a_healthy_stack_has_none_idle_or_at_work(watched: WatchedStack) -> None:
    creates(watched, "ok", 50)
    for _ in range(6):
        creates(watched, "ok", 5, delay_seconds=70)
        watched.passes(minutes=1)
        assert watched.off() == set()


@pytest.mark.exhaustive
def test_a_scheduler_that_does_not_run_sets_off_that_on_ticks(watched: WatchedStack) -> None:
    watched.switches.stopped = {"scheduler"}
    goes_off(watched, "Ticks", lambda: watched.passes(minutes=1))
    watched.switches.stopped = set()
    is_over(watched, "Ticks")


@pytest.mark.exhaustive
def test_queues_that_refuse_hold_the_time_pointer_and_set_off_that_on_its_lag(
    watched: WatchedStack,
) -> None:
    creates(watched, "ok", delay_seconds=FAR_SECONDS)
    with refusing("SendMessage", "/invocations"):
        goes_off(watched, "PointerLag", lambda: watched.stands(minutes=1))
    is_over(watched, "PointerLag")
    assert len(watched.service.received("ok")) == 1


@pytest.mark.exhaustive
def test_a_sweeper_that_does_not_run_sets_off_that_on_sweeps(watched: WatchedStack) -> None:
    watched.switches.stopped = {"sweeper"}
    goes_off(watched, "Sweeps", lambda: watched.passes(minutes=1))
    watched.switches.stopped = set()
    is_over(watched, "Sweeps")


@pytest.mark.exhaustive
def test_a_sweep_that_does_not_get_ahead_sets_off_that_on_its_lag(watched: WatchedStack) -> None:
    creates(watched, "ok")
    watched.switches.without_time = {"sweeper"}
    goes_off(watched, "SweepLag", lambda: watched.passes(minutes=1))
    watched.switches.without_time = set()
    is_over(watched, "SweepLag")


@pytest.mark.exhaustive
def test_a_page_that_is_held_for_half_an_hour_sets_off_that_on_open_places(
    watched: WatchedStack,
) -> None:
    """And no other: the sweep pointer goes on."""
    task = creates(watched, "ok", delay_seconds=FAR_SECONDS)
    second = address_of_task(task["task_id"]).second
    clock = watched.stack.clock
    pages = PageLeaseStore(boto3.client("dynamodb"), clock, "duewheel-Wheel", BUCKETS)
    pages.take(PageLease(second, 0), "a notifier that is slow", clock.now_ms(), HELD_MS)
    watched.passes(minutes=30)
    assert watched.off() == set()
    goes_off(watched, "OpenPlaces", lambda: watched.passes(minutes=1))
    is_over(watched, "OpenPlaces")
    assert len(watched.service.received("ok")) == 1


@pytest.mark.exhaustive
def test_messages_that_come_late_set_off_that_on_lateness(watched: WatchedStack) -> None:
    def minute() -> None:
        creates(watched, "ok", 10)
        watched.passes(minutes=1)

    watched.switches.late_seconds = 8
    goes_off(watched, "Lateness", minute)
    watched.switches.late_seconds = 0
    is_over(watched, "Lateness")


@pytest.mark.exhaustive
def test_waiting_for_the_limit_of_a_business_is_not_lateness(watched: WatchedStack) -> None:
    watched.service.call("PUT", "/v1/businesses/limited", {"calls_per_second": 1})
    creates(watched, "ok", 30, biz_type="limited")
    watched.passes(minutes=2)
    told = watched.stack.metrics.minutes("Lateness").values()
    assert sum(minute.count for minute in told) == 30
    assert max(minute.max for minute in told) < 5_000


@pytest.mark.exhaustive
def test_receivers_that_say_stop_set_off_that_on_deaths(watched: WatchedStack) -> None:
    watched.service.call("PUT", "/_local/received/gone", {"status": 410})
    creates(watched, "ok", 50)
    creates(watched, "gone", 5)
    goes_off(watched, "Deaths", lambda: watched.passes(minutes=1))
    is_over(watched, "Deaths")


@pytest.mark.exhaustive
def test_a_few_deaths_set_off_nothing(watched: WatchedStack) -> None:
    watched.service.call("PUT", "/_local/received/gone", {"status": 410})
    creates(watched, "gone", 4)
    creates(watched, "gone", 5, delay_seconds=400)
    creates(watched, "ok", 95, delay_seconds=400)
    for _ in range(9):
        watched.passes(minutes=1)
        assert watched.off() == set()


@pytest.mark.exhaustive
def test_a_table_that_refuses_for_load_sets_off_that_on_throttles(watched: WatchedStack) -> None:
    def minute() -> None:
        with refusing("PutItem"):
            tasks = [watched.service.new_task("ok", delay_seconds=3_600, key=k) for k in "abcdef"]
            _, answer = watched.service.call("POST", "/v1/tasks/batch", {"tasks": tasks})
            assert {result["status"] for result in answer["results"]} == {503}
        watched.passes(minutes=1)

    goes_off(watched, "Throttles", minute)
    is_over(watched, "Throttles")


@pytest.mark.exhaustive
def test_a_call_that_nobody_foresaw_sets_off_that_on_errors_of_the_api(
    watched: WatchedStack,
) -> None:
    def minute() -> None:
        with refusing("Query", fault=Fault.FAILED):
            for _ in range(6):
                status, answer = watched.service.call("GET", "/v1/tasks?biz_type=orders")
                assert (status, answer["type"]) == (500, "urn:duewheel:problem:internal")
        watched.passes(minutes=1)

    goes_off(watched, "ApiErrors", minute)
    is_over(watched, "ApiErrors")


@pytest.mark.exhaustive
def test_answers_that_are_the_callers_fault_are_no_errors_of_the_api(
    watched: WatchedStack,
) -> None:
    for _ in range(5):
        for _ in range(10):
            assert watched.service.call("POST", "/v1/tasks", {})[0] == 422
            assert watched.service.call("GET", "/nowhere")[0] == 404
        watched.passes(minutes=1)
        assert watched.off() == set()


FUNCTIONS = ["api", "authorizer", "ingest", "scheduler", "notifier", "sweeper"]


@pytest.mark.parametrize("function", quick_first(FUNCTIONS, pytest.mark.exhaustive))
def test_a_function_that_fails_sets_off_that_on_errors(
    watched: WatchedStack, function: str
) -> None:
    watched.switches.failing = {function}
    goes_off(watched, "FunctionErrors", minute_with_a_run(watched, function))
    watched.switches.failing = set()
    is_over(watched, "FunctionErrors")


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_that_has_no_room_sets_off_that_on_refused_runs(
    watched: WatchedStack, function: str
) -> None:
    watched.switches.full = {function}
    goes_off(watched, "FunctionThrottles", minute_with_a_run(watched, function))
    watched.switches.full = set()
    is_over(watched, "FunctionThrottles")


def minute_with_a_run(watched: WatchedStack, function: str) -> Callable[[], None]:
    """What has the function run, or try to, each minute."""

    def minute() -> None:
        if function in ("api", "authorizer"):
            assert watched.service.call("GET", "/v1/wheel")[0] == 500
        if function == "ingest":
            task = watched.service.new_task("ok", delay_seconds=3_600)
            assert watched.service.call("POST", "/_local/ingest", task)[0] == 202
        watched.passes(minutes=1)

    if function == "notifier":
        creates(watched, "ok", delay_seconds=FAR_SECONDS)
    return minute


def given_up_after(tries: int) -> None:
    sqs = boto3.client("sqs")
    answer = sqs.get_queue_attributes(QueueUrl=slice_queue(), AttributeNames=["RedrivePolicy"])
    policy = {**json.loads(answer["Attributes"]["RedrivePolicy"]), "maxReceiveCount": tries}
    attributes = {"RedrivePolicy": json.dumps(policy)}
    sqs.set_queue_attributes(QueueUrl=slice_queue(), Attributes=attributes)


@pytest.mark.exhaustive
def test_a_message_that_fails_sets_off_that_on_functions_and_at_last_that_on_dead_letters(
    watched: WatchedStack,
) -> None:
    sqs = boto3.client("sqs")
    given_up_after(10)  # as if it had been handed out ninety times already
    sqs.send_message(QueueUrl=slice_queue(), MessageBody="garbage")
    goes_off(watched, "FunctionErrors", lambda: watched.passes(minutes=1))
    goes_off(watched, "DeadLetters", lambda: watched.passes(minutes=1), "FunctionErrors")
    sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName="duewheel-DeadLetterQueue")["QueueUrl"])
    is_over(watched, "DeadLetters", "FunctionErrors")


@pytest.mark.exhaustive
def test_a_message_that_asks_for_no_task_sets_off_that_on_its_dead_letters(
    watched: WatchedStack,
) -> None:
    assert watched.service.call("POST", "/_local/ingest", {"biz_type": "orders"})[0] == 202
    goes_off(watched, "IngestDeadLetters", lambda: watched.passes(minutes=1))
    sqs = boto3.client("sqs")
    letters = sqs.get_queue_url(QueueName="duewheel-IngestDeadLetterQueue")
    sqs.purge_queue(QueueUrl=letters["QueueUrl"])
    is_over(watched, "IngestDeadLetters")


@pytest.mark.exhaustive
def test_a_message_that_is_lost_sets_off_that_on_rescues(watched: WatchedStack) -> None:
    creates(watched, "ok", delay_seconds=3)  # near, so that a message of its own waits
    boto3.client("sqs").purge_queue(QueueUrl=slice_queue())
    goes_off(watched, "Rescued", lambda: watched.passes(minutes=1))
    is_over(watched, "Rescued")
    assert len(watched.service.received("ok")) == 1


@pytest.mark.exhaustive
def test_an_item_that_was_edited_sets_off_that_on_damage(watched: WatchedStack) -> None:
    task = creates(watched, "ok", delay_seconds=60)
    key = codec.key(address_of_task(task["task_id"]), BUCKETS)

    def attempts(value: dict[str, str]) -> None:
        boto3.client("dynamodb").update_item(
            TableName="duewheel-Wheel",
            Key=key,
            UpdateExpression="SET attempts = :value",
            ExpressionAttributeValues={":value": value},  # type: ignore[dict-item]
        )

    attempts({"S": "?"})
    goes_off(watched, "Damage", lambda: watched.passes(minutes=1))
    attempts({"N": "0"})
    is_over(watched, "Damage", "Rescued")  # the task is called, and its second has passed


@pytest.mark.exhaustive
def test_a_caller_that_creates_without_end_sets_off_the_guard_for_a_day(
    watched: WatchedStack,
) -> None:
    def minute() -> None:
        creates(watched, "ok", TASKS_PER_DAY // 2)
        watched.passes(minutes=1)

    goes_off(watched, "TasksPerDayGuard", minute)
    watched.skips(hours=23)
    assert watched.off() == {"TasksPerDayGuard"}
    watched.skips(hours=1)
    assert watched.off() == {"TasksPerDayGuard"}, "of an idle day CloudWatch is told nothing"
    creates(watched, "ok")
    is_over(watched, "TasksPerDayGuard")
