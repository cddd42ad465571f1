"""Repairs of what the emulator makes wrong, so that a stack can run; see docs/decisions/0004.

Invariant: each repair fails, or a test of the behaviour without it fails, once it is not needed any
more.
"""

import json
import time
from typing import Any

from tests.emulated.deployment import Deployment
from tests.emulated.emulator import Emulator

POLLER_SECONDS_MAX = 60
_POLLER_ERROR = "ESM SQS poller error: '>=' not supported between instances of 'int' and 'str'"


def mend_pollers(deployment: Deployment) -> None:
    """MaximumConcurrency: a parameter, which ministack keeps as a text that no poller can compare.

    AWS makes it the number that it is declared as.
    """
    _await_poller_error(deployment.emulator)
    functions = deployment.emulator.client("lambda")
    for uuid in deployment.of_type("AWS::Lambda::EventSourceMapping").values():
        declared = functions.get_event_source_mapping(UUID=uuid).get("ScalingConfig")
        if declared:
            functions.update_event_source_mapping(UUID=uuid, ScalingConfig=declared)


def _await_poller_error(emulator: Emulator) -> None:
    deadline = time.monotonic() + POLLER_SECONDS_MAX
    while _POLLER_ERROR not in emulator.printed():
        assert time.monotonic() < deadline, "the pollers need no mending: leave it out"
        time.sleep(0.2)


def mend_rights(deployment: Deployment) -> None:
    """A right on one message includes the batch of ten: AWS has no separate rights of these
    names."""
    iam = deployment.emulator.client("iam")
    for role in deployment.of_type("AWS::IAM::Role").values():
        document = iam.get_role_policy(RoleName=role, PolicyName="least")["PolicyDocument"]
        batches = [
            {**statement, "Action": f"{action}Batch"}
            for statement in document["Statement"]
            for action in ("sqs:SendMessage", "sqs:ChangeMessageVisibility")
            if _allows(statement, action)
        ]
        if batches:
            added = json.dumps({**document, "Statement": batches})
            iam.put_role_policy(RoleName=role, PolicyName="batches", PolicyDocument=added)


def _allows(statement: dict[str, Any], action: str) -> bool:
    actions = statement["Action"]
    return action in ([actions] if isinstance(actions, str) else actions)
