"""Alarms, and the topic that they notify."""

import json
from typing import Any

from tests.emulated.account import Account
from tests.emulated.deployment import Deployment
from tests.emulated.observed import until

ALARM = "AWS::CloudWatch::Alarm"


def alarms(stack: Deployment) -> dict[str, dict[str, Any]]:
    """Alarms by their logical ids."""
    names = {physical: logical for logical, physical in stack.of_type(ALARM).items()}
    pages = stack.emulator.client("cloudwatch").get_paginator("describe_alarms").paginate()
    found = [alarm for page in pages for alarm in page["MetricAlarms"]]
    return {names[one["AlarmName"]]: one for one in found if one["AlarmName"] in names}


def test_each_alarm_notifies_the_printed_topic_of_its_start_and_its_end(stack: Deployment) -> None:
    actions = {name: (one["AlarmActions"], one["OKActions"]) for name, one in alarms(stack).items()}

    topic = [stack.outputs["AlarmTopic"]]
    assert actions == dict.fromkeys(stack.of_type(ALARM), (topic, topic))
    assert "DeadLettersAlarm" in actions


def test_a_subscriber_of_the_topic_is_notified_of_an_alarm(
    whole: Deployment, account: Account
) -> None:
    account.subscribe(whole.outputs["AlarmTopic"])
    name = whole.id("DeadLettersAlarm")
    whole.emulator.client("cloudwatch").set_alarm_state(
        AlarmName=name, StateValue="ALARM", StateReason="tried out"
    )

    def is_heard() -> bool:
        messages = [json.loads(message) for message in account.messages()]
        return (name, "ALARM") in [(one["AlarmName"], one["NewStateValue"]) for one in messages]

    until(is_heard, "the alarm")


def test_the_given_address_is_subscribed_to_the_topic(whole: Deployment) -> None:
    hearing = whole.emulator.client("sns").list_subscriptions_by_topic(
        TopicArn=whole.outputs["AlarmTopic"]
    )["Subscriptions"]

    assert [one["Endpoint"] for one in hearing if one["Protocol"] == "email"] == [
        whole.parameters["AlarmEmail"]
    ]


def test_alarms_on_functions_watch_each_existing_function(whole: Deployment) -> None:
    functions = set(whole.of_type("AWS::Lambda::Function").values()) - {whole.id("CheckFunction")}
    for name in ("FunctionErrorsAlarm", "FunctionThrottlesAlarm"):
        metrics = alarms(whole)[name]["Metrics"]
        watched = [one["MetricStat"]["Metric"] for one in metrics if "MetricStat" in one]
        dimensions = [one for metric in watched for one in metric.get("Dimensions", ())]
        assert {one["Value"] for one in dimensions} == functions


def test_the_guard_counts_the_writes_of_the_wheel(whole: Deployment) -> None:
    guard = alarms(whole)["TasksPerDayGuard"]

    [writes] = [one["MetricStat"]["Metric"] for one in guard["Metrics"] if "MetricStat" in one]
    assert writes["Dimensions"] == [{"Name": "TableName", "Value": whole.outputs["WheelTable"]}]
    assert guard["Threshold"] == int(whole.parameters["TasksPerDayAlarm"])


def test_the_dashboard_exists_and_is_json(whole: Deployment) -> None:
    cloudwatch = whole.emulator.client("cloudwatch")

    shown = cloudwatch.get_dashboard(DashboardName=whole.nested["Dashboard"].id)

    assert json.loads(shown["DashboardBody"])["widgets"]
