"""Callbacks into the deployment's own interface, queues and functions."""

from typing import Any

import boto3
import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.payload_encoding import ATTEMPT, callback_headers
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, Told
from duewheel.rules.callbacks.url import parse_callback_url
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import address_at
from duewheel.settings import settings_from
from duewheel.targets.http.connection import request_bytes
from duewheel.wiring import process
from local.aws.emulator import Emulator
from local.aws.resources import create_resources
from local.aws.template import ACCOUNT_ID, REGION, load_template
from tests.attacks.conftest import (
    APP_TIMER,
    TASK,
    TIMER,
    attack,
    every_call,
    filled,
    made,
    problem,
    stored_items,
)
from tests.conftest import TEMPLATE
from tests.support import timers
from tests.support.cases import each_case
from tests.support.clock import NOON_MS, ManualClock
from tests.support.receiver import BUSY, OK
from tests.support.world import FAR_MS, World

API = HttpCallback("https://api.example/v1/tasks", headers=(("authorization", "Bearer a-key"),))
HOME = address_at(NOON_MS, b"12345678")
DUE = replace(Task.at(HOME, "orders", NOON_MS, NOON_MS, API), payload="{}")
KEYED = {"delay_seconds": 600}
# As wide as an operator could write it.
WIDE_LISTS = {"TARGET_ARNS": "arn:aws:lambda:*:*:*,arn:aws:sqs:*:*:*"}
INGEST_QUEUES = ("IngestMessageQueue", "IngestDeadLetterQueue")
QUEUES = ("SliceQueue", "SlowQueue", "DeadLetterQueue", *INGEST_QUEUES)
FUNCTIONS = ("NotifierFunction", "SchedulerFunction", "SweeperFunction", "ApiFunction")
FUNCTION_ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:"


def headers_of_a_callback() -> dict[str, str]:
    """The headers as the notifier sends them and API Gateway passes them on."""
    sent = request_bytes(parse_callback_url(API.url), API, callback_headers(DUE, NOON_MS), b"{}")
    lines = sent.decode().partition("\r\n\r\n")[0].split("\r\n")[1:]
    return dict(line.split(": ", 1) for line in lines)


def test_a_callback_cannot_change_anything_by_any_call(wired: ManualClock) -> None:
    task, timer = made("POST", "/v1/tasks", TASK), made("POST", "/v1/timers", TIMER)
    made("PUT", "/v1/businesses/orders", {})
    before = stored_items()
    as_callback = headers_of_a_callback()
    for method, pattern in every_call():
        if method == "GET":
            continue
        path = filled(pattern, task_id=task["task_id"], timer_id=timer["timer_id"])
        body = {"/v1/timers": TIMER, "/api/timer/v1/def": APP_TIMER}.get(path, TASK)
        status, answer, headers = attack(method, path, body, **as_callback)
        assert status == 403, (method, path, answer)
        assert answer["type"] == "urn:duewheel:problem:callback-refused", (method, path)
        assert headers["duewheel-stop"] == "true", "otherwise the task would try again"
        assert stored_items() == before, (method, path)


def test_every_kind_of_call_has_the_mark_of_a_callback(world: World) -> None:
    notices = HttpCallback("https://receiver.example/notices")
    world.configured("orders", on_outcome=OnOutcome((Told.DELIVERED,), notices))
    answers = iter([BUSY])
    world.receiver.answer = lambda received: next(answers, OK)
    task = world.created(FAR_MS)
    world.fall_due(world.fall_due(task))  # the first attempt fails
    world.clock.advance_ms(600_000)
    world.redrive(task.task_id)
    world.run_timer(timers.made(world, 60).timer_id)
    world.drain()
    received = world.receiver.received
    assert [one.task_id for one in received].count(task.task_id) == 3
    assert len({one.task_id for one in received}) >= 4, "a run, and notices"
    assert notices.url in {one.url for one in received}
    assert all(ATTEMPT in one.headers for one in received)


@each_case("name", ["Duewheel-Attempt", "DUEWHEEL-ATTEMPT", "duewheel-attempt"])
@each_case("value", ["1", "", "0", "none"])
def test_the_header_of_callbacks_is_recognised_in_any_spelling_and_with_any_value(
    wired: ManualClock, name: str, value: str
) -> None:
    assert problem("POST", "/v1/tasks", TASK, **{name: value}) == (403, "callback-refused")
    assert stored_items() == []


def test_a_callback_may_read(wired: ManualClock) -> None:
    task = made("POST", "/v1/tasks", TASK)
    status, found, _ = attack("GET", f"/v1/tasks/{task['task_id']}", **headers_of_a_callback())
    assert (status, found["task_id"]) == (200, task["task_id"])


@pytest.fixture
def widely_allowed(wired: ManualClock, monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    for name, arns in WIDE_LISTS.items():
        monkeypatch.setenv(name, arns)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "duewheel-ApiFunction")
    process.start_anew(wired)
    return wired


def callbacks_into_the_deployment() -> list[dict[str, Any]]:
    queues = [
        {
            "type": "sqs",
            "queue_url": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT_ID}/duewheel-{q}",
        }
        for q in QUEUES
    ]
    names = [f"duewheel-{function}" for function in FUNCTIONS]
    written = [
        form
        for name in names
        for form in (name, f"{name}:prod", FUNCTION_ARN + name, f"{FUNCTION_ARN}{name}:$LATEST")
    ]
    functions: list[dict[str, Any]] = [{"type": "lambda", "function": form} for form in written]
    return [*queues, *functions, {**functions[0], "invocation": "async"}]


@each_case("callback", callbacks_into_the_deployment())
def test_no_list_allows_the_deployments_own_queues_and_functions(
    widely_allowed: ManualClock, callback: dict[str, Any]
) -> None:
    made("POST", "/v1/tasks", TASK)
    before = stored_items()
    refused = (422, "target-not-enabled")
    assert problem("POST", "/v1/tasks", {**TASK, "callback": callback}) == refused
    assert problem("POST", "/v1/timers", {**TIMER, "callback": callback}) == refused
    assert problem("PUT", "/v1/businesses/orders", {"callback": callback}) == refused
    told = {"on_outcome": {"outcomes": ["dead"], "callback": callback}}
    assert problem("PUT", "/v1/businesses/orders", told) == refused
    assert problem("POST", "/v1/tasks", {**TASK, **told}) == refused
    assert problem("POST", "/v1/timers", {**TIMER, **told}) == refused
    assert (
        problem("PUT", "/v1/businesses/orders/tasks/k", {**KEYED, "callback": callback}) == refused
    )
    (result,) = made("POST", "/v1/tasks/batch", {"tasks": [{**TASK, "callback": callback}]})[
        "results"
    ]
    assert result["status"] == 422
    assert stored_items() == before


def test_no_form_of_a_name_allows_the_deployments_own_functions(
    widely_allowed: ManualClock,
) -> None:
    name = "duewheel-NotifierFunction"
    own = f"{ACCOUNT_ID}:{name}"
    forms = (
        *(own, f"function:{name}", f"{ACCOUNT_ID}:function:{name}", f"{REGION}:{own}"),
        *(
            f"{REGION}:{name}",
            f"{REGION}:function:{name}",
            f"{REGION}:{ACCOUNT_ID}:function:{name}",
        ),
    )
    for form in (*forms, *(f"{form}:prod" for form in forms), f"{own}:$LATEST.PUBLISHED"):
        callback = {"type": "lambda", "function": form}
        refusal = problem("POST", "/v1/tasks", {**TASK, "callback": callback})
        assert refusal == (422, "target-not-enabled"), form


def test_functions_of_others_are_allowed_by_the_lists(widely_allowed: ManualClock) -> None:
    elsewhere = f"arn:aws:lambda:{REGION}:999999999999:function:duewheel-NotifierFunction"
    for function in ("orders-close", "duewheel-NotifierFunction-2", elsewhere):
        made("POST", "/v1/tasks", {**TASK, "callback": {"type": "lambda", "function": function}})


def test_a_task_cannot_be_changed_to_call_the_deployments_own_functions(
    widely_allowed: ManualClock,
) -> None:
    task = made("POST", "/v1/tasks", TASK)
    before = stored_items()
    callback = {"type": "lambda", "function": "duewheel-NotifierFunction"}
    path = f"/v1/tasks/{task['task_id']}"
    assert problem("PATCH", path, {"callback": callback}) == (422, "target-not-enabled")
    assert stored_items() == before


CREATORS = {"ApiFunction", "IngestFunction", "StackTimersFunction"}


@pytest.mark.parametrize(
    ("mode", "more", "function", "itself"),
    [
        ("iam", "off", "api", "ApiFunction"),
        ("keys", "on", "api", "ApiFunction"),
        ("keys", "on", "ingest", "IngestFunction"),
        ("keys", "on", "stack_timers", "StackTimersFunction"),
    ],
)
def test_a_function_that_creates_knows_all_own_queues_and_functions_except_the_other_creators(
    emulator: Emulator, mode: str, more: str, function: str, itself: str
) -> None:
    """The notifier's role has no right on those: tests/template/test_rights.py."""
    overrides = {"AuthMode": mode}
    if more == "on":
        overrides |= {"IngestBusinesses": "*", "StackTimersAs": "duewheel-write"}
    template = load_template(TEMPLATE, overrides)
    resources = create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))
    own = {one.logical_id for one in (*template.of_type("AWS::SQS::Queue"), *template.functions())}
    assert own >= {*QUEUES, *FUNCTIONS} - ({*INGEST_QUEUES} if more == "off" else set())
    environment = {"AWS_LAMBDA_FUNCTION_NAME": resources.ref(itself)}
    settings = settings_from({**environment, **resources.environment(function)})
    known = {resources.ref(name).rpartition("/")[2] for name in own - (CREATORS - {itself})}
    assert set(settings.own_names) == known
