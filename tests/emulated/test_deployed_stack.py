"""The stack as it is deployed: its URL is called, tasks come up, callbacks are made, it goes again.

The emulator's IAM holds every caller and every function to its policies. The tests follow one
another: the last one deletes the stacks.
"""

import json
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from typing import Any

import pytest
from botocore.credentials import Credentials

from tests.emulated.conftest import said
from tests.emulated.deployment import ROOT, Deployment, user
from tests.emulated.emulator import Emulator
from tests.emulated.gaps import seen_as_declared
from tests.package.receiver import Receiver

SCHEDULE_SECONDS_MAX = 150  # a rule's first run is up to a minute away, on a busy machine more
FAR_SECONDS = 10  # further ahead than a near entry
SECRET = b64encode(bytes(range(32))).decode()

# What the template declares and ministack 1.5.33 does not do; docs/decisions/0050 says where else
# it is tested. Whatever comes or goes fails the test.
GAPS = {
    "items expire by TTL",
    "tables can be recovered to a point in time",
    "tables are encrypted",
    "the notifier may go on calling itself",
    "the console's routes are throttled",
    "access is logged",
}


def until(told: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SCHEDULE_SECONDS_MAX
    while not told():
        assert time.monotonic() < deadline, f"{what}: not within {SCHEDULE_SECONDS_MAX} s"
        time.sleep(0.2)


def logged(stack: Deployment, group: str) -> list[dict[str, Any]]:
    """The records of the service, without what Lambda says around them."""
    logs = stack.emulator.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=stack.resources[group])
    texts = [event["message"] for page in pages for event in page["events"]]
    return [json.loads(text) for text in texts if text.startswith("{")]


def task(receiver: Receiver, delay_seconds: int, payload: Any) -> dict[str, Any]:
    callback = {"url": receiver.url}
    return {
        "biz_type": "orders",
        "delay_seconds": delay_seconds,
        "payload": payload,
        "callback": callback,
    }


@pytest.fixture(scope="module")
def operator(stacks: dict[str, Deployment]) -> Credentials:
    return user(stacks["iam"].emulator, "operator", may_call=stacks["iam"])


def test_the_url_that_is_printed_answers_who_signs(
    signed: Deployment, operator: Credentials
) -> None:
    status, health = signed.call("GET", "/v1/health", signed_by=operator)

    assert (status, health["status"]) == (200, "ok")


def test_who_does_not_sign_or_may_not_call_gets_a_403(
    signed: Deployment, emulator: Emulator
) -> None:
    stranger = user(emulator, "stranger")

    assert signed.call("GET", "/v1/health")[0] == 403
    assert signed.call("GET", "/v1/health", signed_by=stranger)[0] == 403


def test_a_users_name_bounds_what_it_may_do(
    signed: Deployment, emulator: Emulator, receiver: Receiver
) -> None:
    reader = user(emulator, "duewheel-read-orders", may_call=signed)

    status, problem = signed.call("POST", "/v1/tasks", task(receiver, 1, None), signed_by=reader)

    assert (status, problem["type"]) == (403, "urn:duewheel:problem:not-permitted")
    assert signed.call("GET", "/v1/tasks?biz_type=orders", signed_by=reader)[1]["tasks"] == []


def test_the_console_is_open_as_its_route_says(signed: Deployment) -> None:
    status, page = signed.call("GET", "/console")

    assert status == 200
    assert "<title>Duewheel</title>" in page


def test_a_task_is_delivered_signed_with_the_secret_of_its_business(
    signed: Deployment, operator: Credentials, receiver: Receiver
) -> None:
    settings = {"signing_secrets": [f"whsec_{SECRET}"]}
    assert signed.call("PUT", "/v1/businesses/orders", settings, operator)[0] in (200, 201)
    status, made = signed.call("POST", "/v1/tasks", task(receiver, 1, {"near": 1}), operator)
    assert status == 201, made

    until(lambda: receiver.bodies != [], "the callback")

    assert receiver.bodies == ['{"near": 1}']
    [headers] = receiver.headers
    text = f"{made['task_id']}.{headers['webhook-timestamp']}.{receiver.bodies[0]}"
    expected = b64encode(digest(b64decode(SECRET), text.encode(), sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    await_delivered(signed, made["task_id"], operator)


def test_the_schedule_starts_the_scheduler_which_hands_over_a_task_that_is_not_near(
    signed: Deployment, operator: Credentials, receiver: Receiver
) -> None:
    """Nobody else starts it."""
    status, made = signed.call(
        "POST", "/v1/tasks", task(receiver, FAR_SECONDS, "far"), signed_by=operator
    )
    assert status == 201, made

    until(lambda: receiver.bodies != [], "the callback")

    assert receiver.bodies == ['"far"']
    await_delivered(signed, made["task_id"], operator)


def await_delivered(stack: Deployment, task_id: str, signed_by: Credentials) -> None:
    """The callback comes before it is settled."""
    path = f"/v1/tasks/{task_id}"
    until(
        lambda: stack.call("GET", path, signed_by=signed_by)[1]["status"] == "delivered",
        f"{task_id} delivered",
    )


def test_the_first_api_key_opens_a_stack_that_asks_for_keys(
    keyed: Deployment, emulator: Emulator, receiver: Receiver
) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "infra.admin_key", keyed.name],
        cwd=ROOT,
        env={**emulator.environment(), "PYTHONPATH": "layers/core:."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    key = {"authorization": f"Bearer {made.stdout.strip()}"}

    assert keyed.call("GET", "/v1/health")[0] == 401
    forged = {"authorization": key["authorization"][:-1] + "!"}
    assert keyed.call("GET", "/v1/health", headers=forged)[0] == 403
    assert keyed.call("GET", "/v1/health", headers=key)[0] == 200
    status, created = keyed.call("POST", "/v1/tasks", task(receiver, 1, "keyed"), headers=key)
    assert status == 201, created
    until(lambda: receiver.bodies != [], "the callback")
    assert receiver.bodies == ['"keyed"']


def test_the_schedule_starts_the_sweeper(signed: Deployment) -> None:
    logs = signed.emulator.client("logs")
    group = signed.resources["SweeperLogs"]

    until(
        lambda: any(
            event["message"].startswith("END ")
            for event in logs.filter_log_events(logGroupName=group)["events"]
        ),
        "a run of the sweeper",
    )


def test_no_function_was_refused_or_warned(signed: Deployment) -> None:
    """As far as runs have ended, with which their logs come; the scheduler's goes on."""
    assert logged(signed, "ApiLogs")
    assert warnings(signed) == []


def test_where_the_queue_refuses_the_second_link_delivers(keyed: Deployment) -> None:
    """Its rights are not mended. Fails once ministack takes SendMessage for SendMessageBatch."""
    assert {record["action"] for record in warnings(keyed)} == {"queue-refused", "second-link"}


def warnings(stack: Deployment) -> list[dict[str, Any]]:
    return [
        record
        for group in stack.resources
        if group.endswith("Logs") and group != "AccessLogs"
        for record in logged(stack, group)
        if record["level"] != "INFO"
    ]


def test_the_emulator_lacks_what_is_known_and_nothing_else(signed: Deployment) -> None:
    seen = seen_as_declared(signed)
    lacking = {name for name, is_seen in seen.items() if not is_seen}
    said.append(f"  as declared: {', '.join(sorted(seen.keys() - lacking))}")
    said.append(f"  declared, but not by this emulator: {', '.join(sorted(lacking))}")

    assert lacking == GAPS


def test_a_deleted_stack_leaves_its_tables_and_its_signing_key(
    stacks: dict[str, Deployment], emulator: Emulator
) -> None:
    cloudformation = emulator.client("cloudformation")
    for stack in stacks.values():
        cloudformation.delete_stack(StackName=stack.name)
    for stack in stacks.values():
        cloudformation.get_waiter("stack_delete_complete").wait(
            StackName=stack.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )

    kept = {stack.resources[name] for stack in stacks.values() for name in ("Wheel", "Registry")}
    assert set(emulator.client("dynamodb").list_tables()["TableNames"]) == kept
    for stack in stacks.values():
        key = emulator.client("kms").describe_key(KeyId=stack.resources["SigningKey"])
        assert key["KeyMetadata"]["Enabled"]
    assert what_is_left(emulator) == []
    said.append("both stacks were deleted; their tables and signing keys stayed, nothing else")


def what_is_left(emulator: Emulator) -> list[str]:
    """But for log groups: a run that ends later has ministack make its group again."""
    apis = emulator.client("apigatewayv2").get_apis()["Items"]
    alarms = emulator.client("cloudwatch").describe_alarms()["MetricAlarms"]
    return [
        *(one["FunctionName"] for one in emulator.client("lambda").list_functions()["Functions"]),
        *emulator.client("sqs").list_queues().get("QueueUrls", []),
        *(one["RoleName"] for one in emulator.client("iam").list_roles()["Roles"]),
        *(one["Name"] for one in emulator.client("events").list_rules()["Rules"]),
        *(one["AlarmName"] for one in alarms),
        *(one["ApiId"] for one in apis),
    ]
