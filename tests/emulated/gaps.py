"""Properties that the template declares and the emulator's stack may lack, checked one by one."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from duewheel.settings import LIVE
from tests.emulated.deployment import Deployment

CONSOLE_BURST = 20


def seen_as_declared(stacks: Iterable[Deployment]) -> dict[str, bool]:
    """Each property, with whether all stacks have it, or behave accordingly."""
    return {name: all(sees(stack) for stack in stacks) for name, sees in _LOOKS.items()}


def _of_both_tables(sees: Callable[[Any, str], bool]) -> Callable[[Deployment], bool]:
    return lambda stack: all(
        sees(stack.emulator.client("dynamodb"), stack.id(table)) for table in ("Wheel", "Registry")
    )


def _expires(dynamodb: Any, table: str) -> bool:
    described = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    return (described["TimeToLiveStatus"], described.get("AttributeName")) == (
        "ENABLED",
        "expires_at",
    )


def _recovers(dynamodb: Any, table: str) -> bool:
    described = dynamodb.describe_continuous_backups(TableName=table)[
        "ContinuousBackupsDescription"
    ]
    recovery = described["PointInTimeRecoveryDescription"]
    return bool(recovery["PointInTimeRecoveryStatus"] == "ENABLED")


def _tables_are_encrypted(stack: Deployment) -> bool:
    dynamodb = stack.emulator.client("dynamodb")
    described = [
        dynamodb.describe_table(TableName=table)["Table"].get("SSEDescription", {})
        for table in stack.of_type("AWS::DynamoDB::Table").values()
    ]
    own_key = stack.parameters["KmsKeyArn"]  # else by one of AWS, which nothing shows
    return all(one.get("KMSMasterKeyArn", "") == own_key for one in described)


def _queues(stack: Deployment) -> list[dict[str, str]]:
    """The attributes of each queue."""
    sqs = stack.emulator.client("sqs")
    return [
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        for url in stack.of_type("AWS::SQS::Queue").values()
    ]


def _queues_are_encrypted(stack: Deployment) -> bool:
    own_key = stack.parameters["KmsKeyArn"]
    if own_key:
        return all(queue.get("KmsMasterKeyId") == own_key for queue in _queues(stack))
    return all(queue.get("SqsManagedSseEnabled") == "true" for queue in _queues(stack))


def _queues_give_up(stack: Deployment) -> bool:
    """Each queue except for the dead-letter queues has one of those."""
    queues = _queues(stack)
    given_up = {
        queue["QueueArn"]: json.loads(queue["RedrivePolicy"])["deadLetterTargetArn"]
        for queue in queues
        if "RedrivePolicy" in queue
    }
    ends = {queue["QueueArn"] for queue in queues} - given_up.keys()
    return set(given_up.values()) == ends and all("DeadLetter" in end for end in ends)


def _roles_are_bounded(stack: Deployment) -> bool:
    iam = stack.emulator.client("iam")
    bounds = {
        iam.get_role(RoleName=role)["Role"]
        .get("PermissionsBoundary", {})
        .get("PermissionsBoundaryArn", "")
        for role in stack.of_type("AWS::IAM::Role").values()
    }
    return bounds == {stack.parameters["PermissionsBoundaryArn"]}


def _runs_are_not_repeated(stack: Deployment) -> bool:
    functions = stack.emulator.client("lambda")
    configured = [
        functions.get_function_event_invoke_config(FunctionName=stack.id(name), Qualifier=LIVE)
        for name in ("SchedulerFunction", "SweeperFunction")
    ]
    return all(
        (one["MaximumRetryAttempts"], one["MaximumEventAgeInSeconds"]) == (0, 60)
        for one in configured
    )


def _notifier_may_recur(stack: Deployment) -> bool:
    functions = stack.emulator.client("lambda")
    name = stack.id("NotifierFunction")
    described = functions.get_function_recursion_config(FunctionName=name)
    return bool(described["RecursiveLoop"] == "Allow")


def _logs_are_bounded(stack: Deployment) -> bool:
    names = set(stack.of_type("AWS::Logs::LogGroup").values())
    groups = stack.emulator.client("logs").describe_log_groups()["logGroups"]
    kept = [group.get("retentionInDays") for group in groups if group["logGroupName"] in names]
    return kept == [int(stack.parameters["LogRetentionDays"])] * len(names)


def _filters_count(stack: Deployment) -> bool:
    declared = set(stack.of_type("AWS::Logs::MetricFilter").values())
    found = stack.emulator.client("logs").describe_metric_filters()["metricFilters"]
    counting = {
        one["filterName"] for one in found
        if one["metricTransformations"][0]["metricNamespace"] == f"Duewheel/{stack.name}"
    }  # fmt: skip
    return counting == declared


def _functions(stack: Deployment) -> list[dict[str, Any]]:
    functions = stack.emulator.client("lambda")
    return [
        functions.get_function_configuration(FunctionName=name)
        for name in stack.of_type("AWS::Lambda::Function").values()
    ]


def _notifier_is_in_the_network(stack: Deployment) -> bool:
    subnets = {
        function["FunctionName"]: function.get("VpcConfig", {}).get("SubnetIds", [])
        for function in _functions(stack)
    }
    there = subnets.pop(stack.id("NotifierFunction"))
    return ",".join(there) == stack.parameters["SubnetIds"] and not any(subnets.values())


def _pollers_are_provisioned(stack: Deployment) -> bool:
    if "ProvisionedSlices" not in stack.resources:
        return stack.parameters["ProvisionedPollers"] == "0"
    mapping = stack.emulator.client("lambda").get_event_source_mapping(
        UUID=stack.id("ProvisionedSlices")
    )
    pollers = mapping.get("ProvisionedPollerConfig", {}).get("MinimumPollers", 0)
    return bool(pollers == int(stack.parameters["ProvisionedPollers"]))


def _console_is_throttled(stack: Deployment) -> bool:
    statuses = {stack.call("GET", "/console")[0] for _ in range(2 * CONSOLE_BURST)}
    return 429 in statuses


def _access_is_logged(stack: Deployment) -> bool:
    group = stack.id("AccessLogs")
    return bool(stack.emulator.client("logs").filter_log_events(logGroupName=group)["events"])


_LOOKS: dict[str, Callable[[Deployment], bool]] = {
    "items expire by TTL": _of_both_tables(_expires),
    "tables can be recovered to a point in time": _of_both_tables(_recovers),
    "tables are encrypted": _tables_are_encrypted,
    "queues are encrypted": _queues_are_encrypted,
    "roles have the boundary": _roles_are_bounded,
    "queues give up into the dead-letter queue": _queues_give_up,
    "failed runs of scheduler and sweeper are not repeated": _runs_are_not_repeated,
    "the notifier may go on calling itself": _notifier_may_recur,
    "logs are kept for a bounded time": _logs_are_bounded,
    "metric filters count": _filters_count,
    "the notifier runs in the subnets": _notifier_is_in_the_network,
    "pollers are provisioned": _pollers_are_provisioned,
    "the console's routes are throttled": _console_is_throttled,
    "access is logged": _access_is_logged,
}
