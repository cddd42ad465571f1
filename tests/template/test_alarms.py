"""Alarms and the dashboard of both templates: what they look at comes to be, and who is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from duewheel.rules.metric_lines import METRICS
from local.emulator import Emulator
from local.metrics import filters_of
from local.resources import Resources
from local.template import load_template
from tests.support.alarms import Metric, alarms_of, metrics_of, observability, with_observability
from tests.support.rights_in_use import CUSTOMER_KEY

ROOT = Path(__file__).parents[2]
OF_AWS = {
    ("AWS/Lambda", "Errors"): "FunctionName",
    ("AWS/Lambda", "Throttles"): "FunctionName",
    ("AWS/Lambda", "ConcurrentExecutions"): "FunctionName",
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): "QueueName",
}
ALWAYS = {"DeadLetters", "Rescued", "Damage"}
PARAMETERS = [{}, {"AuthMode": "keys", "KmsKeyArn": CUSTOMER_KEY, "AlarmEmail": "on@call.example"}]


def own_metrics(parent: Resources) -> set[str]:
    return {each.name for each in METRICS} | {each.metric for each in filters_of(parent)}


def names_in(parent: Resources) -> set[str]:
    kinds = ("AWS::Lambda::Function", "AWS::SQS::Queue")
    made = [each for kind in kinds for each in parent.template.of_type(kind)]
    return {parent.ref(each.logical_id).rpartition("/")[2] for each in made}


def comes_to_be(metric: Metric, parent: Resources) -> bool:
    if metric.namespace == "Duewheel/duewheel":
        return not metric.dimensions and metric.name in own_metrics(parent)
    ((dimension, value),) = metric.dimensions
    is_known = OF_AWS.get((metric.namespace, metric.name)) == dimension
    return is_known and value in names_in(parent)


def dashboard(nested: Resources) -> list[dict[str, Any]]:
    (declared,) = nested.template.of_type("AWS::CloudWatch::Dashboard")
    body = json.loads(nested.resolve(declared.properties)["DashboardBody"])
    return [widget["properties"] for widget in body["widgets"]]


def shown(nested: Resources) -> list[Metric]:
    found = []
    for widget in dashboard(nested):
        for namespace, name, *rest in widget["metrics"]:
            named = [each for each in rest if isinstance(each, str)]
            pairs = zip(named[::2], named[1::2], strict=True)
            found.append(Metric(namespace, name, tuple(pairs)))
    return found


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_every_alarm_watches_what_comes_to_be(
    emulator: Emulator, parameters: dict[str, str]
) -> None:
    parent = with_observability(**parameters)
    for metric in metrics_of(alarms_of(parent, observability(parent))):
        assert comes_to_be(metric, parent), metric


def test_the_dashboard_shows_every_metric_of_the_service_and_none_that_never_comes(
    emulator: Emulator,
) -> None:
    parent = with_observability()
    metrics = shown(observability(parent))
    assert all(comes_to_be(metric, parent) for metric in metrics)
    assert {m.name for m in metrics if m.namespace == "Duewheel/duewheel"} == own_metrics(parent)


def test_the_dashboards_widgets_fill_rows_and_do_not_overlap(emulator: Emulator) -> None:
    parent = with_observability()
    (declared,) = observability(parent).template.of_type("AWS::CloudWatch::Dashboard")
    body = json.loads(observability(parent).resolve(declared.properties)["DashboardBody"])
    places = [(widget["x"], widget["y"]) for widget in body["widgets"]]
    assert {(each["width"], each["height"]) for each in body["widgets"]} == {(8, 6)}
    assert places == [(x, y) for y in range(0, 6 * len(places) // 3, 6) for x in (0, 8, 16)]


@pytest.mark.parametrize(("mode", "functions"), [("off", 4), ("keys", 5)])
def test_each_function_is_watched_for_errors_and_refused_runs(
    emulator: Emulator, mode: str, functions: int
) -> None:
    parent = with_observability(AuthMode="iam" if mode == "off" else mode)
    by_name = {alarm.name: alarm for alarm in alarms_of(observability(parent))}
    made = parent.template.of_type("AWS::Lambda::Function")
    assert len(made) == functions
    for name in ("FunctionErrors", "FunctionThrottles"):
        watched = by_name[name].watched
        looked_at = [dict(each.metric.dimensions) for each in watched.values()]
        assert {each["FunctionName"] for each in looked_at if each} == {
            parent.ref(each.logical_id) for each in made
        }
        summed = {term.strip() for term in by_name[name].expression.split("+")}
        assert summed == {f"FILL({each}, 0)" for each in watched}


def test_every_alarm_of_either_template_tells_the_topic_when_it_goes_off_and_when_it_is_over(
    emulator: Emulator,
) -> None:
    parent = with_observability()
    for stack in (parent, observability(parent)):
        topics = {
            topic
            for alarm in stack.template.of_type("AWS::CloudWatch::Alarm")
            for actions in ("AlarmActions", "OKActions")
            for topic in stack.resolve(alarm.properties)[actions]
        }
        assert len(topics) == 1


def test_without_observability_three_alarms_are_there_and_tell_nobody() -> None:
    template = load_template(ROOT / "template.yaml")
    alarms = template.of_type("AWS::CloudWatch::Alarm")
    assert {alarm.logical_id.removesuffix("Alarm") for alarm in alarms} == ALWAYS
    assert not template.of_type("AWS::CloudFormation::Stack")


@pytest.mark.parametrize(("address", "number"), [("", 0), ("on@call.example", 1)])
def test_an_address_is_subscribed_where_there_is_one(
    emulator: Emulator, address: str, number: int
) -> None:
    nested = observability(with_observability(AlarmEmail=address))
    assert len(nested.template.of_type("AWS::SNS::Subscription")) == number


def test_alarms_of_this_account_alone_may_speak_to_the_topic(emulator: Emulator) -> None:
    nested = observability(with_observability())
    (policy,) = nested.template.of_type("AWS::SNS::TopicPolicy")
    allowed, refused = nested.resolve(policy.properties)["PolicyDocument"]["Statement"]
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    assert (refused["Effect"], refused["Principal"]) == ("Deny", "*")
    assert refused["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_a_seconds_lag_is_told_by_what_the_sweep_is_set_to(emulator: Emulator) -> None:
    nested = observability(with_observability(SweepDelaySeconds="3600"))
    (alarm,) = [alarm for alarm in alarms_of(nested) if alarm.name == "SweepLag"]
    assert alarm.expression == "lag - 3600"
