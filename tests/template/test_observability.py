"""Metrics: what Observability switches on, and that nothing of it is there otherwise."""

from pathlib import Path

import boto3
import pytest

from duewheel.metrics import Source
from local.aws.emulator import Emulator
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
FUNCTIONS = ("api", "scheduler", "notifier", "sweeper", "authorizer")


def with_parameters(**parameters: str) -> Resources:
    template = load_template(TEMPLATE, {"AuthMode": "keys", **parameters})
    return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


@pytest.mark.parametrize(
    ("parameters", "metrics", "is_watched"),
    [
        ({}, "on", False),
        ({"Observability": "off"}, "off", False),
        ({"Observability": "full"}, "on", True),
    ],
)
def test_metrics_are_written_unless_all_is_off_and_watched_where_it_is_full(
    emulator: Emulator, parameters: dict[str, str], metrics: str, is_watched: bool
) -> None:
    resources = with_parameters(**parameters)
    assert {resources.environment(function)["METRICS"] for function in FUNCTIONS} == {metrics}
    assert ("ObservabilityStack" in resources.template.resources) == is_watched


def test_alarms_need_no_metrics_of_the_functions(emulator: Emulator) -> None:
    """What they watch are a queue, and filters on logs."""
    template = with_parameters(Observability="off").template
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
