"""A business with an item of each kind, and every call on it, to test the access of others.

`REQUESTS` has each call of the table once, and a test checks that none is missing.
"""

import json
from collections.abc import Callable
from typing import Any

import boto3
from msgspec import Struct

from duewheel.rules.businesses.health import NO_HEALTH, Breaker
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER, AttemptName, token_of
from duewheel.rules.tasks import lifecycle
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.wiring import businesses as business_wiring
from duewheel.wiring import process
from duewheel.wiring import wheel as wheel_wiring
from functions.api import app as api
from tests.functions.conftest import Context, http_event, text_of
from tests.support.clock import ManualClock

MINE, THEIRS = "mine", "theirs"
HOOK = {"url": "https://receiver.example/"}
PARAM = {"url": "https://receiver.example/", "method": "POST"}
OPERATOR = "duewheel-admin"
DOWN = "down.example"
REPORTS = ("/complete", "/fail", "/progress")
_TOKENS: dict[str, str] = {}  # by task id


class Asked(Struct, frozen=True):
    """An answer. `code`: the status, or the code of the xTimer interface."""

    status: int
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> int:
        body = self.body
        is_xtimer = self.status == 200 and "code" in body
        return int(body["code"]) or 200 if is_xtimer else self.status


def asked(who: str, method: str, target: str, body: Any = None, **headers: str) -> Asked:
    """Call the API function as the role of this name; an empty name means without a caller. The
    operator has the completion token of the first attempt."""
    event = http_event(method, target, body, **headers)
    arn = f"arn:aws:sts::123456789012:assumed-role/{who}/session"
    event["requestContext"]["authorizer"] = {"iam": {"userArn": arn}} if who else None
    if who == OPERATOR and event["rawPath"].endswith(REPORTS):
        event["headers"].setdefault(TOKEN_HEADER, _TOKENS[target.split("/")[3]])
    answer = api.handler(event, Context())
    return Asked(answer["statusCode"], text_of(answer))


class Owned(Struct, frozen=True):
    """The ids of a business's items."""

    biz_type: str
    task_id: str
    dead_id: str
    timer_id: str
    key_id: str
    running_id: str = ""
    operation_id: str = ""


def owned(clock: ManualClock, biz_type: str) -> Owned:
    def made(method: str, target: str, body: Any) -> Any:
        answer = asked(OPERATOR, method, target, body)
        assert answer.status in (200, 201), answer
        return answer.body

    made("PUT", f"/v1/businesses/{biz_type}", {"callback": HOOK})
    now_ms = clock.now_ms()
    breaker = Breaker(host=DOWN, since_ms=now_ms, until_ms=now_ms + 60_000, owner_token="a")
    business_wiring.health_store().open(biz_type, breaker, NO_HEALTH, now_ms)
    task = {"biz_type": biz_type, "delay_seconds": 600, "callback": HOOK}
    pending = made("POST", "/v1/tasks", {**task, "key": "order-17", "payload": {"order": 17}})
    dead = made("POST", "/v1/tasks", task)["task_id"]
    die(dead, clock.now_ms())
    timer = {"biz_type": biz_type, "name": "close", "cron": "0 * * * *", "callback": HOOK}
    timer_id = made("POST", "/v1/timers", timer)["timer_id"]
    grants = [{"right": "read", "businesses": biz_type}]
    key_id = made("POST", "/v1/keys", {"name": "reader", "grants": grants})["key_id"]
    running = made("POST", "/v1/tasks", task)["task_id"]
    work_on(running, clock.now_ms())
    _TOKENS[running] = token_of(running, AttemptName(0, 1), process.completion_secret())
    later = {"biz_type": biz_type, "action": "reschedule", "shift_seconds": 60}
    operation = made("POST", "/v1/operations", {**later, "ids": [pending["task_id"]]})
    return Owned(
        biz_type, pending["task_id"], dead, timer_id, key_id, running, operation["operation_id"]
    )


def work_on(task_id: str, now_ms: int) -> None:
    tasks = wheel_wiring.tasks()
    task = tasks.get(address_of_task(task_id))
    assert task is not None
    call = lifecycle.attempt_made(task, Outcome(Verdict.DELIVERED, ""), now_ms, now_ms)
    assert tasks.change(task, lifecycle.begun(task, call, 600, (), now_ms))


def die(task_id: str, now_ms: int) -> None:
    tasks = wheel_wiring.tasks()
    task = tasks.get(address_of_task(task_id))
    assert task is not None
    attempt = lifecycle.attempt_made(
        task, Outcome(Verdict.STOP, "gone", status_code=410), now_ms, now_ms
    )
    assert tasks.change(task, lifecycle.dead(task, attempt, "stopped", now_ms, 86_400))


Request = tuple[str, Any]  # target and body
REQUESTS: dict[tuple[str, str], Callable[[Owned], Request]] = {
    ("GET", "/v1/tasks"): lambda o: (f"/v1/tasks?biz_type={o.biz_type}", None),
    ("POST", "/v1/tasks"): lambda o: ("/v1/tasks", _task(o)),
    ("POST", "/v1/tasks/batch"): lambda o: ("/v1/tasks/batch", {"tasks": [_task(o)]}),
    ("GET", "/v1/tasks/{task_id}"): lambda o: (f"/v1/tasks/{o.task_id}", None),
    ("PATCH", "/v1/tasks/{task_id}"): lambda o: (f"/v1/tasks/{o.task_id}", {"delay_seconds": 9}),
    ("DELETE", "/v1/tasks/{task_id}"): lambda o: (f"/v1/tasks/{o.task_id}", None),
    ("POST", "/v1/tasks/{task_id}/run"): lambda o: (f"/v1/tasks/{o.task_id}/run", None),
    ("POST", "/v1/tasks/{task_id}/pause"): lambda o: (f"/v1/tasks/{o.task_id}/pause", None),
    ("POST", "/v1/tasks/{task_id}/resume"): lambda o: (f"/v1/tasks/{o.task_id}/resume", None),
    ("POST", "/v1/tasks/{task_id}/redrive"): lambda o: (f"/v1/tasks/{o.dead_id}/redrive", None),
    ("POST", "/v1/tasks/{task_id}/complete"): lambda o: (f"/v1/tasks/{o.running_id}/complete", {}),
    ("POST", "/v1/tasks/{task_id}/fail"): lambda o: (f"/v1/tasks/{o.running_id}/fail", {}),
    ("POST", "/v1/tasks/{task_id}/progress"): lambda o: (f"/v1/tasks/{o.running_id}/progress", {}),
    ("GET", "/v1/operations"): lambda o: (f"/v1/operations?biz_type={o.biz_type}", None),
    ("POST", "/v1/operations"): lambda o: (
        "/v1/operations",
        {"biz_type": o.biz_type, "action": "cancel", "ids": [o.task_id]},
    ),
    ("GET", "/v1/operations/{operation_id}"): lambda o: (_operation(o), None),
    ("POST", "/v1/operations/{operation_id}/stop"): lambda o: (f"{_operation(o)}/stop", None),
    ("GET", "/v1/operations/{operation_id}/refused"): lambda o: (f"{_operation(o)}/refused", None),
    ("GET", "/v1/businesses"): lambda o: ("/v1/businesses", None),
    ("GET", "/v1/businesses/{biz_type}"): lambda o: (_business(o), None),
    ("PUT", "/v1/businesses/{biz_type}"): lambda o: (_business(o), {"retention_days": 7}),
    ("DELETE", "/v1/businesses/{biz_type}"): lambda o: (
        f"{_business(o)}?cancel_pending=true",
        None,
    ),
    ("POST", "/v1/businesses/{biz_type}/pause"): lambda o: (f"{_business(o)}/pause", None),
    ("POST", "/v1/businesses/{biz_type}/resume"): lambda o: (f"{_business(o)}/resume", None),
    ("POST", "/v1/businesses/{biz_type}/probe"): lambda o: (
        f"{_business(o)}/probe",
        {"host": DOWN},
    ),
    ("GET", "/v1/businesses/{biz_type}/changes"): lambda o: (f"{_business(o)}/changes", None),
    ("GET", "/v1/businesses/{biz_type}/dead"): lambda o: (f"{_business(o)}/dead", None),
    ("GET", "/v1/businesses/{biz_type}/stats"): lambda o: (f"{_business(o)}/stats", None),
    ("GET", "/v1/businesses/{biz_type}/tasks"): lambda o: (
        f"{_business(o)}/tasks?key_prefix=order",
        None,
    ),
    ("DELETE", "/v1/businesses/{biz_type}/tasks"): lambda o: (
        f"{_business(o)}/tasks?key_prefix=order",
        None,
    ),
    ("GET", "/v1/businesses/{biz_type}/tasks/{key}"): lambda o: (_keyed(o), None),
    ("PUT", "/v1/businesses/{biz_type}/tasks/{key}"): lambda o: (
        _keyed(o),
        {"delay_seconds": 9, "callback": HOOK},
    ),
    ("DELETE", "/v1/businesses/{biz_type}/tasks/{key}"): lambda o: (_keyed(o), None),
    ("GET", "/v1/timers"): lambda o: (f"/v1/timers?biz_type={o.biz_type}", None),
    ("POST", "/v1/timers"): lambda o: ("/v1/timers", _timer(o)),
    ("POST", "/v1/timers/upcoming"): lambda o: ("/v1/timers/upcoming", {"every_seconds": 60}),
    ("GET", "/v1/timers/by-name/{biz_type}/{timer_name}"): lambda o: (_timer_named(o), None),
    ("PUT", "/v1/timers/by-name/{biz_type}/{timer_name}"): lambda o: (
        _timer_named(o),
        {"every_seconds": 60, "callback": HOOK},
    ),
    ("DELETE", "/v1/timers/by-name/{biz_type}/{timer_name}"): lambda o: (_timer_named(o), None),
    ("GET", "/v1/timers/{timer_id}"): lambda o: (_path(o), None),
    ("PATCH", "/v1/timers/{timer_id}"): lambda o: (_path(o), {"name": "another"}),
    ("DELETE", "/v1/timers/{timer_id}"): lambda o: (_path(o), None),
    ("POST", "/v1/timers/{timer_id}/enable"): lambda o: (f"{_path(o)}/enable", None),
    ("POST", "/v1/timers/{timer_id}/disable"): lambda o: (f"{_path(o)}/disable", None),
    ("POST", "/v1/timers/{timer_id}/run"): lambda o: (f"{_path(o)}/run", None),
    ("GET", "/v1/timers/{timer_id}/upcoming"): lambda o: (f"{_path(o)}/upcoming", None),
    ("GET", "/v1/timers/{timer_id}/runs"): lambda o: (f"{_path(o)}/runs", None),
    ("GET", "/v1/timers/{timer_id}/changes"): lambda o: (f"{_path(o)}/changes", None),
    ("POST", "/api/timer/v1/def"): lambda o: (
        "/api/timer/v1/def",
        {
            "app": o.biz_type,
            "name": "xtimer",
            "cron": "0 30 9 * * * *",
            "notifyHTTPParam": PARAM,
        },
    ),
    ("GET", "/api/timer/v1/def"): lambda o: (
        f"/api/timer/v1/def?app={o.biz_type}&id={o.timer_id}",
        None,
    ),
    ("DELETE", "/api/timer/v1/def"): lambda o: ("/api/timer/v1/def", _named(o)),
    ("POST", "/api/timer/v1/enable"): lambda o: ("/api/timer/v1/enable", _named(o)),
    ("POST", "/api/timer/v1/unable"): lambda o: ("/api/timer/v1/unable", _named(o)),
    ("GET", "/api/timer/v1/defs"): lambda o: (f"/api/timer/v1/defs?app={o.biz_type}", None),
    ("GET", "/api/task/v1/records"): lambda o: (
        f"/api/task/v1/records?timerID={o.timer_id}",
        None,
    ),
    ("GET", "/v1/keys"): lambda o: ("/v1/keys", None),
    ("POST", "/v1/keys"): lambda o: (
        "/v1/keys",
        {"name": "new", "grants": [{"right": "read", "businesses": o.biz_type}]},
    ),
    ("GET", "/v1/keys/{key_id}"): lambda o: (f"/v1/keys/{o.key_id}", None),
    ("DELETE", "/v1/keys/{key_id}"): lambda o: (f"/v1/keys/{o.key_id}", None),
    ("POST", "/v1/keys/{key_id}/rotate"): lambda o: (f"/v1/keys/{o.key_id}/rotate", None),
    ("GET", "/v1/keys/{key_id}/changes"): lambda o: (f"/v1/keys/{o.key_id}/changes", None),
    ("GET", "/v1/overview"): lambda o: ("/v1/overview", None),
    ("GET", "/v1/wheel"): lambda o: ("/v1/wheel", None),
    ("GET", "/v1/audit"): lambda o: (
        "/v1/audit?from=2027-01-15T08:00:00Z&to=2027-01-15T08:02:00Z",
        None,
    ),
    ("GET", "/v1/health"): lambda o: ("/v1/health", None),
    ("GET", "/v1/openapi.json"): lambda o: ("/v1/openapi.json", None),
    ("GET", "/api/openapi.json"): lambda o: ("/api/openapi.json", None),
}


def _task(o: Owned) -> dict[str, Any]:
    return {"biz_type": o.biz_type, "delay_seconds": 60, "callback": HOOK}


def _timer(o: Owned) -> dict[str, Any]:
    return {"biz_type": o.biz_type, "name": "new", "every_seconds": 60, "callback": HOOK}


def _business(o: Owned) -> str:
    return f"/v1/businesses/{o.biz_type}"


def _operation(o: Owned) -> str:
    return f"/v1/operations/{o.operation_id}"


def _keyed(o: Owned) -> str:
    return f"{_business(o)}/tasks/order-17"


def _path(o: Owned) -> str:
    return f"/v1/timers/{o.timer_id}"


def _timer_named(o: Owned) -> str:
    return f"/v1/timers/by-name/{o.biz_type}/close"


def _named(o: Owned) -> dict[str, Any]:
    return {"app": o.biz_type, "id": int(o.timer_id)}


def all_that_is_stored() -> dict[str, list[str]]:
    """The items of all tables, for comparisons."""
    dynamodb, config = boto3.client("dynamodb"), process.settings()
    return {
        table: sorted(map(repr, dynamodb.scan(TableName=table)["Items"]))
        for table in (config.wheel_table, config.registry_table, config.secrets_table)
    }
