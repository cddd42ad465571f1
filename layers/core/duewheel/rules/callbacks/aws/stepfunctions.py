"""Start an execution of a Step Functions state machine.

The name of the execution is the same with every attempt, so a state machine of type STANDARD runs a
task once: AWS refuses the repeat of a start whose answer was lost, and that counts as delivered.
"""

import re
from collections.abc import Mapping
from typing import Any

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.target import AwsTarget, matching, status_of
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import TaskData, deduplication_id, envelope
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import Fields

_NAME = r"[A-Za-z0-9+!@.()='_-]{1,80}"
_STATE_MACHINE = re.compile(rf"({_NAME})(?::[A-Za-z0-9_.-]{{1,80}})?")  # with an alias or a version
_ARN = re.compile(r"arn:[a-z-]+:states:[a-z0-9-]+:[0-9]{12}:stateMachine:" + _STATE_MACHINE.pattern)


class StepFunctionsCallback(
    AwsCallback, frozen=True, tag="stepfunctions", rename={"state_machine_arn": "machine"}
):
    """`state_machine_arn`: with or without an alias or a version."""

    state_machine_arn: str


def _read(fields: Fields, allowed: AllowedTargets) -> StepFunctionsCallback:
    machine, arn = TARGET.named(fields, "state_machine_arn", allowed)
    found = _STATE_MACHINE.fullmatch(machine)
    if arn != fields.text("state_machine_arn") or found is None:
        raise fields.invalid("state_machine_arn", "is no state machine's ARN.")
    # IAM judges a call of an alias or a version by the ARN of its state machine.
    unqualified = arn.removesuffix(machine) + found[1]
    TARGET.check_covered(fields, "state_machine_arn", unqualified, allowed)
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
    name="stepfunctions",
    callback=StepFunctionsCallback,
    members={"state_machine_arn": matching(_ARN)},
    read=_read,
    service="states",
    kind="stateMachine:",
    action="states:StartExecution",
    parameter="TargetStateMachineArns",
    client="stepfunctions",
    operation="start_execution",
    request=_request,
    outcome=_outcome,
    item_version=2,
    accepted_codes=("ExecutionAlreadyExists",),
    stop_codes=("InvalidArn", "InvalidExecutionInput", "InvalidName"),
)
