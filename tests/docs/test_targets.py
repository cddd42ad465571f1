"""Console, template and emulator support each registered target of AWS; `test_tables.py` checks the
pages."""

import json
import re
from pathlib import Path
from typing import Any

import boto3
import pytest

from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from duewheel.rules.callbacks.aws.target import AwsTarget
from duewheel.rules.callbacks.requests import HttpCallbackBody
from duewheel.rules.fields import RequestBody
from local.aws.actions import _READERS
from local.aws.template import source_of
from tests.support.aws_guard import AwsGuard

ROOT = Path(__file__).parents[2]
FORM = (ROOT / "layers/core/duewheel/console/parts/callback_form.js").read_text("utf-8")
TEMPLATE: dict[str, Any] = source_of(ROOT / "template.yaml")


@pytest.fixture(params=AWS_TARGETS, ids=lambda target: target.name)
def target(request: pytest.FixtureRequest) -> AwsTarget:
    made: AwsTarget = request.param
    return made


def members(body: type[RequestBody]) -> list[str]:
    return [name for name in body.__struct_encode_fields__ if name != "type"]


def test_the_console_has_the_members_of_each_type() -> None:
    listed = re.search(r"MEMBERS = \{(.*?)\};", FORM, re.S)
    fields = re.search(r"FIELDS = \{(.*?)\n\};", FORM, re.S)
    assert listed
    assert fields
    shown = dict(re.findall(r"(\w+): (\[.*?\])", listed[1]))
    assert {name: json.loads(members) for name, members in shown.items()} == {
        "http": members(HttpCallbackBody),
        **{target.name: members(target.body) for target in AWS_TARGETS},
    }
    named = set(re.findall(r"^  (\w+): ", fields[1], re.M))
    assert named == {member for members in shown.values() for member in json.loads(members)}


def test_the_template_allows_the_targets_by_one_parameter() -> None:
    policy = TEMPLATE["Resources"]["NotifierCalls"]["Properties"]["PolicyDocument"]
    choices = [one["Fn::If"] for one in policy["Statement"] if "Fn::If" in one]
    (statement,) = (then for condition, then, _else in choices if condition == "HasTargets")
    assert statement["Action"] == [target.action for target in AWS_TARGETS]
    services = "|".join(target.service for target in AWS_TARGETS)
    assert f":({services}):" in TEMPLATE["Parameters"]["TargetArns"]["AllowedPattern"]


def test_the_emulator_checks_the_right_and_the_calls_of_a_target(target: AwsTarget) -> None:
    client = boto3.client(target.client, region_name="us-east-1")  # type: ignore[call-overload]
    operation = client.meta.method_to_api_mapping[target.operation]
    assert (target.client, operation) in _READERS
    assert target.client in AwsGuard()._checks
