"""The ingest function with its real wiring, on moto with the template's queues and its role."""

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


# What is created


def test_a_message_becomes_the_task_that_a_request_would(wired: ManualClock) -> None:
    send(TASK)
    assert poll() == 0
    assert waiting() == 0
    (item,) = tasks_stored()
    by_queue = {name: item[name] for name in ("biz_type", "payload", "callback", "due_ms")}
    assert call("POST", "/v1/tasks", TASK)[0] == 201
    assert [{name: i[name] for name in by_queue} for i in tasks_stored()] == [by_queue] * 2


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


def test_what_was_due_while_its_message_waited_is_due_now(wired: ManualClock) -> None:
    sent_ms = wired.now_ms()
    send(TASK)
    wired.advance_ms(2 * HOUR_MS)
    assert poll() == 0
    assert dues() == [sent_ms + 600_000]
    message = boto3.client("sqs").receive_message(QueueUrl=process.settings().slice_queue_url)
    assert len(message["Messages"]) == 1, "a direct message, as of any task that is due"


# Once


def test_a_message_that_is_handed_out_twice_makes_its_tasks_once(wired: ManualClock) -> None:
    """Its reply was lost, or SQS delivered it twice."""
    send(TASK)
    send({"tasks": [TASK, {**TASK, "key": "order-17"}]})
    first = handed_out()
    assert run(first) == set()
    assert run(first) == set()
    wired.advance_ms(VISIBILITY_MS + 1)
    assert poll() == 0
    assert len(tasks_stored()) == 3


def test_a_message_that_stands_in_a_batch_twice_makes_its_tasks_once(wired: ManualClock) -> None:
    send(TASK)
    (record,) = handed_out()
    assert run([record, record]) == set()
    assert len(tasks_stored()) == 1


def test_two_messages_under_one_key_are_one_request(wired: ManualClock) -> None:
    """Also when the sender repeats itself later, so that a delay would end later, too."""
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
    ((_, told),) = dead_letters()
    assert told["problem"] == "idempotency-key-reused"
    assert len(tasks_stored()) == 1


def test_a_key_of_a_message_and_one_of_a_request_are_not_the_same(wired: ManualClock) -> None:
    for body in (TASK, TASK):
        send(body, idempotency_key="order-17")
    assert poll() == 0
    assert sent("POST", "/v1/tasks", TASK, idempotency_key="order-17")[0] == 201
    assert len(tasks_stored()) == 2


@pytest.mark.parametrize("dies_at", ["create", "record", "letter", "delete"])
def test_a_death_in_between_leaves_a_message_that_is_carried_out_once(
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


def test_a_message_that_another_run_is_at_work_on_comes_back(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the reply is lost")

    send(TASK)
    (record,) = handed_out()
    with monkeypatch.context() as broken:
        broken.setattr("duewheel.workflows.tasks.create_tasks.CreateTasks._one", fail)
        assert run([record]) == {record["messageId"]}
    assert run([record]) == {record["messageId"]}, "under the lease of the first"
    wired.advance_ms(LEASE_MS)
    assert run([record]) == set()
    assert len(tasks_stored()) == 1


# What is refused for good


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
def test_what_can_never_succeed_is_a_dead_letter_with_its_reason_at_once(
    wired: ManualClock, body: Any, problem: str | None, field: str | None
) -> None:
    message_id = send(body)
    assert poll() == 0
    assert (waiting(), tasks_stored()) == (0, [])
    ((letter, told),) = dead_letters()
    assert letter == (body if isinstance(body, str) else json.dumps(body))
    assert told["message-id"] == message_id
    assert told["idempotency-key"] == message_id
    assert told["sent-at"] == rfc3339(wired.now_ms())
    assert told["detail"]
    if problem is not None:
        assert (told["problem"], told.get("field")) == (problem, field)


def test_a_key_that_is_none_is_a_dead_letter(wired: ManualClock) -> None:
    send(TASK, idempotency_key="ä" * 300)
    assert poll() == 0
    ((_, told),) = dead_letters()
    assert (told["problem"], told["field"]) == ("invalid-field", "idempotency-key")


def test_of_a_batch_the_good_are_created_and_the_others_are_one_dead_letter(
    wired: ManualClock,
) -> None:
    good, (bad, worse) = batch(1, 2)["tasks"], batch(3, 4, retry=1)["tasks"]
    body = json.dumps({"tasks": [bad, good[0], worse, good[1]]}, indent=1)
    message_id = send(body, idempotency_key="b-1")
    assert poll() == 0
    assert payloads() == [1, 2]
    ((letter, told),) = dead_letters()
    assert json.loads(letter) == {"tasks": [bad, worse]}
    assert json.dumps(bad["payload"], indent=1).strip("{}\n ") in letter, "as it was written"
    assert told["message-id"] == message_id
    assert told["idempotency-key"] != "b-1", "what is left of it is another request"
    problems = json.loads(told["problems"])
    assert [(p["index"], p["problem"], p["field"]) for p in problems] == [
        (0, "invalid-field", "tasks[0].retry"),
        (2, "invalid-field", "tasks[2].retry"),
    ]
    assert (told["problem"], told["field"]) == ("invalid-field", "tasks[0].retry")


def test_the_largest_message_there_is_fits_into_its_dead_letter(wired: ManualClock) -> None:
    """The guard refuses what SQS refuses."""
    tasks = [{**TASK, "x" * 99: "é" * 900} for _ in range(470)]
    body = json.dumps({"tasks": tasks}, ensure_ascii=False)
    assert 950_000 < len(body.encode()) <= 1_000_000
    send(body)
    assert poll() == 0
    ((letter, told),) = dead_letters()
    assert letter == body
    assert 20 < len(json.loads(told["problems"])) < 470


def test_a_dead_letter_that_is_not_taken_leaves_its_message(
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


# What may succeed later


def limit(creates_per_second: int) -> None:
    settings = {"creates_per_second": creates_per_second, "creates_burst": creates_per_second}
    assert call("PUT", "/v1/businesses/orders", settings)[0] in (200, 201)


@pytest.mark.exhaustive
def test_what_a_limit_holds_up_waits_and_is_created_when_there_is_room(
    wired: ManualClock,
) -> None:
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
def test_of_a_batch_that_a_limit_holds_up_each_task_is_created_once(wired: ManualClock) -> None:
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


def test_no_business_of_a_message_holds_up_another(wired: ManualClock) -> None:
    limit(1)
    for biz_type in ("orders", "orders", "shop"):
        send({**TASK, "biz_type": biz_type})
    assert poll() == 1
    assert sorted(item["biz_type"]["S"] for item in tasks_stored()) == ["orders", "shop"]


def test_what_is_still_refused_at_the_last_try_is_a_dead_letter_with_its_reason(
    wired: ManualClock,
) -> None:
    limit(1)
    send(TASK)
    send(batch(1, 2))
    first, second = handed_out()
    run([first])
    wired.advance_ms(2_000)
    for record in (first, second):
        record["attributes"]["ApproximateReceiveCount"] = str(RECEIVES_MAX)
    assert run([second]) == set()
    ((letter, told),) = dead_letters()
    assert (json.loads(letter), told["problem"]) == (batch(2), "too-many-creates")
    assert len(tasks_stored()) == 2


def test_a_failure_nobody_expected_leaves_the_message_until_its_last_try(
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
    ((letter, told),) = dead_letters()
    assert (json.loads(letter), told["problem"]) == (TASK, "internal")
    assert "secret" not in str(told)


def test_what_is_handed_out_again_after_days_finds_what_its_first_try_made(
    wired: ManualClock,
) -> None:
    send(TASK)
    assert run(handed_out()) == set(), "and the reply is lost, and nobody polls"
    wired.advance_ms(13 * DAY_MS)
    assert poll() == 0
    assert (waiting(), len(tasks_stored()), dead_letters()) == (0, 1, [])


def test_what_was_sent_again_within_a_day_is_the_same_request_whenever_it_is_worked_off(
    wired: ManualClock,
) -> None:
    """Behind a backlog, or while polling is switched off."""
    send(TASK, idempotency_key="order-17")
    assert poll() == 0
    wired.advance_ms(22 * HOUR_MS)
    send(TASK, idempotency_key="order-17")
    wired.advance_ms(13 * DAY_MS)
    assert poll() == 0
    assert (waiting(), len(tasks_stored()), dead_letters()) == (0, 1, [])


def test_what_a_try_made_of_a_batch_is_not_made_again_once_it_has_been_deleted(
    wired: ManualClock,
) -> None:
    """The rest waits for a limit, nobody polls for days, and tasks are kept for one."""
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


def test_a_message_that_has_waited_for_days_is_taken_when_it_first_comes_up(
    wired: ManualClock,
) -> None:
    send(TASK)
    wired.advance_ms(3 * DAY_MS)
    (record,) = handed_out()
    assert run([record]) == set()
    wired.advance_ms(LAST_TRY_AFTER_MS)
    assert run([record]) == set(), "and it is remembered for as long as it may come up again"
    assert (len(tasks_stored()), dead_letters()) == (1, [])


def test_no_message_is_begun_that_there_is_no_time_for(wired: ManualClock) -> None:
    left = [send(TASK) for _ in range(3)]
    remaining = iter([29_000, ingest.REMAINING_MS_MIN - 1, 1_000])
    assert run(handed_out(), Context(lambda: next(remaining))) == set(left[1:])
    assert len(tasks_stored()) == 1


# Who may


def test_messages_create_for_the_businesses_that_the_parameter_names(
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
    assert {told["problem"] for _, told in letters} == {"not-permitted"}
    assert json.loads(letters[-1][0]) == {"tasks": [tasks[1], tasks[3]]}


def test_a_callback_of_a_task_makes_no_tasks(wired: ManualClock) -> None:
    """Of another deployment, or by way of a topic: this one's own queues are no targets."""
    send(TASK, duewheel_attempt="1")
    assert poll() == 0
    ((_, told),) = dead_letters()
    assert (told["problem"], tasks_stored()) == ("callback-refused", [])


def test_the_log_says_who_sent_what_was_made_and_nothing_that_it_holds(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, refused = send({**TASK, "payload": "secret"}), send({**TASK, "secret": "secret"})
    (first, second) = handed_out()
    for record in (first, second):
        record["attributes"]["SenderId"] = "AROAEXAMPLE:worker-7"
    out = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", out)
    level = logger.log_level
    logger.setLevel("INFO")  # a stack that ran here before may have left another
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


# What it costs


def units_of(work: Callable[[], object]) -> tuple[float, int]:
    """Write units, and requests of DynamoDB: of both tables."""
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
def test_a_message_costs_two_writes_more_than_a_request_however_many_its_tasks(
    wired: ManualClock, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.random", lambda: 0.999)  # by chance, some are noted ahead
    path, body = "/v1/tasks", TASK
    if tasks > 1:
        path, body = "/v1/tasks/batch", {"tasks": [TASK] * tasks}
    call("POST", path, body)  # what is known of the business and of the wheel is read by then
    units, requests = units_of(lambda: call("POST", path, body))
    send(body)
    assert units_of(poll) == (units + 2, requests + 2)
