"""The metrics and logs of the handlers, on moto with the template's resources."""

import json
import logging
from collections.abc import Callable, Iterator
from io import StringIO
from random import Random
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from msgspec.structs import replace

from duewheel import __version__
from duewheel.log import logger
from duewheel.metrics import POINTER_LAG, counts
from duewheel.rules.instants import ms_from_rfc3339
from duewheel.rules.wheel.open_places import OpenPlace, Why
from duewheel.rules.wheel.queue_messages import PageMessage, encode
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.wheel.pointers import SWEEP, PointerStore
from duewheel.wiring import process
from functions.authorizer import app as authorizer
from functions.notifier import app as notifier
from functions.scheduler import app as scheduler
from functions.sweeper import app as sweeper
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from tests.functions.conftest import Context, call, event_from
from tests.functions.ingest_poller import TASK, poll, send
from tests.support.clock import ManualClock

Written = Callable[[], list[dict[str, Any]]]

CLOSED_PORT = "http://127.0.0.1:9/"  # refuses connections


class Lines:
    def __init__(self) -> None:
        self.texts: list[str] = []

    @property
    def logged(self) -> list[dict[str, Any]]:
        """The metrics of each line, by its embedded metric format."""
        lines = [json.loads(text) for text in self.texts]
        return [
            {
                metric["Name"]: line[metric["Name"]]
                for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]
            }
            for line in lines
        ]


@pytest.fixture
def lines(wired: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Lines:
    monkeypatch.setenv("METRICS", "on")
    counts.take()  # discards counts of earlier tests
    kept = Lines()
    process.start_anew(wired, kept.texts.append)
    return kept


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """The records that the service logs from now on."""
    stream = StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", stream)
    level = logger.log_level
    logger.setLevel(logging.INFO)
    yield lambda: [json.loads(text) for text in stream.getvalue().splitlines()]
    logger.setLevel(level)


def create(*, biz_type: str = "orders", **more: Any) -> int:
    body = {"biz_type": biz_type, "callback": {"url": CLOSED_PORT}, "delay_seconds": 30, **more}
    return call("POST", "/v1/tasks", body)[0]


def deliver() -> None:
    url = process.settings().slice_queue_url
    answer = boto3.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    records = [
        {"messageId": m["MessageId"], "receiptHandle": m["ReceiptHandle"], "body": m["Body"]}
        for m in answer.get("Messages", [])
    ]
    notifier.handler({"Records": records}, Context())


def lead(turns: int = 1) -> None:
    left = iter([1_000_000] * turns)
    scheduler.handler(event_from("scheduled.json"), Context(lambda: next(left, 0)))


def test_each_run_writes_its_metrics_in_one_line(lines: Lines, wired: ManualClock) -> None:
    assert create(retry={"attempts": 1}) == 201
    wired.advance_ms(30_000)
    lead()
    wired.advance_ms(7)
    deliver()
    wired.advance_ms(400_000)
    sweeper.handler({}, Context())
    assert lines.logged == [
        {"Created": 1},
        {"FailedAttempts": 1, "Dead": 1, "Pages": 1, "Lateness": [7]},
        {"PointerLag": [250], "SweepLag": [440]},
    ]


def test_a_run_without_work_writes_no_metrics(lines: Lines, wired: ManualClock) -> None:
    for _ in range(3):
        lead()
        sweeper.handler({}, Context())
        wired.advance_ms(3_000)
    assert lines.texts == []


@pytest.mark.parametrize(("lag", "logged"), [(10, []), (11, [{"PointerLag": [11]}])])
def test_a_lag_is_written_from_a_threshold_on(
    lines: Lines, lag: int, logged: list[dict[str, Any]]
) -> None:
    counts.measured(POINTER_LAG, lag)
    sweeper.handler({}, Context())
    assert lines.logged == logged


def test_requests_of_ten_seconds_share_a_line(lines: Lines, wired: ManualClock) -> None:
    """The first request is written at once, the later ones by the first request after the ten
    seconds."""
    for _ in range(3):
        create()
        wired.advance_ms(3_000)
    assert lines.logged == [{"Created": 1}]
    wired.advance_ms(1_000)
    assert call("GET", "/v1/health")[0] == 200
    assert lines.logged[1:] == [{"Created": 2}]


def test_number_and_oldest_age_of_open_places_are_written(lines: Lines, wired: ManualClock) -> None:
    now_ms, origin = wired.now_ms(), process.origin()
    place = OpenPlace(second=origin, shard=0, since_ms=now_ms - 90_000, why=Why.FAILED)
    younger = replace(place, shard=1, since_ms=now_ms - 30_000)
    store = process.pointers()
    mine = store.claim(store.read(SWEEP, origin), "me", now_ms)
    assert mine is not None
    assert store.release(mine, mine.position, now_ms, open_places=(younger, place))
    sweeper.handler({}, Context())
    assert lines.logged[-1].items() >= {"OpenPlaces": [2], "OpenPlaceAge": [90]}.items()


def test_a_line_has_the_version_of_the_function(lines: Lines, wired: ManualClock) -> None:
    create()
    line = json.loads(lines.texts[0])
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (line["level"], line["version"]) == ("INFO", __version__)
    assert directive["Namespace"] == "Duewheel/duewheel"
    assert line["_aws"]["Timestamp"] == wired.now_ms()


def test_log_records_have_the_timestamp_that_lambda_needs_for_levels(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", written)
    logger.error("something is wrong")
    for text in (written.getvalue(), lines_of_a_create(lines)):
        assert ms_from_rfc3339(json.loads(text)["timestamp"]) >= 0


def lines_of_a_create(lines: Lines) -> str:
    create()
    return lines.texts[-1]


def test_disabled_metrics_are_neither_written_nor_collected(
    lines: Lines, wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRICS", "off")
    process.start_anew(wired, lines.texts.append)
    create()
    lead()
    assert lines.texts == []
    assert not counts.take().counts


def test_a_call_without_an_effect_writes_no_metrics(lines: Lines) -> None:
    assert call("GET", "/v1/health")[0] == 200
    assert call("POST", "/v1/tasks", {"biz_type": "!"})[0] == 422
    authorizer.handler({"identitySource": ["Bearer dw_nothing"]}, Context())
    notifier.handler({"Records": []}, Context())
    assert lines.texts == []


def test_a_failed_run_writes_its_metrics(lines: Lines, wired: ManualClock) -> None:
    process.origin()
    wired.advance_ms(400_000)
    with (
        patch.object(PointerStore, "claim", side_effect=OSError("a cable is loose")),
        pytest.raises(OSError, match="cable"),
    ):
        sweeper.handler({}, Context())
    assert [list(line) for line in lines.logged] == [["SweepLag"]]


def test_a_failed_run_logs_its_exception_as_an_error(lines: Lines, written: Written) -> None:
    with (
        patch.object(PointerStore, "claim", side_effect=OSError("a cable is loose")),
        pytest.raises(OSError, match="cable"),
    ):
        sweeper.handler({}, Context())
    (logged,) = written()
    assert (logged["action"], logged["level"]) == ("run-failed", "ERROR")
    assert "a cable is loose" in logged["exception"]


def test_a_failed_message_is_counted_and_logged_with_its_slice(
    lines: Lines, wired: ManualClock, written: Written
) -> None:
    page = PageMessage(wired.now_ms() // 1000, 3)
    texts = [encode(page), "garbage"]
    with patch.object(PageLeaseStore, "take", side_effect=OSError("a cable is loose")):
        left = notifier.handler(queued(*texts), Context())
    assert left == {"batchItemFailures": [{"itemIdentifier": "0"}, {"itemIdentifier": "1"}]}
    assert lines.logged == [{"FailedMessages": 2}]
    of_page, of_garbage = (one for one in written() if one["action"] == "message-failed")
    assert (of_page["second"], of_page["shard"]) == (page.second, page.shard)
    assert "second" not in of_garbage


def test_a_failed_message_of_the_ingest_queue_is_counted(lines: Lines) -> None:
    send(TASK)
    with patch.object(TaskStore, "create", side_effect=OSError("a cable is loose")):
        assert poll() == 1
    assert lines.logged == [{"FailedMessages": 1}]


@pytest.mark.parametrize(("level", "name"), [("warning", "WARN"), ("critical", "FATAL")])
def test_levels_have_the_names_by_which_lambda_filters(
    lines: Lines, written: Written, level: str, name: str
) -> None:
    getattr(logger, level)("something is wrong")
    assert [record["level"] for record in written()] == [name]


def queued(*texts: str) -> dict[str, Any]:
    records = [
        {"messageId": str(number), "receiptHandle": str(number), "body": text}
        for number, text in enumerate(texts)
    ]
    return {"Records": records}


def test_a_create_that_is_repeated_is_counted_once(lines: Lines, wired: ManualClock) -> None:
    assert [create(key="order-17", delay_seconds=600) for _ in range(2)] == [201, 200]
    wired.advance_ms(process.CARRIED_MS)
    tasks = [{"biz_type": "orders", "callback": {"url": CLOSED_PORT}, "delay_seconds": 600}] * 3
    assert call("POST", "/v1/tasks/batch", {"tasks": tasks})[0] == 200
    assert lines.logged == [{"Created": 1}, {"Created": 3}]


def test_creates_refused_by_a_limit_are_counted(lines: Lines) -> None:
    limit = {"creates_per_second": 2}
    assert call("PUT", "/v1/businesses/orders", limit)[0] == 201
    tasks = [{"biz_type": "orders", "callback": {"url": CLOSED_PORT}, "delay_seconds": 600}] * 5
    assert call("POST", "/v1/tasks/batch", {"tasks": tasks})[0] == 200
    assert lines.logged == [{"Created": 2, "CreatesRefused": 3}]


def test_a_throttled_request_is_counted_once_after_all_tries(
    lines: Lines, wired: ManualClock
) -> None:
    create(delay_seconds=600)  # after that, all one-time records exist
    lines.texts.clear()
    wired.advance_ms(process.CARRIED_MS)

    def refuse(request: Any, handle: Handle) -> Reply | None:
        is_meant = operation_of(request) == "PutItem" and is_busy
        return do(Fault.THROTTLED, request, handle, Random(1)) if is_meant else handle(request)

    is_busy = True
    with answered_by(refuse):
        assert create(delay_seconds=600) == 503
        is_busy = False
        wired.advance_ms(process.CARRIED_MS)
        assert create(delay_seconds=600) == 201
    assert lines.logged == [{"Throttles": 2}, {"Created": 1}], (
        "the entry is written again at another place, once"
    )


def test_unprocessed_items_of_a_batch_are_counted(lines: Lines) -> None:
    def in_part(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request) == "BatchWriteItem" and not seen:
            seen.append(request)
            return do(Fault.PARTIAL, request, handle, Random(3))
        return handle(request)

    seen: list[Any] = []
    tasks = [{"biz_type": "orders", "callback": {"url": CLOSED_PORT}, "delay_seconds": 600}] * 9
    with answered_by(in_part):
        assert call("POST", "/v1/tasks/batch", {"tasks": tasks})[0] == 200
    assert lines.logged == [{"Created": 9, "Throttles": 1}]
