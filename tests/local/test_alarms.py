"""Each alarm goes off at its fault, without any other, and ends when the fault is repaired."""

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
BUCKETS = 10_000_000  # the default of the template
MINUTES_MAX = 20
HELD_MS = 45 * 60_000
FAR_SECONDS = 200  # its writer announces nothing, so that only the scheduler sends a message


@pytest.fixture
def watched() -> Iterator[WatchedStack]:
    """A stack that has run for a while. No alarm goes off during its start, before the first
    metrics."""
    with WatchedStack() as running:
        assert running.off() == set()
        for _ in range(6):
            running.passes(minutes=1)
            assert running.off() == set()
        yield running


def goes_off(watched: WatchedStack, alarm: str, minute: Callable[[], None], *follows: str) -> None:
    """Let minutes pass until the alarm goes off. No other alarm may, except those that it
    follows."""
    for _ in range(MINUTES_MAX):
        minute()
        if off := watched.off() - set(follows):
            assert off == {alarm}
            return
    raise AssertionError(f"{alarm} did not go off")


def ends(watched: WatchedStack, alarm: str, *followed_by: str) -> None:
    """Let minutes pass until no alarm is on. No other alarm may go off, except those that
    follow."""
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
    """Refuse requests that contain one of these texts, by default as throttled, as after all of the
    SDK's tries."""

    def answer(request: Any, handle: Handle) -> Reply | None:
        asked = f"{request.headers.get('X-Amz-Target', b'')!r} {request.url}"
        if any(each in asked for each in what):
            return do(fault, request, handle, Random(1))
        return handle(request)

    with answered_by(answer):
        yield


def test_every_alarm_of_both_templates_is_tested() -> None:
    """Each alarm, of any parameter, is named in a call in this file."""
    alarms = {
        logical_id.removesuffix("Alarm")
        for name in ("template.yaml", "infra/observability.yaml")
        for logical_id, resource in source_of(ROOT / name)["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }
    assert named_in_calls_of("goes_off") == alarms
    assert named_in_calls_of("ends") == alarms


def named_in_calls_of(function: str) -> set[str]:
    calls = [
        node
        for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function
    ]
    return {ast.literal_eval(call.args[1]) for call in calls}


@pytest.mark.exhaustive
def test_a_healthy_stack_sets_off_no_alarm_idle_or_busy(watched: WatchedStack) -> None:
    creates(watched, "ok", 50)
    for _ in range(6):
        creates(watched, "ok", 5, delay_seconds=70)
        watched.passes(minutes=1)
        assert watched.off() == set()


@pytest.mark.exhaustive
def test_a_scheduler_that_does_not_run_sets_off_the_alarm_on_ticks(watched: WatchedStack) -> None:
    watched.switches.stopped = {"scheduler"}
    goes_off(watched, "Ticks", lambda: watched.passes(minutes=1))
    watched.switches.stopped = set()
    ends(watched, "Ticks")


@pytest.mark.exhaustive
def test_queues_that_refuse_messages_set_off_the_alarm_on_the_time_pointer(
    watched: WatchedStack,
) -> None:
    creates(watched, "ok", delay_seconds=FAR_SECONDS)
    with refusing("SendMessage", "/invocations"):
        goes_off(watched, "PointerLag", lambda: watched.passes_without_waiting(minutes=1))
    ends(watched, "PointerLag")
    assert len(watched.service.received("ok")) == 1


@pytest.mark.exhaustive
def test_a_sweeper_that_does_not_run_sets_off_the_alarm_on_sweeps(watched: WatchedStack) -> None:
    watched.switches.stopped = {"sweeper"}
    goes_off(watched, "Sweeps", lambda: watched.passes(minutes=1))
    watched.switches.stopped = set()
    ends(watched, "Sweeps")


@pytest.mark.exhaustive
def test_a_sweep_without_progress_sets_off_the_alarm_on_its_lag(watched: WatchedStack) -> None:
    creates(watched, "ok")
    watched.switches.without_time = {"sweeper"}
    goes_off(watched, "SweepLag", lambda: watched.passes(minutes=1))
    watched.switches.without_time = set()
    ends(watched, "SweepLag")


@pytest.mark.exhaustive
def test_a_page_leased_for_half_an_hour_sets_off_the_alarm_on_open_places(
    watched: WatchedStack,
) -> None:
    """The alarm on the sweep's lag does not go off, since the sweep pointer moves on."""
    task = creates(watched, "ok", delay_seconds=FAR_SECONDS)
    second = address_of_task(task["task_id"]).second
    clock = watched.stack.clock
    pages = PageLeaseStore(boto3.client("dynamodb"), clock, "duewheel-Wheel", BUCKETS)
    pages.take(PageLease(second, 0), "a notifier that is slow", clock.now_ms(), HELD_MS)
    watched.passes(minutes=30)
    assert watched.off() == set()
    goes_off(watched, "OpenPlaces", lambda: watched.passes(minutes=1))
    ends(watched, "OpenPlaces")
    assert len(watched.service.received("ok")) == 1


@pytest.mark.exhaustive
def test_late_messages_set_off_the_alarm_on_lateness(watched: WatchedStack) -> None:
    def minute() -> None:
        creates(watched, "ok", 10)
        watched.passes(minutes=1)

    watched.switches.late_seconds = 8
    goes_off(watched, "Lateness", minute)
    watched.switches.late_seconds = 0
    ends(watched, "Lateness")


@pytest.mark.exhaustive
def test_tasks_that_wait_for_a_rate_limit_set_off_no_alarm_on_lateness(
    watched: WatchedStack,
) -> None:
    watched.service.call("PUT", "/v1/businesses/limited", {"calls_per_second": 1})
    creates(watched, "ok", 30, biz_type="limited")
    watched.passes(minutes=2)
    lateness = watched.stack.metrics.minutes("Lateness").values()
    assert sum(minute.count for minute in lateness) == 30
    assert max(minute.max for minute in lateness) < 5_000


@pytest.mark.exhaustive
def test_receivers_that_answer_stop_set_off_the_alarm_on_deaths(watched: WatchedStack) -> None:
    watched.service.call("PUT", "/_local/received/gone", {"status": 410})
    creates(watched, "ok", 50)
    creates(watched, "gone", 5)
    goes_off(watched, "Deaths", lambda: watched.passes(minutes=1))
    ends(watched, "Deaths")


@pytest.mark.exhaustive
def test_a_few_deaths_set_off_no_alarm(watched: WatchedStack) -> None:
    watched.service.call("PUT", "/_local/received/gone", {"status": 410})
    creates(watched, "gone", 4)
    creates(watched, "gone", 5, delay_seconds=400)
    creates(watched, "ok", 95, delay_seconds=400)
    for _ in range(9):
        watched.passes(minutes=1)
        assert watched.off() == set()


@pytest.mark.exhaustive
def test_a_throttled_table_sets_off_the_alarm_on_throttles(watched: WatchedStack) -> None:
    def minute() -> None:
        with refusing("PutItem"):
            tasks = [watched.service.new_task("ok", delay_seconds=3_600, key=k) for k in "abcdef"]
            _, answer = watched.service.call("POST", "/v1/tasks/batch", {"tasks": tasks})
            assert {result["status"] for result in answer["results"]} == {503}
        watched.passes(minutes=1)

    goes_off(watched, "Throttles", minute)
    ends(watched, "Throttles")


@pytest.mark.exhaustive
def test_an_unexpected_exception_sets_off_the_alarm_on_errors_of_the_api(
    watched: WatchedStack,
) -> None:
    def minute() -> None:
        with refusing("Query", fault=Fault.FAILED):
            for _ in range(6):
                status, answer = watched.service.call("GET", "/v1/tasks?biz_type=orders")
                assert (status, answer["type"]) == (500, "urn:duewheel:problem:internal")
        watched.passes(minutes=1)

    goes_off(watched, "ApiErrors", minute)
    ends(watched, "ApiErrors")


@pytest.mark.exhaustive
def test_client_errors_set_off_no_alarm_on_errors_of_the_api(watched: WatchedStack) -> None:
    for _ in range(5):
        for _ in range(10):
            assert watched.service.call("POST", "/v1/tasks", {})[0] == 422
            assert watched.service.call("GET", "/nowhere")[0] == 404
        watched.passes(minutes=1)
        assert watched.off() == set()


FUNCTIONS = ["api", "authorizer", "ingest", "scheduler", "notifier", "sweeper"]


@pytest.mark.parametrize("function", quick_first(FUNCTIONS, pytest.mark.exhaustive))
def test_a_failing_function_sets_off_the_alarm_on_errors(
    watched: WatchedStack, function: str
) -> None:
    watched.switches.failing = {function}
    goes_off(watched, "FunctionErrors", minute_with_a_run(watched, function))
    watched.switches.failing = set()
    ends(watched, "FunctionErrors")


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_without_concurrency_sets_off_the_alarm_on_refused_runs(
    watched: WatchedStack, function: str
) -> None:
    watched.switches.full = {function}
    goes_off(watched, "FunctionThrottles", minute_with_a_run(watched, function))
    watched.switches.full = set()
    ends(watched, "FunctionThrottles")


def minute_with_a_run(watched: WatchedStack, function: str) -> Callable[[], None]:
    """A minute in which the function is invoked."""

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
def test_a_failing_message_sets_off_the_alarms_on_functions_and_dead_letters(
    watched: WatchedStack,
) -> None:
    sqs = boto3.client("sqs")
    given_up_after(10)  # instead of a hundred receives
    sqs.send_message(QueueUrl=slice_queue(), MessageBody="garbage")
    goes_off(watched, "FunctionErrors", lambda: watched.passes(minutes=1))
    goes_off(watched, "DeadLetters", lambda: watched.passes(minutes=1), "FunctionErrors")
    sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName="duewheel-DeadLetterQueue")["QueueUrl"])
    ends(watched, "DeadLetters", "FunctionErrors")


@pytest.mark.exhaustive
def test_an_invalid_ingest_message_sets_off_the_alarm_on_dead_letters(
    watched: WatchedStack,
) -> None:
    assert watched.service.call("POST", "/_local/ingest", {"biz_type": "orders"})[0] == 202
    goes_off(watched, "IngestDeadLetters", lambda: watched.passes(minutes=1))
    sqs = boto3.client("sqs")
    letters = sqs.get_queue_url(QueueName="duewheel-IngestDeadLetterQueue")
    sqs.purge_queue(QueueUrl=letters["QueueUrl"])
    ends(watched, "IngestDeadLetters")


@pytest.mark.exhaustive
def test_a_lost_message_sets_off_the_alarm_on_rescues(watched: WatchedStack) -> None:
    creates(watched, "ok", delay_seconds=3)  # near, so that a direct message waits
    boto3.client("sqs").purge_queue(QueueUrl=slice_queue())
    goes_off(watched, "Rescued", lambda: watched.passes(minutes=1))
    ends(watched, "Rescued")
    assert len(watched.service.received("ok")) == 1


@pytest.mark.exhaustive
def test_a_damaged_item_sets_off_the_alarm_on_damage(watched: WatchedStack) -> None:
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
    ends(watched, "Damage", "Rescued")  # the task is called, and its second has passed


@pytest.mark.exhaustive
def test_excessive_creates_set_off_the_guard_for_a_day(watched: WatchedStack) -> None:
    def minute() -> None:
        creates(watched, "ok", TASKS_PER_DAY // 2)
        watched.passes(minutes=1)

    goes_off(watched, "TasksPerDayGuard", minute)
    watched.skips(hours=23)
    assert watched.off() == {"TasksPerDayGuard"}
    watched.skips(hours=1)
    assert watched.off() == {"TasksPerDayGuard"}, "an idle day has no metrics"
    creates(watched, "ok")
    ends(watched, "TasksPerDayGuard")
