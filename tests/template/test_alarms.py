"""Alarms and the dashboard of both templates: what they look at comes to be, and who is told."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from duewheel.metrics import METRICS
from duewheel.rules.wheel.open_places import OPEN_PLACES_MAX
from local.aws.emulator import Emulator
from local.aws.metrics import filters_of
from local.aws.resources import Resources
from local.aws.template import load_template, source_of
from tests.support.alarms import (
    Metric,
    alarms_of,
    compute,
    metrics_of,
    observability,
    with_observability,
)
from tests.support.cases import each_case
from tests.support.rights_in_use import CUSTOMER_KEY

ROOT = Path(__file__).parents[2]
OF_AWS = {
    ("AWS/Lambda", "Invocations"): "FunctionName",
    ("AWS/Lambda", "Errors"): "FunctionName",
    ("AWS/Lambda", "Throttles"): "FunctionName",
    ("AWS/Lambda", "ConcurrentExecutions"): "FunctionName",
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): "QueueName",
    ("AWS/ApiGateway", "Count"): "ApiId",
    ("AWS/ApiGateway", "4xx"): "ApiId",
    ("AWS/ApiGateway", "5xx"): "ApiId",
    ("AWS/ApiGateway", "Latency"): "ApiId",
    ("AWS/DynamoDB", "ConsumedWriteCapacityUnits"): "TableName",
    ("AWS/DynamoDB", "ConsumedReadCapacityUnits"): "TableName",
}
NAMED_BY = {
    "FunctionName": "AWS::Lambda::Function",
    "QueueName": "AWS::SQS::Queue",
    "ApiId": "AWS::ApiGatewayV2::Api",
    "TableName": "AWS::DynamoDB::Table",
}
OPEN_PLACE_SECONDS_MAX = 1_800
ALWAYS = {"DeadLetters", "Rescued", "Damage"}
PARAMETERS = [
    {"AuthMode": mode, "IngestBusinesses": businesses, "StackTimersAs": caller}
    | {"TasksPerDayAlarm": "1000"}
    for mode, (businesses, caller) in product(("iam", "keys"), (("", ""), ("*", "duewheel-write")))
]
KEY_AND_EMAIL = {"KmsKeyArn": CUSTOMER_KEY, "AlarmEmail": "on@call.example"}


def own_metrics(parent: Resources) -> set[str]:
    return {each.name for each in METRICS} | {each.metric for each in filters_of(parent)}


def names_of(kind: str, parent: Resources) -> set[str]:
    template = parent.template
    made = template.functions() if kind.endswith("Function") else template.of_type(kind)
    return {parent.ref(each.logical_id).rpartition("/")[2] for each in made}


def comes_to_be(metric: Metric, parent: Resources) -> bool:
    if metric.namespace == "Duewheel/duewheel":
        return not metric.dimensions and metric.name in own_metrics(parent)
    ((dimension, value),) = metric.dimensions
    is_known = OF_AWS.get((metric.namespace, metric.name)) == dimension
    return is_known and value in names_of(NAMED_BY[dimension], parent)


def dashboard(nested: Resources) -> list[dict[str, Any]]:
    (declared,) = nested.template.of_type("AWS::CloudWatch::Dashboard")
    body = json.loads(nested.resolve(declared.properties)["DashboardBody"])
    return [widget["properties"] for widget in body["widgets"]]


def shown(nested: Resources) -> list[Metric]:
    found = []
    for widget in dashboard(nested):
        before: list[str] = []
        for line in widget["metrics"]:
            before = whole(line, before)
            namespace, name, *named = before
            found.append(Metric(namespace, name, tuple(zip(named[::2], named[1::2], strict=True))))
    return found


def whole(line: list[Any], before: list[str]) -> list[str]:
    """Without how it is drawn. "..." stands for what the line before it begins with."""
    named = [each for each in line if isinstance(each, str)]
    return named if named[0] != "..." else before[: 1 - len(named)] + named[1:]


@pytest.mark.parametrize("parameters", [*PARAMETERS, PARAMETERS[-1] | KEY_AND_EMAIL])
def test_every_alarm_watches_what_comes_to_be(
    emulator: Emulator, parameters: dict[str, str]
) -> None:
    parent = with_observability(**parameters)
    for metric in metrics_of(alarms_of(parent, observability(parent))):
        assert comes_to_be(metric, parent), metric


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_dashboard_shows_what_is_counted_and_what_alarms_watch_and_nothing_that_never_comes(
    emulator: Emulator, parameters: dict[str, str]
) -> None:
    parent = with_observability(**parameters)
    nested = observability(parent)
    metrics = shown(nested)
    assert [metric for metric in metrics if not comes_to_be(metric, parent)] == []
    assert {m.name for m in metrics if m.namespace == "Duewheel/duewheel"} == own_metrics(parent)
    assert set(metrics_of(alarms_of(parent, nested))) <= set(metrics)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_dashboard_shows_every_function_and_every_queue_of_the_template(
    emulator: Emulator, parameters: dict[str, str]
) -> None:
    parent = with_observability(**parameters)
    metrics = shown(observability(parent))
    for (namespace, name), dimension in OF_AWS.items():
        if dimension in ("FunctionName", "QueueName"):
            named = [
                m.dimensions[0][1] for m in metrics if (m.namespace, m.name) == (namespace, name)
            ]
            assert sorted(named) == sorted(names_of(NAMED_BY[dimension], parent))


@each_case("kind", ["Function", "Queue"])
def test_with_the_last_of_these_parameters_every_function_and_queue_is_there(kind: str) -> None:
    """Or the test above would not see those that another parameter brings."""
    path = ROOT / "template.yaml"
    declared = source_of(path)["Resources"].items()
    there = load_template(path, PARAMETERS[-1]).resources.values()
    assert {each.logical_id for each in there if each.type.endswith(f"::{kind}")} == {
        logical_id for logical_id, each in declared if each["Type"].endswith(f"::{kind}")
    }


def test_the_dashboards_widgets_fill_rows_and_do_not_overlap(emulator: Emulator) -> None:
    parent = with_observability()
    (declared,) = observability(parent).template.of_type("AWS::CloudWatch::Dashboard")
    body = json.loads(observability(parent).resolve(declared.properties)["DashboardBody"])
    places = [(widget["x"], widget["y"]) for widget in body["widgets"]]
    assert {(each["width"], each["height"]) for each in body["widgets"]} == {(8, 6)}
    assert places == [(x, y) for y in range(0, 6 * len(places) // 3, 6) for x in (0, 8, 16)]


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_each_function_is_watched_for_errors_and_refused_runs(
    emulator: Emulator, parameters: dict[str, str]
) -> None:
    parent = with_observability(**parameters)
    by_name = {alarm.name: alarm for alarm in alarms_of(observability(parent))}
    for name in ("FunctionErrors", "FunctionThrottles"):
        watched = by_name[name].watched
        dimensions = [dict(each.metric.dimensions) for each in watched.values()]
        functions = {each["FunctionName"] for each in dimensions if each}
        assert functions == names_of("AWS::Lambda::Function", parent)
        summed = {term.strip() for term in by_name[name].expression.split("+")}
        assert summed == {f"FILL({each}, 0)" for each in watched}


def test_every_alarm_of_either_template_tells_the_topic_when_it_goes_off_and_when_it_is_over(
    emulator: Emulator,
) -> None:
    parent = with_observability(**PARAMETERS[-1])
    for stack in (parent, observability(parent)):
        for alarm in stack.template.of_type("AWS::CloudWatch::Alarm"):
            for actions in ("AlarmActions", "OKActions"):
                assert stack.resolve(alarm.properties)[actions] == [parent.ref("AlarmTopic")]


def test_on_a_stack_of_which_nothing_is_known_yet_no_alarm_goes_off(emulator: Emulator) -> None:
    parent = with_observability(**PARAMETERS[-1])
    for alarm in alarms_of(parent, observability(parent)):
        assert not alarm.is_off(lambda _: {}, 1_000), alarm.name


def test_where_silence_is_what_is_wrong_the_alarm_tells_of_it(emulator: Emulator) -> None:
    nested = observability(with_observability())
    silent = {
        alarm.logical_id: nested.resolve(alarm.properties)
        for alarm in nested.template.of_type("AWS::CloudWatch::Alarm")
        if "InsufficientDataActions" in alarm.properties
    }
    assert set(silent) == {"TicksAlarm", "SweepsAlarm"}
    for properties in silent.values():
        assert properties["TreatMissingData"] == "missing"
        assert properties["InsufficientDataActions"] == properties["AlarmActions"]


def test_without_observability_three_alarms_are_there() -> None:
    template = load_template(ROOT / "template.yaml")
    alarms = template.of_type("AWS::CloudWatch::Alarm")
    assert {alarm.logical_id.removesuffix("Alarm") for alarm in alarms} == ALWAYS
    assert not template.of_type("AWS::CloudFormation::Stack")


@pytest.mark.parametrize("observed", ["off", "metrics", "full"])
@pytest.mark.parametrize("address", ["", "on@call.example"])
def test_an_address_is_subscribed_to_the_topic_where_there_is_one(
    emulator: Emulator, observed: str, address: str
) -> None:
    stack = with_observability(Observability=observed, AlarmEmail=address)
    subscribed = [
        stack.resolve(one.properties) for one in stack.template.of_type("AWS::SNS::Subscription")
    ]
    to = {"TopicArn": stack.ref("AlarmTopic"), "Protocol": "email", "Endpoint": address}
    assert subscribed == ([to] if address else [])


def test_alarms_of_this_account_alone_may_speak_to_the_topic(emulator: Emulator) -> None:
    stack = with_observability()
    (policy,) = stack.template.of_type("AWS::SNS::TopicPolicy")
    allowed, refused = stack.resolve(policy.properties)["PolicyDocument"]["Statement"]
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    assert (refused["Effect"], refused["Principal"]) == ("Deny", "*")
    assert refused["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_the_alarm_on_open_places_goes_by_the_oldest_and_by_a_quarter_of_what_the_list_holds(
    emulator: Emulator,
) -> None:
    nested = observability(with_observability())
    (alarm,) = [alarm for alarm in alarms_of(nested) if alarm.name == "OpenPlaces"]
    many, old = OPEN_PLACES_MAX // 4, OPEN_PLACE_SECONDS_MAX
    told: list[tuple[float | None, float | None]] = [
        (None, None), (old - 1, many - 1), (old, 1), (0, many), (old, many)
    ]  # fmt: skip
    off = [
        alarm.is_breaching(compute(alarm.expression, {"age": age, "number": n}) or 0, 0)
        for age, n in told
    ]
    assert off == [False, False, True, True, True]


@each_case(
    ("file", "written"),
    [
        ("layers/core/duewheel/console/pages/wheel/wheel_open_places.js", "OLD_MS = 1_800_000;"),
        ("client/src/duewheel/cli/doctor.py", "OPEN_PLACE_SECONDS_MAX = 1800.0"),
        ("infra/observability.yaml", "open for more than 30 minutes, or had 250 open"),
    ],
)
def test_a_place_is_old_to_the_console_and_the_command_line_when_the_alarm_goes_off(
    file: str, written: str
) -> None:
    assert (OPEN_PLACE_SECONDS_MAX, OPEN_PLACES_MAX // 4) == (1_800, 250)
    assert written in (ROOT / file).read_text(encoding="utf-8")


def test_a_seconds_lag_is_told_by_what_the_sweep_is_set_to(emulator: Emulator) -> None:
    parent = with_observability()
    (alarm,) = [alarm for alarm in alarms_of(observability(parent)) if alarm.name == "SweepLag"]
    assert alarm.expression == f"lag - {parent.environment('sweeper')['SWEEP_DELAY_SECONDS']}"
