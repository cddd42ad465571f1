"""Policies against AWS's service authorization reference, which policy_sentry contains: an action
exists, takes one of the resources of its statement, and knows the keys of its conditions."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from policy_sentry.querying.actions import get_action_data

from local.aws.emulator import Emulator
from local.aws.resources import create_resources
from local.aws.template import ACCOUNT_ID, REGION, load_template
from tests.check.test_deploy_role import OTHER_WAYS, WHOLE, as_list, every_statement
from tests.support.clock import ManualClock

ROOT = Path(__file__).parents[2]
KNOWN = {"Partition": "aws", "Region": REGION, "Account": ACCOUNT_ID}
# CreateChangeSet with a transform needs it by the guide of CloudFormation, not by the reference.
TRANSFORM = f"arn:aws:cloudformation:{REGION}:aws:transform/Serverless-2016-10-31"
GLOBAL = {"lambda:SourceFunctionArn"}  # Lambda sets it for all requests of a function


def of_functions() -> Iterator[dict[str, Any]]:
    """The statements of the roles of the template, with all that parameters bring."""
    with Emulator(ManualClock()):
        template = load_template(ROOT / "template.yaml", OTHER_WAYS[0])
        made = create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))
        for role in template.of_type("AWS::IAM::Role"):
            for policy in made.resolve(role.properties)["Policies"]:
                yield from policy["PolicyDocument"]["Statement"]
        for policy in template.of_type("AWS::IAM::Policy"):
            yield from made.resolve(policy.properties)["PolicyDocument"]["Statement"]


@cache
def meet(one: str, other: str) -> bool:
    """Whether a text matches both, where `*` is any text."""
    if one[:1] == "*":
        return meet(one[1:], other) or (bool(other) and meet(one, other[1:]))
    if other[:1] == "*":
        return meet(other, one)
    return one[:1] == other[:1] and (not one or meet(one[1:], other[1:]))


def pattern_of(arn: str) -> str:
    """`arn:${Partition}:sqs:${Region}:${Account}:${QueueName}` with a `*` for what is not known."""
    before, *rest = arn.split("${")
    parts = (part.partition("}") for part in rest)
    return before + "".join(KNOWN.get(name, "*") + text for name, _, text in parts)


def wrong_with(statement: dict[str, Any]) -> Iterator[str]:
    resources = [str(one) for one in as_list(statement["Resource"]) if one != TRANSFORM]
    if not resources:
        return
    conditions = statement.get("Condition", {}).values()
    keys = {key.partition("/")[0] for condition in conditions for key in condition}
    for action in as_list(statement.get("Action", [])):
        service, _, name = action.partition(":")
        if "*" in name:
            continue
        rows = (get_action_data(service, name) or {}).get(service)
        if not rows:
            yield f"{action} does not exist"
            continue
        takes = {pattern_of(row["resource_arn_format"]) for row in rows} - {"*"}
        if not takes and resources != ["*"]:
            yield f"{action} takes no resource but *"
        elif takes and not any(meet(taken, one) for taken in takes for one in resources):
            yield f"{action} takes {sorted(takes)}, and none of {resources}"
        known = {key.partition("/")[0] for row in rows for key in row["condition_keys"]}
        if unknown := keys - known - GLOBAL:
            yield f"{action} knows no {sorted(unknown)}"


STATEMENTS = {"deploy role": lambda: every_statement(**WHOLE), "functions": of_functions}


@pytest.mark.parametrize("name", STATEMENTS)
def test_actions_exist_and_take_their_resources_and_conditions(name: str) -> None:
    assert [wrong for each in STATEMENTS[name]() for wrong in wrong_with(each)] == []


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"Action": "sqs:SendMessageBatch"}, "does not exist"),
        ({"Action": "codedeploy:StopDeployment"}, "takes no resource but *"),
        ({"Action": "sns:Publish"}, "and none of"),
        ({"Action": "sqs:SendMessage", "Condition": {"Bool": {"sns:Protocol": 1}}}, "knows no"),
    ],
)
def test_a_wrong_statement_is_found(wrong: dict[str, Any], why: str) -> None:
    queue = f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:duewheel-*"
    assert why in "\n".join(wrong_with({"Resource": queue, **wrong}))
