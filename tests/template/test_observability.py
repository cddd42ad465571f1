"""Metrics and tracing: what parameters switch on, and that nothing of it is there otherwise."""

from pathlib import Path
from typing import Any

import boto3
import pytest

from duewheel.metrics import Source
from local.aws.emulator import Emulator
from local.aws.policies import roles_of
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template
from tests.support.rights_in_use import TRACES, given

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
FUNCTIONS = ("api", "scheduler", "notifier", "sweeper", "authorizer")


def with_parameters(**parameters: str) -> Resources:
    template = load_template(TEMPLATE, {"AuthMode": "keys", **parameters})
    return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


def traces(resources: Resources) -> set[Any]:
    return {right for right in given(resources) if right.action.startswith("xray:")}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, "on"),
        ({"Metrics": "by-profile"}, "on"),
        ({"Metrics": "off"}, "off"),
    ],
)
def test_metrics_are_written_unless_they_are_off_and_where_a_release_before_chose_by_profile(
    emulator: Emulator, parameters: dict[str, str], expected: str
) -> None:
    resources = with_parameters(**parameters)
    assert {resources.environment(function)["METRICS"] for function in FUNCTIONS} == {expected}


@pytest.mark.parametrize(("tracing", "mode"), [("off", "PassThrough"), ("on", "Active")])
def test_functions_are_traced_and_may_write_traces_only_where_it_is_asked_for(
    emulator: Emulator, tracing: str, mode: str
) -> None:
    resources = with_parameters(Tracing=tracing)
    functions = resources.template.functions()
    modes = {resources.resolve(f.properties)["TracingConfig"]["Mode"] for f in functions}
    assert modes == {mode}
    roles = {role.name for role in roles_of(resources).values()}
    expected = {(role, f"xray:{action}", "*") for role in roles for action in TRACES}
    assert {right[:3] for right in traces(resources)} == (expected if tracing == "on" else set())


def test_alarms_need_no_metrics_of_the_functions(emulator: Emulator) -> None:
    """What they watch are a queue, and filters on logs."""
    template = with_parameters(Metrics="off").template
    filtered = {
        (each["MetricNamespace"]["Fn::Sub"], each["MetricName"])
        for one in template.of_type("AWS::Logs::MetricFilter")
        for each in one.properties["MetricTransformations"]
    }
    for alarm in template.of_type("AWS::CloudWatch::Alarm"):
        namespace = alarm.properties["Namespace"]
        if namespace != "AWS/SQS":
            assert (namespace["Fn::Sub"], alarm.properties["MetricName"]) in filtered


def test_functions_and_filters_write_into_one_namespace(emulator: Emulator) -> None:
    template = with_parameters().template
    namespaces = {
        each["MetricNamespace"]["Fn::Sub"]
        for one in template.of_type("AWS::Logs::MetricFilter")
        for each in one.properties["MetricTransformations"]
    }
    assert namespaces == {Source("${AWS::StackName}", "").namespace}
