"""The ingest function with its production wiring, on moto with the template's queues and its
role."""

import io
import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from duewheel.log import logger
from duewheel.rules.ingest.verdict import LAST_TRY_AFTER_MS, RECEIVES_MAX
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.idempotency import LEASE_MS
from duewheel.wiring import process
from functions.ingest import app as ingest
from tests.functions.conftest import Context, call, sent
from tests.functions.ingest_poller import (
    TASK,
    dead_letters,
    handed_out,
    poll,
    run,
    send,
    tasks_stored,
    waiting,
)
from tests.support.clock import ManualClock
from tests.support.recorder import Call, Recorder
from tests.support.units import Meter

VISIBILITY_MS = 90_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def dues() -> list[int]:
    return sorted(int(item["due_ms"]["N"]) for item in tasks_stored())


def payloads() -> list[Any]:
    return sorted(json.loads(item["payload"]["S"])["order"] for item in tasks_stored())


def batch(*orders: int, **more: Any) -> dict[str, Any]:
    return {"tasks": [{**TASK, "payload": {"order": order}, **more} for order in orders]}


# Created tasks


def test_a_message_becomes_the_task_that_a_request_would(wired: ManualClock) -> None:
    send(TASK)
    assert poll() == 0
    assert waiting() == 0
    (item,) = tasks_stored()
    by_queue = {name: item[name] for name in ("biz_type", "payload", "callback", "due_ms")}
    assert call("POST", "/v1/tasks", TASK)[0] == 201
    assert [{name: i[name] for name in by_queue} for i in tasks_stored()] == [by_queue] * 2


def test_of_a_member_given_twice_the_last_one_counts(wired: ManualClock) -> None:
    send(json.dumps(TASK)[:-1] + ', "payload": {"order": 1}, "biz_type": "mails"}')
    send(f'{{"tasks": [], "tasks": {json.dumps(batch(2)["tasks"])}}}')
    assert poll() == 0
    assert payloads() == [1, 2]
    assert sorted(item["biz_type"]["S"] for item in tasks_stored()) == ["mails", "orders"]


def test_a_message_of_a_batch_becomes_all_of_its_tasks(wired: ManualClock) -> None:
    keyed = {**TASK, "payload": {"order": 30}, "key": "order-30"}
    send({"tasks": [*batch(*range(30))["tasks"], keyed]})
    assert poll() == 0
    assert payloads() == list(range(31))
    assert dead_letters() == []


def test_delays_count_from_when_the_message_was_sent(wired: ManualClock) -> None:
    sent_ms = wired.now_ms()
    send(TASK)
    send({"tasks": [TASK]})
    wired.advance_ms(500_000)
    assert poll() == 0
    assert dues() == [sent_ms + 600_000] * 2


def test_a_due_instant_that_passed_while_the_message_waited_is_now(wired: ManualClock) -> None:
    sent_ms = wired.now_ms()
    send(TASK)
    wired.advance_ms(2 * HOUR_MS)
    assert poll() == 0
    assert dues() == [sent_ms + 600_000]
    message = boto3.client("sqs").receive_message(QueueUrl=process.settings().slice_queue_url)
    assert len(message["Messages"]) == 1, "a direct message, as for any task that is due"


# Repeats


def test_a_message_received_twice_creates_its_tasks_once(wired: ManualClock) -> None:
    """The reply of the run was lost, or SQS delivered the message twice."""
    send(TASK)
    send({"tasks": [TASK, {**TASK, "key": "order-17"}]})
    first = handed_out()
    assert run(first) == set()
    assert run(first) == set()
    wired.advance_ms(VISIBILITY_MS + 1)
    assert poll() == 0
    assert len(tasks_stored()) == 3


def test_a_message_that_is_in_a_batch_twice_creates_its_tasks_once(wired: ManualClock) -> None:
    send(TASK)
    (record,) = handed_out()
    assert run([record, record]) == set()
    assert len(tasks_stored()) == 1


def test_two_messages_under_one_key_are_one_request(wired: ManualClock) -> None:
    """A later repeat does not count the delay again."""
    sent_ms = wired.now_ms()
    send(TASK, idempotency_key="order-17")
    assert poll() == 0
    wired.advance_ms(60_000)
    send(TASK, idempotency_key="order-17")
    assert poll() == 0
    assert dues() == [sent_ms + 600_000]
    assert dead_letters() == []


def test_another_body_under_a_key_is_a_dead_letter(wired: ManualClock) -> None:
    send(TASK, idempotency_key="order-17")
    assert poll() == 0
    send({**TASK, "delay_seconds": 601}, idempotency_key="order-17")
    assert poll() == 0
    ((_, attributes),) = dead_letters()
    assert attributes["problem"] == "idempotency-key-reused"
    assert len(tasks_stored()) == 1


def test_idempotency_keys_of_messages_and_requests_are_separate(wired: ManualClock) -> None:
    for body in (TASK, TASK):
        send(body, idempotency_key="order-17")
    assert poll() == 0
    assert sent("POST", "/v1/tasks", TASK, idempotency_key="order-17")[0] == 201
    assert len(tasks_stored()) == 2


@pytest.mark.parametrize("dies_at", ["create", "record", "letter", "delete"])
def test_a_message_is_carried_out_once_after_a_run_that_died(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch, dies_at: str
) -> None:
    class Dead(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Dead

    where = {
        "create": "duewheel.stores.tasks.tasks.TaskStore.create_many",
        "record": "duewheel.stores.tasks.idempotency_records.RequestRecords.replace",
        "letter": "duewheel.stores.ingest.queue.IngestQueue.give_up",
    }
    send({"tasks": [TASK, TASK, {**TASK, "retry": 1}]})
    if dies_at == "delete":
        assert run(handed_out()) == set()
    else:
        records = handed_out()
        with monkeypatch.context() as broken:
            broken.setattr(where[dies_at], die)
            with pytest.raises(Dead):
                run(records)
    wired.advance_ms(VISIBILITY_MS + 1)
    assert poll() == 0
    assert waiting() == 0
    assert len(tasks_stored()) == 2
    assert len(dead_letters()) == (2 if dies_at == "delete" else 1), "at least once"


def test_a_message_claimed_by_another_run_is_received_again(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the reply is lost")

    send(TASK)
    (record,) = handed_out()
    with monkeypatch.context() as broken:
        broken.setattr("duewheel.workflows.tasks.create_tasks.CreateTasks._one", fail)
        assert run([record]) == {record["messageId"]}
    assert run([record]) == {record["messageId"]}, "under the claim of the first run"
    wired.advance_ms(LEASE_MS)
    assert run([record]) == set()
    assert len(tasks_stored()) == 1


# Permanent refusals


@pytest.mark.parametrize(
    ("body", "problem", "field"),
    [
        ("{rubbish", "malformed-body", None),
        ('["a"]', "malformed-body", None),
        ({**TASK, "biz_type": "!"}, "invalid-field", "biz_type"),
        ({**TASK, "delay_seconds": -1}, "invalid-field", "delay_seconds"),
        ({"tasks": []}, "invalid-field", "tasks"),
        ({"tasks": [TASK], "biz_type": "orders"}, "invalid-field", "biz_type"),
        ({**TASK, "payload": "x" * 270_000}, "too-large", None),
        ({**TASK, "callback": {"type": "sqs", "queue_url": "https://a/1/b"}}, None, None),
        ({**TASK, "\x01\ufffe": 1}, "invalid-field", "\ufffd\ufffd"),
        ({**TASK, "\ud800": 1}, "malformed-body", None),
    ],
)
def test_an_invalid_message_becomes_a_dead_letter_with_its_reason_at_once(
    wired: ManualClock, body: Any, problem: str | None, field: str | None
) -> None:
    message_id = send(body)
    assert poll() == 0
    assert (waiting(), tasks_stored()) == (0, [])
    ((letter, attributes),) = dead_letters()
    assert letter == (body if isinstance(body, str) else json.dumps(body))
    assert attributes["message-id"] == message_id
    assert attributes["idempotency-key"] == message_id
    assert attributes["sent-at"] == rfc3339(wired.now_ms())
    assert attributes["detail"]
    if problem is not None:
        assert (attributes["problem"], attributes.get("field")) == (problem, field)


def test_a_message_with_an_invalid_key_becomes_a_dead_letter(wired: ManualClock) -> None:
    send(TASK, idempotency_key="ä" * 300)
    assert poll() == 0
    ((_, attributes),) = dead_letters()
    assert (attributes["problem"], attributes["field"]) == ("invalid-field", "idempotency-key")


def test_the_refused_tasks_of_a_batch_become_one_dead_letter(wired: ManualClock) -> None:
    good, (bad, worse) = batch(1, 2)["tasks"], batch(3, 4, retry=1)["tasks"]
    body = json.dumps({"tasks": [bad, good[0], worse, good[1]]}, indent=1)
    message_id = send(body, idempotency_key="b-1")
    assert poll() == 0
    assert payloads() == [1, 2]
    ((letter, attributes),) = dead_letters()
    assert json.loads(letter) == {"tasks": [bad, worse]}
    assert json.dumps(bad["payload"], indent=1).strip("{}\n ") in letter, "as it was written"
    assert attributes["message-id"] == message_id
    assert attributes["idempotency-key"] != "b-1", "the rest is another request"
    problems = json.loads(attributes["problems"])
    assert [(p["index"], p["problem"], p["field"]) for p in problems] == [
        (0, "invalid-field", "tasks[0].retry"),
        (2, "invalid-field", "tasks[2].retry"),
    ]
    assert (attributes["problem"], attributes["field"]) == ("invalid-field", "tasks[0].retry")


def test_the_largest_message_fits_into_its_dead_letter(wired: ManualClock) -> None:
    """The test guard refuses the same messages as SQS."""
    tasks = [{**TASK, "x" * 99: "é" * 900} for _ in range(470)]
    body = json.dumps({"tasks": tasks}, ensure_ascii=False)
    assert 950_000 < len(body.encode()) <= 1_000_000
    send(body)
    assert poll() == 0
    ((letter, attributes),) = dead_letters()
    assert letter == body
    assert 20 < len(json.loads(attributes["problems"])) < 470


def test_a_message_stays_if_its_dead_letter_cannot_be_sent(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ConnectionError

    send("{rubbish")
    with monkeypatch.context() as broken:
        broken.setattr("duewheel.stores.ingest.queue.IngestQueue.give_up", refuse)
        assert poll() == 1
    wired.advance_ms(VISIBILITY_MS + 1)
    assert poll() == 0
    assert len(dead_letters()) == 1


# Temporary refusals


def limit(creates_per_second: int) -> None:
    settings = {"creates_per_second": creates_per_second}
    assert call("PUT", "/v1/businesses/orders", settings)[0] in (200, 201)


@pytest.mark.exhaustive
def test_a_task_refused_by_a_limit_is_created_later(wired: ManualClock) -> None:
    limit(1)
    for _ in range(3):
        send(TASK)
    assert poll() == 2
    assert len(tasks_stored()) == 1
    for _ in range(60):
        wired.advance_ms(1_000)
        poll()
    assert len(tasks_stored()) == 3
    assert (waiting(), dead_letters()) == (0, [])


@pytest.mark.exhaustive
def test_a_batch_refused_in_part_by_a_limit_creates_each_task_once(wired: ManualClock) -> None:
    limit(2)
    send(batch(1, 2, 3, 4, 5))
    assert poll() == 1
    assert len(tasks_stored()) == 2
    assert dead_letters() == []
    for _ in range(120):
        wired.advance_ms(1_000)
        poll()
    assert payloads() == [1, 2, 3, 4, 5]
    assert (waiting(), dead_letters()) == (0, [])


def test_the_limit_of_one_business_does_not_delay_another(wired: ManualClock) -> None:
    limit(1)
    for biz_type in ("orders", "orders", "shop"):
        send({**TASK, "biz_type": biz_type})
    assert poll() == 1
    assert sorted(item["biz_type"]["S"] for item in tasks_stored()) == ["orders", "shop"]


def test_a_message_refused_at_its_last_try_becomes_a_dead_letter(wired: ManualClock) -> None:
    limit(1)
    send(TASK)
    send(batch(1, 2))
    first, second = handed_out()
    run([first])
    wired.advance_ms(2_000)
    for record in (first, second):
        record["attributes"]["ApproximateReceiveCount"] = str(RECEIVES_MAX)
    assert run([second]) == set()
    ((letter, attributes),) = dead_letters()
    assert (json.loads(letter), attributes["problem"]) == (batch(2), "too-many-creates")
    assert len(tasks_stored()) == 2


def test_an_unexpected_failure_leaves_the_message_until_its_last_try(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(
        "duewheel.workflows.tasks.create_idempotent.CreateIdempotent.__call__", fail
    )
    message_id = send(TASK)
    (record,) = handed_out()
    assert run([record]) == {message_id}
    record["attributes"]["ApproximateReceiveCount"] = str(RECEIVES_MAX)
    assert run([record]) == set()
    ((letter, attributes),) = dead_letters()
    assert (json.loads(letter), attributes["problem"]) == (TASK, "internal")
    assert "secret" not in str(attributes)


def test_a_message_received_again_after_days_finds_its_task(wired: ManualClock) -> None:
    send(TASK)
    assert run(handed_out()) == set(), "and then the reply is lost, and the queue is not polled"
    wired.advance_ms(13 * DAY_MS)
    assert poll() == 0
    assert (waiting(), len(tasks_stored()), dead_letters()) == (0, 1, [])


def test_a_message_repeated_within_a_day_is_the_same_request_after_any_backlog(
    wired: ManualClock,
) -> None:
    """The messages may wait in a backlog, or while polling is switched off."""
    send(TASK, idempotency_key="order-17")
    assert poll() == 0
    wired.advance_ms(22 * HOUR_MS)
    send(TASK, idempotency_key="order-17")
    wired.advance_ms(13 * DAY_MS)
    assert poll() == 0
    assert (waiting(), len(tasks_stored()), dead_letters()) == (0, 1, [])


def test_a_task_of_an_earlier_try_is_not_created_again_after_its_deletion(
    wired: ManualClock,
) -> None:
    """The rest waits for a limit, the queue is not polled for days, and ended tasks are kept for
    one day."""
    limit(1)
    send(batch(1, 2))
    assert poll() == 1
    (made,) = tasks_stored()
    boto3.client("dynamodb").delete_item(
        TableName=process.settings().wheel_table,
        Key={name: made[name] for name in ("slot", "place")},
    )
    wired.advance_ms(3 * DAY_MS)
    assert poll() == 0
    assert payloads() == [2]


def test_a_message_that_waited_for_days_is_carried_out(wired: ManualClock) -> None:
    send(TASK)
    wired.advance_ms(3 * DAY_MS)
    (record,) = handed_out()
    assert run([record]) == set()
    wired.advance_ms(LAST_TRY_AFTER_MS)
    assert run([record]) == set(), (
        "its record is kept for as long as the message may be received again"
    )
    assert (len(tasks_stored()), dead_letters()) == (1, [])


def test_no_message_is_begun_without_enough_time_left(wired: ManualClock) -> None:
    left = [send(TASK) for _ in range(3)]
    remaining = iter([29_000, ingest.REMAINING_MS_MIN - 1, 1_000])
    assert run(handed_out(), Context(lambda: next(remaining))) == set(left[1:])
    assert len(tasks_stored()) == 1


# Rights


def test_messages_create_tasks_for_the_businesses_of_the_parameter(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INGEST_BUSINESSES", "orders-*, shop")
    process.start_anew(wired)
    names = ("orders-eu", "orders", "shop", "shop2")
    tasks = [{**TASK, "biz_type": name} for name in names]
    for task in tasks:
        send(task)
    send({"tasks": tasks})
    assert poll() == 0
    stored = sorted(item["biz_type"]["S"] for item in tasks_stored())
    assert stored == ["orders-eu", "orders-eu", "shop", "shop"]
    letters = dead_letters()
    assert {attributes["problem"] for _, attributes in letters} == {"not-permitted"}
    assert json.loads(letters[-1][0]) == {"tasks": [tasks[1], tasks[3]]}


def test_a_callback_to_the_ingest_queue_creates_no_tasks(wired: ManualClock) -> None:
    """The callback may be of another deployment, or pass a topic: the deployment's own queues are
    no targets."""
    send(TASK, duewheel_attempt="1")
    assert poll() == 0
    ((_, attributes),) = dead_letters()
    assert (attributes["problem"], tasks_stored()) == ("callback-refused", [])


def test_the_log_has_sender_and_task_ids_and_no_content(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, refused = send({**TASK, "payload": "secret"}), send({**TASK, "secret": "secret"})
    (first, second) = handed_out()
    for record in (first, second):
        record["attributes"]["SenderId"] = "AROAEXAMPLE:worker-7"
    out = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", out)
    level = logger.log_level
    logger.setLevel("INFO")  # an earlier stack in this process may have changed it
    run([first, second])
    logger.setLevel(level)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    names = ("action", "by", "call", "message_id", "status", "problem")
    assert [tuple(line.get(name) for name in names) for line in lines] == [
        ("change", "sqs/AROAEXAMPLE", "ingest", made, 201, None),
        ("change", "sqs/AROAEXAMPLE", "ingest", refused, 422, "invalid-field"),
    ]
    assert [len(line["task_ids"]) for line in lines] == [1, 0]
    assert "secret" not in out.getvalue()


# Cost


def units_of(work: Callable[[], object]) -> tuple[float, int]:
    """The write units and requests of DynamoDB, for both tables."""
    config = process.settings()
    meters = [Meter(config.wheel_table), Meter(config.registry_table)]

    def bill(made: Call) -> None:
        for meter in meters:
            meter(made)

    recorder = Recorder()
    recorder.attach(process.dynamodb())
    recorder.after = bill
    work()
    recorder.after = None
    return sum(m.write_units for m in meters), sum(m.dynamodb_requests for m in meters)


@pytest.mark.parametrize("tasks", [1, 50])
def test_a_message_costs_two_writes_more_than_a_request_for_any_number_of_tasks(
    wired: ManualClock, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.random", lambda: 0.999)  # so that no load estimate is written
    path, body = "/v1/tasks", TASK
    if tasks > 1:
        path, body = "/v1/tasks/batch", {"tasks": [TASK] * tasks}
    call("POST", path, body)  # fills the caches of settings and pointers
    units, requests = units_of(lambda: call("POST", path, body))
    send(body)
    assert units_of(poll) == (units + 2, requests + 2)
