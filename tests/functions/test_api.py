"""The api function with real events. Substitutes replace the workflows, which need AWS."""

import base64
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from duewheel.interface.wheel.wheel_view import OPEN_PLACES_SHOWN
from duewheel.log import logger
from duewheel.rules.access.grants import ANYTHING, Permit
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE
from duewheel.rules.refusals import Refusal, TooLate, Unavailable, UnknownTask
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.wheel.addresses import Address, address_at, address_of_task
from duewheel.rules.wheel.open_places import OpenPlace, Why
from duewheel.settings import SettingsError
from duewheel.wiring import api as wiring
from duewheel.wiring import creating, process
from duewheel.workflows.wheel.read_status import WheelState
from functions.api import app
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_000
GOOD = {"biz_type": "orders", "delay_seconds": 5, "callback": {"url": "https://example.com/"}}


@dataclass
class Context:
    function_name: str = "api"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:000000000000:function:api"
    aws_request_id: str = "00000000-0000-0000-0000-000000000001"


class FrozenClock:
    def now_ms(self) -> int:
        return NOW_MS


@dataclass
class Workflows:
    """Creates, cancels and reads tasks in a dictionary; can be set to fail."""

    tasks: dict[str, Task] = field(default_factory=dict)
    failure: Exception | None = None
    refused: set[int] = field(default_factory=set)
    open_places: tuple[OpenPlace, ...] = ()

    def create(self, requested: Sequence[NewTask | Refusal]) -> list[Made | Refusal]:
        refused = Unavailable("Try it again.")
        return [
            refused if index in self.refused else self._made(new)
            for index, new in enumerate(requested)
        ]

    def _made(self, new: NewTask | Refusal) -> Made | Refusal:
        return new if isinstance(new, Refusal) else Made(self.one(new))

    def one(self, new: NewTask) -> Task:
        self._fail()
        home = address_at(new.due_ms, len(self.tasks).to_bytes(8, "big"))
        task = Task(
            home=home,
            entry=home,
            biz_type=new.biz_type,
            due_ms=new.due_ms,
            next_ms=new.due_ms,
            callback=new.callback,
            created_ms=NOW_MS,
            updated_ms=NOW_MS,
            payload=new.payload,
        )
        self.tasks[task.task_id] = task
        return task

    def task(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        self._fail()
        return self.find(address_of_task(task_id), permit)

    def find(self, home: Address, _: Permit = ANYTHING) -> Task:
        self._fail()
        task_id = home.task_id
        if task_id not in self.tasks:
            raise UnknownTask("There is no task with this id.", "task_id")
        return self.tasks[task_id]

    def wheel(self) -> WheelState:
        self._fail()
        second = NOW_MS // 1000
        return WheelState(
            now_ms=NOW_MS + 250,
            buckets=1_000,
            origin_second=second - 900,
            time_pointer=second + 1,
            sweep_pointer=second - 130,
            open_places=self.open_places,
            leader="leader-1",
            forecast=[],
        )

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def workflows(monkeypatch: pytest.MonkeyPatch) -> Workflows:
    made = Workflows()
    monkeypatch.setattr(process, "clock", FrozenClock)
    monkeypatch.setattr(wiring, "access", lambda _: ANYTHING.access)
    monkeypatch.setattr(creating, "change_pending", lambda: made)
    monkeypatch.setattr(wiring, "read_wheel", lambda: made.wheel)
    monkeypatch.setattr(wiring, "allowed_targets", lambda: HTTP_ALONE)
    monkeypatch.setattr(creating, "create_tasks", lambda: made.create)
    monkeypatch.setattr(creating, "cancel_task", lambda: made.task)
    monkeypatch.setattr(wiring, "why_waiting", lambda: lambda _: None)
    monkeypatch.setattr(process, "settings", made._fail)
    return made


def event(method: str, path: str, body: str | None, **more: Any) -> dict[str, Any]:
    """An event of API Gateway: HTTP API, payload format 2.0."""
    return {
        "version": "2.0",
        "routeKey": "ANY /v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "host": "api.example.com"},
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "api",
            "domainName": "api.example.com",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "curl/8",
            },
            "requestId": "request-17",
            "routeKey": "ANY /v1/{proxy+}",
            "stage": "$default",
            "time": "17/Mar/2030:17:46:40 +0000",
            "timeEpoch": NOW_MS,
        },
        "pathParameters": {"proxy": path.removeprefix("/v1/")},
        **({} if body is None else {"body": body}),
        "isBase64Encoded": False,
        **more,
    }


def call(method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any, dict[str, str]]:
    text = body if isinstance(body, str | None) else json.dumps(body)
    answer = app.handler(event(method, path, text, **more), Context())  # type: ignore[arg-type]
    assert set(answer) == {"statusCode", "headers", "body", "isBase64Encoded"}
    content = answer["body"]
    if answer["isBase64Encoded"]:
        content = base64.b64decode(content).decode()
    return answer["statusCode"], json.loads(content), answer["headers"]


def problem(method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
    status, document, headers = call(method, path, body, **more)
    assert headers["content-type"] == "application/problem+json"
    assert document["status"] == status
    assert document["type"].startswith("urn:duewheel:problem:")
    document["type"] = document["type"].removeprefix("urn:duewheel:problem:")
    return dict(document)


# ---------------------------------------------------------------- create


def test_create_answers_201_with_the_task_and_its_location(workflows: Workflows) -> None:
    status, task, headers = call("POST", "/v1/tasks", GOOD)
    assert status == 201
    assert task["due_at"] == "2030-03-17T17:46:45.000Z"
    assert headers["content-type"] == "application/json"
    assert headers["location"] == f"/v1/tasks/{task['task_id']}"
    assert call("GET", headers["location"])[1] == task


def test_the_payload_is_returned_as_the_same_text(workflows: Workflows) -> None:
    source = r'{"a": 1.0, "b":1e400, "c":' + "7" * 40 + r', "d":"\u00e9é"}'
    body = json.dumps(GOOD)[:-1] + f', "payload": {source} }}'
    answer = app.handler(event("POST", "/v1/tasks", body), Context())  # type: ignore[arg-type]
    assert f'"payload":{source},"callback"' in answer["body"]


def test_a_body_in_base64_is_read_like_any_other(workflows: Workflows) -> None:
    text = base64.b64encode(json.dumps(GOOD).encode()).decode()
    assert call("POST", "/v1/tasks", text, isBase64Encoded=True)[0] == 201


@each_case(
    ("body", "more", "type_", "status"),
    [
        (None, {}, "malformed-body", 400),
        ("", {}, "malformed-body", 400),
        ("{", {}, "malformed-body", 400),
        ([GOOD], {}, "malformed-body", 400),
        ("//79", {"isBase64Encoded": True}, "malformed-body", 400),
        ("=", {"isBase64Encoded": True}, "malformed-body", 400),
        ({}, {}, "invalid-field", 422),
        ({**GOOD, "payload": "x" * 65_536}, {}, "too-large", 413),
        ("{" + " " * 262_144 + "}", {}, "too-large", 413),
    ],
)
def test_an_invalid_create_writes_no_task(
    workflows: Workflows, body: Any, more: dict[str, Any], type_: str, status: int
) -> None:
    document = problem("POST", "/v1/tasks", body, **more)
    assert (document["type"], document["status"]) == (type_, status)
    assert workflows.tasks == {}


def test_a_problem_names_the_field(workflows: Workflows) -> None:
    document = problem("POST", "/v1/tasks", {**GOOD, "callback": {"url": "ftp://example.com"}})
    assert document["field"] == "callback.url"
    assert document["detail"].startswith("callback.url: ")


def test_concurrent_requests_get_their_own_answers(workflows: Workflows) -> None:
    def biz_type_answered(number: int) -> str:
        body = {**GOOD, "biz_type": f"business-{number}"}
        return str(call("POST", "/v1/tasks", body)[1]["biz_type"])

    with ThreadPoolExecutor(8) as threads:
        answered = list(threads.map(biz_type_answered, range(200)))
    assert answered == [f"business-{number}" for number in range(200)]


# ---------------------------------------------------------------- batch


def test_a_batch_creates_valid_tasks_and_returns_problems_for_the_others(
    workflows: Workflows,
) -> None:
    tasks = [GOOD, {**GOOD, "due_ms": 1}, 7, {**GOOD, "biz_type": "mail"}, GOOD]
    workflows.refused = {4}
    status, answer, _ = call("POST", "/v1/tasks/batch", {"tasks": tasks})
    assert status == 200
    results = answer["results"]
    assert [result["status"] for result in results] == [201, 422, 422, 201, 503]
    assert results[1]["problem"]["field"] == "tasks[1].delay_seconds"
    assert results[2]["problem"]["field"] == "tasks[2]"
    assert results[3]["task"]["biz_type"] == "mail"
    assert len(workflows.tasks) == 2


def test_a_batch_without_a_valid_task_writes_no_task(workflows: Workflows) -> None:
    status, answer, _ = call("POST", "/v1/tasks/batch", {"tasks": [7, {}]})
    assert status == 200
    assert [result["status"] for result in answer["results"]] == [422, 422]
    assert workflows.tasks == {}


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        ({"tasks": []}, "invalid-field"),
        ({"tasks": [GOOD] * 501}, "too-large"),
        (GOOD, "invalid-field"),
        ('{"tasks": [' + " " * 4_000_000 + "]}", "too-large"),
    ],
)
def test_a_batch_beyond_its_bounds_is_refused_as_a_whole(
    workflows: Workflows, body: Any, type_: str
) -> None:
    assert problem("POST", "/v1/tasks/batch", body)["type"] == type_
    assert workflows.tasks == {}


def test_the_answer_to_a_large_batch_fits_the_limit_of_lambda(workflows: Workflows) -> None:
    task = {**GOOD, "payload": '"' * 3_800}
    body = json.dumps({"tasks": [task] * 500})
    assert 3_800_000 < len(body) < 4_000_000
    answer = app.handler(
        event("POST", "/v1/tasks/batch", body),
        Context(),  # type: ignore[arg-type]
    )
    assert len(json.dumps(answer)) < 6 * 1024 * 1024
    results = json.loads(base64.b64decode(answer["body"]))["results"]
    assert {result["task"]["payload"] for result in results} == {'"' * 3_800}


# ---------------------------------------------------------------- read and cancel


def test_cancel_answers_with_the_task(workflows: Workflows) -> None:
    task_id = call("POST", "/v1/tasks", GOOD)[1]["task_id"]
    status, task, _ = call("DELETE", f"/v1/tasks/{task_id}")
    assert (status, task["task_id"]) == (200, task_id)


def test_a_late_cancel_is_refused_with_the_cut_off(workflows: Workflows) -> None:
    workflows.failure = TooLate("The cut-off has passed.", cut_off_ms=NOW_MS - 1)
    document = problem("DELETE", "/v1/tasks/any")
    assert (document["status"], document["type"]) == (409, "too-late")
    assert document["cut_off"] == "2030-03-17T17:46:39.999Z"


@each_case("method", ["GET", "DELETE"])
@each_case(
    ("task_id", "status"),
    [
        (address_at(NOW_MS, b"nowhere!").task_id, 404),
        ("A" + address_at(NOW_MS, b"nowhere!").task_id[1:-1] + "A", 400),
        ("x", 400),
        ("%00", 400),
        ("..", 400),
        ("a" * 2_000, 400),
    ],
)
def test_an_id_that_names_no_task_is_refused(
    workflows: Workflows, method: str, task_id: str, status: int
) -> None:
    document = problem(method, f"/v1/tasks/{task_id}")
    assert (document["status"], document["field"]) == (status, "task_id")


def test_an_unexpected_query_string_is_ignored(workflows: Workflows) -> None:
    assert call("GET", "/v1/wheel", rawQueryString="a=b")[0] == 200


# ---------------------------------------------------------------- wheel and health


def test_the_wheel_shows_its_pointers_and_their_lag(workflows: Workflows) -> None:
    status, wheel, _ = call("GET", "/v1/wheel")
    assert status == 200
    assert wheel == {
        "now": "2030-03-17T17:46:40.250Z",
        "buckets": 1_000,
        "origin": "2030-03-17T17:31:40.000Z",
        "time_pointer": {
            "at": "2030-03-17T17:46:41.000Z",
            "second": NOW_MS // 1000 + 1,
            "lag_seconds": 0,
        },
        "sweep_pointer": {
            "at": "2030-03-17T17:44:30.000Z",
            "second": NOW_MS // 1000 - 130,
            "lag_seconds": 130,
        },
        "open_places": {"count": 0, "oldest_age_seconds": None, "places": []},
        "leader": "leader-1",
        "forecast": {"tasks": 0, "minutes": []},
    }


def test_the_wheel_counts_its_open_places_and_lists_the_oldest(workflows: Workflows) -> None:
    second = NOW_MS // 1000
    page = OpenPlace(
        second=second - 300, shard=3, page="2r", since_ms=NOW_MS - 170_000, why=Why.HELD
    )
    whole = [
        OpenPlace(second=second - 200 + n, shard=0, since_ms=NOW_MS - n, why=Why.FAILED)
        for n in range(OPEN_PLACES_SHOWN)
    ]
    workflows.open_places = (*whole, page)
    wheel = call("GET", "/v1/wheel")[1]
    shown = wheel["open_places"]
    assert (shown["count"], shown["oldest_age_seconds"]) == (OPEN_PLACES_SHOWN + 1, 170)
    assert len(shown["places"]) == OPEN_PLACES_SHOWN
    assert shown["places"][0] == {
        "at": "2030-03-17T17:41:40.000Z",
        "second": second - 300,
        "shard": 3,
        "page": "2r",
        "since": "2030-03-17T17:43:50.000Z",
        "why": "held",
    }
    assert (shown["places"][1]["page"], shown["places"][1]["why"]) == (None, "failed")


def test_health_answers_without_aws(workflows: Workflows) -> None:
    status, health, _ = call("GET", "/v1/health")
    assert (status, health["status"]) == (200, "ok")
    assert health["version"]


@pytest.mark.parametrize("path", ["/v1/health", "/v1/wheel"])
def test_a_wrong_configuration_is_reported_to_the_operator(workflows: Workflows, path: str) -> None:
    workflows.failure = SettingsError("BUCKETS=5, but the tables were laid out for 10")
    document = problem("GET", path)
    assert (document["status"], document["type"]) == (500, "misconfigured")
    assert document["detail"] == "BUCKETS=5, but the tables were laid out for 10"


# ---------------------------------------------------------------- calls


@each_case(
    "path", ["/v1", "/v1/", "/v1/nothing", "/v1/tasks/", "/v1/tasks/a/b", "/v2/tasks", "/V1/tasks"]
)
def test_an_unknown_call_is_a_problem(workflows: Workflows, path: str) -> None:
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
    workflows: Workflows, method: str, path: str, allow: str
) -> None:
    status, document, headers = call(method, path)
    assert (status, headers["allow"]) == (405, allow)
    assert document["type"] == "urn:duewheel:problem:method-not-allowed"


# ---------------------------------------------------------------- failures


def test_a_temporary_failure_is_answered_with_retry_after(workflows: Workflows) -> None:
    workflows.failure = Unavailable("Too many writes at once.")
    status, document, headers = call("POST", "/v1/tasks", GOOD)
    assert (status, headers["retry-after"]) == (503, "1")
    assert document["type"] == "urn:duewheel:problem:unavailable"


def test_an_internal_failure_is_logged_and_hidden_from_the_caller(
    workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(logger, "exception", lambda text, **more: records.append((text, more)))
    workflows.failure = RuntimeError("table arn:aws:secret")
    document = problem("POST", "/v1/tasks", GOOD)
    assert (document["status"], document["type"]) == (500, "internal")
    assert "secret" not in json.dumps(document)
    assert "request-17" in document["detail"]
    assert records == [("call failed", {"action": "call-failed", "call": "POST /v1/tasks"})]
