"""Start an execution of a Step Functions state machine.

The name of the execution is the same with every attempt, so a state machine of type STANDARD runs a
task once: AWS refuses the repeat of a start whose answer was lost, and that counts as delivered.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.target import AwsTarget, status_of
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import TaskData, deduplication_id, envelope
from duewheel.rules.callbacks.timeouts import TimeoutSeconds
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import RequestBody, joined_path, whole_text

_NAME = r"[A-Za-z0-9+!@.()='_-]{1,80}"
_ARN = re.compile(
    rf"arn:[a-z-]+:states:[a-z0-9-]+:[0-9]{{12}}:stateMachine:{_NAME}(?::[A-Za-z0-9_.-]{{1,80}})?"
)


class StepFunctionsCallbackBody(RequestBody, kw_only=True):
    type: Literal["stepfunctions"] = "stepfunctions"
    state_machine_arn: Annotated[
        str,
        Meta(
            pattern=whole_text(_ARN),
            description="a state machine's ARN, with or without an alias or a version",
        ),
    ]
    timeout_seconds: TimeoutSeconds | UnsetType = UNSET


class StepFunctionsCallback(
    AwsCallback, frozen=True, tag="stepfunctions", rename={"state_machine_arn": "machine"}
):
    state_machine_arn: str

    @property
    def resource(self) -> str:
        return self.state_machine_arn.rpartition(TARGET.kind)[2]


def _read(
    body: StepFunctionsCallbackBody, allowed: AllowedTargets, path: str
) -> StepFunctionsCallback:
    where = joined_path(path, "state_machine_arn")
    machine, arn = TARGET.named(body.state_machine_arn, where, allowed)
    # IAM judges a call of an alias or a version by the ARN of its state machine.
    unqualified = arn.removesuffix(machine) + machine.partition(":")[0]
    TARGET.check_covered(unqualified, where, allowed)
    return StepFunctionsCallback(arn)


def _request(callback: StepFunctionsCallback, task: TaskData) -> dict[str, Any]:
    return {
        "stateMachineArn": callback.state_machine_arn,
        "name": deduplication_id(task, (), separator="-"),
        "input": envelope(task),
    }


def _outcome(answer: Mapping[str, Any], now_ms: int) -> Outcome:
    name = answer["executionArn"].rpartition(":")[2]
    return Outcome(Verdict.DELIVERED, f"execution {name}", status_code=status_of(answer))


TARGET = AwsTarget(
    body=StepFunctionsCallbackBody,
    callback=StepFunctionsCallback,
    read=_read,
    service="states",
    kind="stateMachine:",
    action="states:StartExecution",
    client="stepfunctions",
    operation="start_execution",
    request=_request,
    outcome=_outcome,
    accepted_codes=("ExecutionAlreadyExists",),
    stop_codes=("InvalidArn", "InvalidExecutionInput", "InvalidName"),
)
