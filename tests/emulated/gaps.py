"""What the template declares and the emulator's stack may not have: looked at, one by one."""

from collections.abc import Callable
from typing import Any

from tests.emulated.deployment import Deployment

CONSOLE_BURST = 20


def seen_as_declared(stack: Deployment) -> dict[str, bool]:
    """Each declaration, with whether the stack has it, or does as it says."""
    return {name: sees(stack) for name, sees in _LOOKS.items()}


def _of_both_tables(sees: Callable[[Any, str], bool]) -> Callable[[Deployment], bool]:
    return lambda stack: all(
        sees(stack.emulator.client("dynamodb"), stack.resources[table])
        for table in ("Wheel", "Registry")
    )


def _expires(dynamodb: Any, table: str) -> bool:
    said = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    return (said["TimeToLiveStatus"], said.get("AttributeName")) == ("ENABLED", "expires_at")


def _recovers(dynamodb: Any, table: str) -> bool:
    said = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    recovery = said["PointInTimeRecoveryDescription"]
    return bool(recovery["PointInTimeRecoveryStatus"] == "ENABLED")


def _is_sealed(dynamodb: Any, table: str) -> bool:
    said = dynamodb.describe_table(TableName=table)["Table"].get("SSEDescription", {})
    return bool(said.get("Status") == "ENABLED")


def _queue_attributes(stack: Deployment, queue: str) -> dict[str, str]:
    sqs = stack.emulator.client("sqs")
    found: dict[str, str] = sqs.get_queue_attributes(
        QueueUrl=stack.resources[queue], AttributeNames=["All"]
    )["Attributes"]
    return found


def _queues_are_sealed(stack: Deployment) -> bool:
    queues = ("SliceQueue", "SlowQueue", "DeadLetterQueue")
    sealed = [_queue_attributes(stack, queue).get("SqsManagedSseEnabled") for queue in queues]
    return sealed == ["true"] * 3


def _queues_give_up(stack: Deployment) -> bool:
    name = stack.resources["DeadLetterQueue"].rsplit("/", 1)[-1]
    policies = [
        _queue_attributes(stack, queue).get("RedrivePolicy", "")
        for queue in ("SliceQueue", "SlowQueue")
    ]
    return all(name in policy and "10" in policy for policy in policies)


def _key_rotates(stack: Deployment) -> bool:
    key = stack.resources["SigningKey"]
    status = stack.emulator.client("kms").get_key_rotation_status(KeyId=key)
    return bool(status["KeyRotationEnabled"])


def _runs_are_not_repeated(stack: Deployment) -> bool:
    functions = stack.emulator.client("lambda")
    configured = [
        functions.get_function_event_invoke_config(
            FunctionName=stack.resources[name], Qualifier="$LATEST"
        )
        for name in ("SchedulerFunction", "SweeperFunction")
    ]
    return all(
        (one["MaximumRetryAttempts"], one["MaximumEventAgeInSeconds"]) == (0, 60)
        for one in configured
    )


def _notifier_may_recur(stack: Deployment) -> bool:
    functions = stack.emulator.client("lambda")
    name = stack.resources["NotifierFunction"]
    said = functions.get_function_recursion_config(FunctionName=name)
    return bool(said["RecursiveLoop"] == "Allow")


def _logs_are_bounded(stack: Deployment) -> bool:
    names = {found for name, found in stack.resources.items() if name.endswith("Logs")}
    groups = stack.emulator.client("logs").describe_log_groups()["logGroups"]
    kept = [group.get("retentionInDays") for group in groups if group["logGroupName"] in names]
    return kept == [30] * len(names)


def _filters_count(stack: Deployment) -> bool:
    found = stack.emulator.client("logs").describe_metric_filters()["metricFilters"]
    of_stack = [
        one for one in found
        if one["metricTransformations"][0]["metricNamespace"] == f"Duewheel/{stack.name}"
    ]  # fmt: skip
    declared = ("RescuedFilter", "DamagedInSweep", "DamagedInDelivery", "DamagedInApi")
    return {one["filterName"] for one in of_stack} == {stack.resources[name] for name in declared}


def _alarms_watch(stack: Deployment) -> bool:
    declared = {found for name, found in stack.resources.items() if name.endswith("Alarm")}
    found = stack.emulator.client("cloudwatch").describe_alarms(AlarmNames=sorted(declared))
    return {alarm["AlarmName"] for alarm in found["MetricAlarms"]} == declared


def _console_is_throttled(stack: Deployment) -> bool:
    statuses = {stack.call("GET", "/console")[0] for _ in range(2 * CONSOLE_BURST)}
    return 429 in statuses


def _access_is_logged(stack: Deployment) -> bool:
    group = stack.resources["AccessLogs"]
    return bool(stack.emulator.client("logs").filter_log_events(logGroupName=group)["events"])


_LOOKS: dict[str, Callable[[Deployment], bool]] = {
    "items expire by TTL": _of_both_tables(_expires),
    "tables can be recovered to a point in time": _of_both_tables(_recovers),
    "tables are encrypted": _of_both_tables(_is_sealed),
    "queues are encrypted": _queues_are_sealed,
    "queues give up into the dead-letter queue": _queues_give_up,
    "the signing key rotates": _key_rotates,
    "failed runs of scheduler and sweeper are not repeated": _runs_are_not_repeated,
    "the notifier may go on calling itself": _notifier_may_recur,
    "logs are kept for a bounded time": _logs_are_bounded,
    "metric filters count": _filters_count,
    "alarms watch": _alarms_watch,
    "the console's routes are throttled": _console_is_throttled,
    "access is logged": _access_is_logged,
}
