"""Conditions that tests of the emulated stacks wait for, and records that they read."""

import json
import time
from collections.abc import Callable
from typing import Any

from botocore.credentials import Credentials

from local.aws.template import ACCOUNT_ID, REGION
from tests.emulated.deployment import Deployment
from tests.emulated.emulator import Emulator

SCHEDULE_SECONDS_MAX = 300  # a rule's first run is a minute away, and much later on a busy machine
FAR_SECONDS = 10  # further ahead than a near entry


def until(is_met: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SCHEDULE_SECONDS_MAX
    while not is_met():
        assert time.monotonic() < deadline, f"{what}: not within {SCHEDULE_SECONDS_MAX} s"
        time.sleep(0.2)


def task(callback: Any, delay_seconds: int, payload: Any) -> dict[str, Any]:
    return {
        "biz_type": "orders",
        "delay_seconds": delay_seconds,
        "payload": payload,
        "callback": callback,
    }


def delivered(stack: Deployment, task_id: str, **access: Any) -> dict[str, Any]:
    """The task, once it is settled, which is after its callback."""
    read: dict[str, Any] = {}

    def is_delivered() -> bool:
        read.update(stack.call("GET", f"/v1/tasks/{task_id}", **access)[1])
        return bool(read["status"] == "delivered")

    until(is_delivered, f"{task_id} delivered")
    return read


def user(emulator: Emulator, name: str, action: str = "", resource: str = "") -> Credentials:
    """A user with an access key to whom IAM permits one action, or none."""
    iam = emulator.client("iam")
    iam.create_user(UserName=name)
    if action:
        allowed = {"Effect": "Allow", "Action": action, "Resource": resource}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName=name, PolicyName="may", PolicyDocument=policy)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return Credentials(key["AccessKeyId"], key["SecretAccessKey"])


def caller(stack: Deployment, name: str) -> Credentials:
    """A user to whom IAM permits calls of the stack's interface."""
    resource = f"arn:aws:execute-api:{REGION}:{ACCOUNT_ID}:{stack.id('HttpApi')}/*"
    return user(stack.emulator, name, "execute-api:Invoke", resource)


def logged(stack: Deployment, group: str) -> list[dict[str, Any]]:
    """The records of the service, without those of Lambda."""
    logs = stack.emulator.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
    texts = [event["message"] for page in pages for event in page["events"]]
    return [json.loads(text) for text in texts if text.startswith("{")]


def logs_of_functions(stack: Deployment) -> dict[str, list[dict[str, Any]]]:
    """The records of runs that have ended, since their logs come with their end."""
    return {
        name: logged(stack, group)
        for name, group in stack.of_type("AWS::Logs::LogGroup").items()
        if name != "AccessLogs"
    }


def warnings(stack: Deployment) -> list[dict[str, Any]]:
    logs = logs_of_functions(stack).values()
    return [record for log in logs for record in log if record["level"] != "INFO"]
