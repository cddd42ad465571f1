"""Idempotency keys over HTTP: headers, callers, refusals, and identical answers."""

import json
from typing import Any

import boto3
import pytest

from duewheel.rules.tasks.idempotency import LEASE_MS
from duewheel.wiring import process
from functions.api import app as api
from tests.functions.conftest import Context, http_event
from tests.support.clock import ManualClock

TASK = {
    "biz_type": "orders",
    "delay_seconds": 600,
    "payload": {"order": 17},
    "callback": {"url": "https://receiver.example/"},
}
ROLE = "arn:aws:sts::123456789012:assumed-role/orders"
USER = "arn:aws:iam::123456789012:user/team/ada"
KEY = {"idempotency-key": "8e03978e-40d5"}


def post(
    body: Any,
    headers: dict[str, str] = KEY,
    path: str = "/v1/tasks",
    caller: str | None = None,
    method: str = "POST",
) -> dict[str, Any]:
    event = http_event(method, path, body, **headers)
    if caller is not None:
        event["requestContext"]["authorizer"]["iam"]["userArn"] = caller
    return api.handler(event, Context())


def problem(answer: dict[str, Any]) -> tuple[int, str, str | None]:
    document = json.loads(answer["body"])
    assert document["status"] == answer["statusCode"]
    name = document["type"].removeprefix("urn:duewheel:problem:")
    return answer["statusCode"], name, document.get("field")


def tasks_stored() -> int:
    items = boto3.client("dynamodb").scan(TableName=process.settings().wheel_table)["Items"]
    return len([item for item in items if "status" in item])


def test_a_repeated_create_gets_the_same_answer_with_its_headers(wired: ManualClock) -> None:
    first = post(TASK)
    assert first["statusCode"] == 201
    wired.advance_ms(5_000)
    assert post(TASK) == first
    assert tasks_stored() == 1


def test_a_repeated_batch_gets_the_same_answer_with_its_refusals(wired: ManualClock) -> None:
    tasks = [TASK, {**TASK, "retry": 1}, {**TASK, "key": "order-17"}, {**TASK, "due_ms": 10**15}]
    first = post({"tasks": tasks}, path="/v1/tasks/batch")
    results = json.loads(first["body"])["results"]
    assert [result["status"] for result in results] == [201, 422, 201, 422]
    wired.advance_ms(5_000)
    assert post({"tasks": tasks}, path="/v1/tasks/batch") == first
    assert tasks_stored() == 2


def test_a_body_in_base64_is_the_same_body(wired: ManualClock) -> None:
    first = post(TASK)
    assert post(json.dumps(TASK).encode()) == first


def test_another_body_or_call_under_the_key_is_refused(wired: ManualClock) -> None:
    post(TASK)
    expected = (422, "idempotency-key-reused", "idempotency-key")
    assert problem(post({**TASK, "delay_seconds": 601})) == expected
    assert problem(post(json.dumps(TASK) + " ")) == expected
    assert problem(post({"tasks": [TASK]}, path="/v1/tasks/batch")) == expected
    assert tasks_stored() == 1


def test_a_repeat_during_the_first_request_is_answered_with_retry_after(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the Lambda is gone")

    with monkeypatch.context() as broken:
        broken.setattr("duewheel.workflows.tasks.create_tasks.CreateTasks._one", fail)
        assert post(TASK)["statusCode"] == 500
    answer = post(TASK)
    assert problem(answer) == (409, "idempotency-key-in-use", "idempotency-key")
    assert answer["headers"]["retry-after"] == "1"
    wired.advance_ms(LEASE_MS)
    assert post(TASK)["statusCode"] == 201
    assert tasks_stored() == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "é"])
def test_an_idempotency_key_of_other_than_visible_ascii_is_refused(
    wired: ManualClock, key: str
) -> None:
    answer = post(TASK, {"idempotency-key": key})
    assert problem(answer) == (422, "invalid-field", "idempotency-key")
    assert tasks_stored() == 0


def test_the_header_has_any_case_and_its_quotes_are_part_of_the_key(wired: ManualClock) -> None:
    first = post(TASK, {"idempotency-key": '"a"'})
    assert post(TASK, {"Idempotency-Key": '"a"'}) == first
    assert post(TASK, {"IDEMPOTENCY-KEY": "a"}) != first
    assert tasks_stored() == 2


def test_a_key_belongs_to_a_caller_and_sessions_of_a_role_share_it(wired: ManualClock) -> None:
    first = post(TASK, caller=f"{ROLE}/instance-1")
    assert post(TASK, caller=f"{ROLE}/instance-2") == first
    others = [
        post(TASK, caller=caller)
        for caller in (
            f"{ROLE}-test/instance-1",
            USER,
            USER + "/ada",
            ROLE.replace("orders", "other"),
        )
    ]
    assert all(other["statusCode"] == 201 for other in others)
    assert len({answer["body"] for answer in (first, *others)}) == 5


def test_requests_without_authentication_have_one_caller(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTH_MODE", "off")
    process.start_anew(wired)

    def unsigned() -> dict[str, Any]:
        event = http_event("POST", "/v1/tasks", TASK, **KEY)
        del event["requestContext"]["authorizer"]
        return api.handler(event, Context())

    assert unsigned() == unsigned()
    assert tasks_stored() == 1


def test_other_calls_ignore_the_header(wired: ManualClock) -> None:
    path = "/v1/businesses/orders/tasks/order-17"
    body = {name: value for name, value in TASK.items() if name != "biz_type"}
    statuses = [
        post({**body, "delay_seconds": seconds}, path=path, method="PUT")["statusCode"]
        for seconds in (600, 700)
    ]
    assert statuses == [201, 200]
    assert post(TASK)["statusCode"] == 201


def test_invalid_input_is_refused_before_its_key_is_stored(wired: ManualClock) -> None:
    assert problem(post({**TASK, "retry": 1}))[0] == 422
    assert post(TASK)["statusCode"] == 201


def test_without_the_header_a_repeated_create_makes_a_second_task(wired: ManualClock) -> None:
    answers = [post(TASK, headers={}) for _ in range(2)]
    assert answers[0]["body"] != answers[1]["body"]
    assert tasks_stored() == 2
