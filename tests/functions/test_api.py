"""The api function with real events: bodies, ids, methods and failures."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from duewheel.log import logger
from duewheel.rules.refusals import Unavailable
from duewheel.rules.wheel.addresses import address_at
from duewheel.wiring import creating, process
from functions.api import app
from tests.functions.conftest import Context, call, http_event, sent
from tests.support.cases import each_case
from tests.support.clock import NOON_MS, ManualClock

GOOD = {"biz_type": "orders", "delay_seconds": 5, "callback": {"url": "https://example.com/"}}


def problem(method: str, path: str, body: Any = None) -> dict[str, Any]:
    status, document, headers = sent(method, path, body)
    assert headers["content-type"] == "application/problem+json"
    assert document["status"] == status
    assert document["type"].startswith("urn:duewheel:problem:")
    document["type"] = document["type"].removeprefix("urn:duewheel:problem:")
    return dict(document)


def test_create_answers_201_with_the_task_and_its_location(wired: ManualClock) -> None:
    status, task, headers = sent("POST", "/v1/tasks", GOOD)
    assert status == 201
    assert task["due_at"] == "2027-01-15T08:00:05.000Z"
    assert headers["content-type"] == "application/json"
    assert headers["location"] == f"/v1/tasks/{task['task_id']}"
    assert task.items() <= call("GET", headers["location"])[1].items()


def test_the_payload_is_returned_as_the_same_text(wired: ManualClock) -> None:
    source = r'{"a": 1.0, "b":1e400, "c":' + "7" * 40 + r', "d":"\u00e9é"}'
    body = json.dumps(GOOD)[:-1] + f', "payload": {source} }}'
    assert f'"payload":{source},"callback"' in sent("POST", "/v1/tasks", body, raw=True)[1]


@each_case(
    ("body", "type_", "status"),
    [
        (None, "malformed-body", 400),
        ([GOOD], "malformed-body", 400),
        ({}, "invalid-field", 422),
        ({**GOOD, "payload": "x" * 65_536}, "too-large", 413),
        ("{" + " " * 262_144 + "}", "too-large", 413),
    ],
)
def test_an_invalid_create_writes_no_task(
    wired: ManualClock, body: Any, type_: str, status: int
) -> None:
    document = problem("POST", "/v1/tasks", body)
    assert (document["type"], document["status"]) == (type_, status)
    assert call("GET", "/v1/tasks")[1]["tasks"] == []


def test_a_problem_names_the_field(wired: ManualClock) -> None:
    document = problem("POST", "/v1/tasks", {**GOOD, "callback": {"url": "ftp://example.com"}})
    assert document["field"] == "callback.url"
    assert document["detail"].startswith("callback.url: ")


def test_concurrent_requests_get_their_own_answers(wired: ManualClock) -> None:
    def biz_type_answered(number: int) -> str:
        body = {**GOOD, "biz_type": f"business-{number}"}
        return str(call("POST", "/v1/tasks", body)[1]["biz_type"])

    with ThreadPoolExecutor(8) as threads:
        answered = list(threads.map(biz_type_answered, range(50)))
    assert answered == [f"business-{number}" for number in range(50)]


def test_a_batch_creates_valid_tasks_and_returns_problems_for_the_others(
    wired: ManualClock,
) -> None:
    tasks = [GOOD, {**GOOD, "due_ms": 1}, 7, {**GOOD, "biz_type": "mail"}]
    status, answer = call("POST", "/v1/tasks/batch", {"tasks": tasks})
    assert status == 200
    results = answer["results"]
    assert [result["status"] for result in results] == [201, 422, 422, 201]
    assert results[1]["problem"]["field"] == "tasks[1].delay_seconds"
    assert results[2]["problem"]["field"] == "tasks[2]"
    assert results[3]["task"]["biz_type"] == "mail"


def test_a_batch_beyond_its_bounds_is_refused_as_a_whole(wired: ManualClock) -> None:
    assert problem("POST", "/v1/tasks/batch", GOOD)["type"] == "invalid-field"
    large = '{"tasks": [' + " " * 4_000_000 + "]}"
    assert problem("POST", "/v1/tasks/batch", large)["type"] == "too-large"


def test_the_answer_to_a_large_batch_fits_the_limit_of_lambda(wired: ManualClock) -> None:
    body = json.dumps({"tasks": [{**GOOD, "payload": '"' * 3_800}] * 500})
    assert 3_800_000 < len(body) < 4_000_000
    answer = app.handler(http_event("POST", "/v1/tasks/batch", body), Context())
    assert len(json.dumps(answer)) < 6 * 1024 * 1024
    results = json.loads(base64.b64decode(answer["body"]))["results"]
    assert {result["task"]["payload"] for result in results} == {'"' * 3_800}


@each_case("method", ["GET", "DELETE"])
@each_case(
    ("task_id", "status"),
    [
        (address_at(NOON_MS, b"nowhere!").task_id, 404),
        ("A" + address_at(NOON_MS, b"nowhere!").task_id[1:-1] + "A", 400),
        ("x", 400),
        ("%00", 400),
        ("..", 400),
        ("a" * 2_000, 400),
    ],
)
def test_an_id_that_names_no_task_is_refused(
    wired: ManualClock, method: str, task_id: str, status: int
) -> None:
    document = problem(method, f"/v1/tasks/{task_id}")
    assert (document["status"], document["field"]) == (status, "task_id")


@each_case("path", ["/v1/health", "/v1/wheel"])
def test_a_wrong_configuration_is_reported_to_the_operator(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("AUTH_MODE", "trust")
    process.start_anew(wired)
    document = problem("GET", path)
    assert (document["status"], document["type"]) == (500, "misconfigured")
    assert "AUTH_MODE" in document["detail"]


@each_case(
    "path", ["/v1", "/v1/", "/v1/nothing", "/v1/tasks/", "/v1/tasks/a/b", "/v2/tasks", "/V1/tasks"]
)
def test_an_unknown_call_is_a_problem(wired: ManualClock, path: str) -> None:
    document = problem("GET", path)
    assert (document["status"], document["type"]) == (404, "unknown-call")


@each_case(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/tasks", "GET, POST"),
        ("GET", "/v1/tasks/batch", "POST"),
        ("PUT", "/v1/tasks/any", "GET, PATCH, DELETE"),
        ("HEAD", "/v1/wheel", "GET"),
        ("OPTIONS", "/v1/health", "GET"),
    ],
)
def test_a_wrong_method_is_refused_with_the_allowed_ones(
    wired: ManualClock, method: str, path: str, allow: str
) -> None:
    status, document, headers = sent(method, path)
    assert (status, headers["allow"]) == (405, allow)
    assert document["type"] == "urn:duewheel:problem:method-not-allowed"


def fail_with(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(creating, "create_tasks", lambda: fail)


def test_a_temporary_failure_is_answered_with_retry_after(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, Unavailable("Too many writes at once."))
    status, document, headers = sent("POST", "/v1/tasks", GOOD)
    assert (status, headers["retry-after"]) == (503, "1")
    assert document["type"] == "urn:duewheel:problem:unavailable"


def test_an_internal_failure_is_logged_and_hidden_from_the_caller(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(logger, "exception", lambda text, **more: records.append((text, more)))
    fail_with(monkeypatch, RuntimeError("table arn:aws:secret"))
    document = problem("POST", "/v1/tasks", GOOD)
    assert (document["status"], document["type"]) == (500, "internal")
    assert "secret" not in json.dumps(document)
    assert http_event("POST", "/")["requestContext"]["requestId"] in document["detail"]
    assert records == [("call failed", {"action": "call-failed", "call": "POST /v1/tasks"})]
