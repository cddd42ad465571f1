"""The metrics that the local stack derives from the logs, as CloudWatch does: in a sequence on the
stack, and in unit tests."""

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import boto3
import pytest

from duewheel.metrics import (
    DELIVERED,
    LATENESS,
    METRICS,
    Counted,
    Source,
    metric_lines,
)
from duewheel.rules.instants import rfc3339
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.stores.tasks import codec
from local.aws.intrinsics import TemplateError
from local.aws.metrics import MINUTES_KEPT, VALUES_KEPT, FilteredLog, Metrics, filters_of
from local.aws.resources import Resources
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from local.stack import LocalStack
from tests.support.service import Service

NOW_MS = 1_800_000_000_250
MINUTE_MS = 60_000
BUCKETS = 10_000_000  # the default of the template
FILTERED = {"Rescued", "Damaged"}
LARGE = {"PointerLag", "SweepLag"}  # only in an outage


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with LocalStack(frozen=True) as stack:
        yield Service(stack.url)


def sums(service: Service) -> dict[str, float]:
    metrics = service.call("GET", "/_local/metrics")[1]["metrics"]
    return {name: metric["sum"] for name, metric in metrics.items()}


def minutes(service: Service, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.call("GET", f"/_local/metrics/{name}")[1]["minutes"]
    return found


def put(service: Service, biz_type: str, **settings: Any) -> None:
    assert service.call("PUT", f"/v1/businesses/{biz_type}", settings)[0] == 201


def creates(service: Service, inbox: str, biz_type: str, number: int = 1, **more: Any) -> None:
    task = service.new_task(inbox, biz_type=biz_type, delay_seconds=60, **more)
    assert service.call("POST", "/v1/tasks/batch", {"tasks": [task] * number})[0] == 200


def passes(service: Service, *, minutes: int) -> None:
    """Let the minutes pass one by one, so that no single request takes too long."""
    for _ in range(minutes):
        service.advance(60)


def ends_in_every_way(service: Service) -> None:
    service.call("PUT", "/_local/received/bad", {"status": 503})
    creates(service, "ok", "orders", 5)
    creates(service, "ok", "orders", key="once")
    creates(service, "bad", "orders", retry={"delays_seconds": [10]})
    creates(service, "bad", "orders", retry={"delays_seconds": [90]}, expires_after_seconds=30)
    creates(service, "bad", "broken", 30, retry={"attempts": 1})
    put(service, "limited", calls_per_second=1, creates_per_second=12)
    creates(service, "ok", "limited", 14)
    put(service, "paused")
    service.call("POST", "/v1/businesses/paused/pause")
    creates(service, "ok", "paused", 2)
    service.advance(100)
    service.call("POST", "/v1/businesses/paused/resume")


def disables_a_timer(service: Service) -> None:
    """Its runs fail."""
    service.call("PUT", "/_local/received/bad", {"status": 503})
    timer = {
        "biz_type": "orders",
        "name": "fails",
        "every_seconds": 60,
        "callback": {"url": f"{service.url}/_local/inbox/bad"},
        "retry": {"attempts": 1},
        "pause_on_failures": 1,
    }
    assert service.call("POST", "/v1/timers", timer)[0] == 201


def loses_a_message(service: Service) -> None:
    """The purged queue has no other message at this time."""
    sqs = boto3.client("sqs")
    service.create("ok", delay_seconds=3)
    sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName="duewheel-SliceQueue")["QueueUrl"])


def damages(service: Service) -> None:
    spoil(service, "attempts", {"S": "?"})


def spoil(service: Service, attribute: str, value: Any) -> None:
    """Set the attribute of a task that is due in a minute."""
    task = service.create("ok", biz_type="damaged", delay_seconds=60)
    boto3.client("dynamodb").update_item(
        TableName="duewheel-Wheel",
        Key=codec.key(address_of_task(task["task_id"]), BUCKETS),
        UpdateExpression=f"SET {attribute} = :wrong",
        ExpressionAttributeValues={":wrong": value},
    )


def fails_at_a_message(service: Service) -> None:
    sqs = boto3.client("sqs")
    url = sqs.get_queue_url(QueueName="duewheel-SliceQueue")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="garbage")


def meets_throttling(service: Service) -> None:
    def throttled(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request) == "PutItem":
            return do(Fault.THROTTLED, request, handle, Random(1))
        return handle(request)

    with answered_by(throttled):
        assert service.call("POST", "/v1/tasks", service.new_task("ok", delay_seconds=99))[0] == 503


def leaves_a_place_open(service: Service) -> None:
    """The sweep cannot read a slice while its requests fail."""
    task = service.create("ok", biz_type="unread", delay_seconds=60)
    slot = codec.key(address_of_task(task["task_id"]), BUCKETS)["slot"]["S"]
    passes(service, minutes=2)

    def failing(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request) == "Query" and f'"{slot}"' in str(request.body):
            return do(Fault.FAILED, request, handle, Random(1))
        return handle(request)

    with answered_by(failing):
        passes(service, minutes=4)


def statistics_since(service: Service, from_ms: int) -> Counter[str]:
    """The sums of the statistics of all businesses of the sequence."""
    total: Counter[str] = Counter()
    span = f"from={rfc3339(from_ms // 60_000 * 60_000)}&to={rfc3339(service.now_ms())}"
    for biz_type in ("orders", "broken", "limited", "paused"):
        answer = service.call("GET", f"/v1/businesses/{biz_type}/stats?{span}")[1]
        total.update({n: v for n, v in answer["total"].items() if isinstance(v, int)})
    return total


@dataclass(frozen=True)
class Story:
    """Metrics and statistics at the end of the sequence."""

    metrics: dict[str, float]
    calls: int
    statistics: Counter[str]


@pytest.fixture(scope="module")
def story(service: Service) -> Story:
    from_ms = service.now_ms()
    loses_a_message(service)
    passes(service, minutes=6)
    ends_in_every_way(service)
    passes(service, minutes=5)
    calls = sum(minute["count"] for minute in minutes(service, "Lateness"))
    return Story(sums(service), calls, statistics_since(service, from_ms))


@pytest.mark.exhaustive
def test_the_sums_of_the_metrics_equal_the_statistics(story: Story) -> None:
    metrics, statistics = story.metrics, story.statistics
    assert statistics["pending"] == 0
    assert {
        "created": metrics["Created"],
        "delivered": metrics["Delivered"],
        "dead": metrics["Dead"],
        "expired": metrics["Expired"],
        "failed_attempts": metrics["FailedAttempts"],
        "cancelled": 0,
        "pending": 0,
    } == statistics
    assert story.calls == statistics["delivered"] + statistics["failed_attempts"]
    assert (metrics["CreatesRefused"], metrics["Parked"], metrics["Rescued"]) == (2, 2, 1)
    assert metrics["LimiterWaits"] > 3


@pytest.mark.exhaustive
def test_every_metric_is_written(service: Service, story: Story) -> None:
    damages(service)
    fails_at_a_message(service)
    meets_throttling(service)
    disables_a_timer(service)
    leaves_a_place_open(service)
    passes(service, minutes=6)
    assert set(sums(service)) | LARGE == {metric.name for metric in METRICS} | FILTERED


def test_metrics_of_functions_and_wheel_can_be_read(service: Service) -> None:
    creates(service, "ok", "orders", 3)
    passes(service, minutes=3)
    metrics = sums(service)
    assert metrics["Created"] == metrics["Delivered"] >= 3
    assert {"Lateness", "Swept"} <= metrics.keys()


@pytest.mark.parametrize(
    ("method", "path", "status"), [("POST", "metrics", 405), ("GET", "metrics/a/b", 404)]
)
def test_metrics_can_only_be_read(service: Service, method: str, path: str, status: int) -> None:
    assert service.call(method, f"/_local/{path}", {} if method == "POST" else None)[0] == status


def test_an_unknown_metric_has_no_minutes(service: Service) -> None:
    assert minutes(service, "Nonsense") == []


# Unit tests


def line(counted: Counted, at_ms: int = NOW_MS) -> str:
    (text,) = metric_lines(counted, Source("timers", "1"), at_ms)
    return text


def test_a_minute_has_the_values_of_its_lines() -> None:
    metrics = Metrics()
    metrics.take_line(line(Counted({DELIVERED: 2}, {LATENESS: [30, 5]})))
    metrics.take_line(line(Counted({DELIVERED: 1}, {LATENESS: [7]})))
    metrics.take_line(line(Counted({DELIVERED: 4}), NOW_MS + MINUTE_MS))
    assert metrics.detail("Lateness") == {
        "name": "Lateness",
        "unit": "Milliseconds",
        "minutes": [
            {
                "at": "2027-01-15T08:00:00.000Z",
                "sum": 42,
                "count": 3,
                "min": 5,
                "max": 30,
                "values": [30, 5, 7],
            }
        ],
    }
    assert metrics.overview()["metrics"]["Delivered"] == {
        "unit": "Count",
        "sum": 7,
        "latest": {"at": "2027-01-15T08:01:00.000Z", "sum": 4, "count": 1, "min": 4, "max": 4},
    }


@pytest.mark.exhaustive
def test_a_day_of_minutes_is_kept_with_a_bounded_number_of_values() -> None:
    metrics = Metrics()
    for minute in range(3 * MINUTES_KEPT):
        metrics.add("Pages", "Count", [1], minute * MINUTE_MS)
    kept = metrics.minutes("Pages")
    assert (len(kept), min(kept)) == (MINUTES_KEPT, 2 * MINUTES_KEPT)
    metrics.add("Lateness", "Milliseconds", list(range(VALUES_KEPT + 10)), NOW_MS)
    (minute,) = metrics.minutes("Lateness").values()
    assert (minute.count, minute.min, len(minute.values)) == (VALUES_KEPT + 10, 0, VALUES_KEPT)


def test_metric_filters_of_the_template_match_their_records(resources: Resources) -> None:
    filters = filters_of(resources)
    assert {each.metric for each in filters} == FILTERED
    metrics, logger = Metrics(), logging.Logger("a log of its own")
    with FilteredLog(filters, metrics, lambda: NOW_MS).attached(logger):
        logger.warning("", extra={"action": "rescued", "count": 3})
        logger.error("", extra={"action": "home-gone"})
        logger.error("", extra={"action": "resent"})
        logger.error("no action at all")
    logger.error("", extra={"action": "unreadable"})
    assert {n: m["sum"] for n, m in metrics.overview()["metrics"].items()} == {
        "Rescued": 3,
        "Damaged": 1,
    }


def test_an_unsupported_metric_filter_fails_the_start(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = resources.template.of_type("AWS::Logs::MetricFilter")[0]
    monkeypatch.setitem(declared.properties, "FilterPattern", "{ $.count > 3 }")
    with pytest.raises(TemplateError, match="not understood"):
        filters_of(resources)
