"""Tasks reach the targets that the parameters name, with the policies that these make."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from local.aws.template import ACCOUNT_ID, REGION
from tests.emulated.account import NAME, Account
from tests.emulated.deployment import Deployment
from tests.emulated.observed import delivered, task, until

QUEUE_URL = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT_ID}/{NAME}"

CALLBACKS: dict[str, Callable[[Account], dict[str, Any]]] = {
    "sqs": lambda account: {"queue_url": QUEUE_URL},
    "sns": lambda account: {"topic_arn": account.topic_arn},
    "eventbridge": lambda account: {
        "event_bus": account.event_bus_arn, "source": NAME, "detail_type": "due"
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", CALLBACKS)
def test_a_task_reaches_a_named_target(
    kind: str, whole: Deployment, account: Account, key: Mapping[str, str]
) -> None:
    callback = {"type": kind, **CALLBACKS[kind](account)}
    status, made = whole.call("POST", "/v1/tasks", task(callback, 1, f"by {kind}"), headers=key)
    assert status == 201, made
    came: list[str] = []

    def has_come() -> bool:
        came.extend(account.messages())
        return came != []

    until(has_come, f"the message of {kind}")
    [message] = came
    payload = json.loads(message)
    assert (payload["detail"]["payload"] if kind == "eventbridge" else payload) == f"by {kind}"
    delivered(whole, made["task_id"], headers=key)


def test_a_task_invokes_a_named_function(
    whole: Deployment, account: Account, key: Mapping[str, str]
) -> None:
    callback = {"type": "lambda", "function": account.function_arn}
    status, made = whole.call("POST", "/v1/tasks", task(callback, 1, "by lambda"), headers=key)
    assert status == 201, made

    settled = delivered(whole, made["task_id"], headers=key)

    assert "by lambda" in settled["history"][-1]["note"]
