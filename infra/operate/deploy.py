"""`make deploy`, `make deploy-package`: check stack and account, run `sam deploy`, report on it.

It has no prompts and changes no file of the repository. It deletes old versions of functions, and
with `--replace-failed` a stack whose first creation failed, which AWS only allows to delete.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from samtranslator.yaml_helper import yaml_parse

from infra.operate import deploy_advice as advice
from infra.operate import sam_with_triggers
from infra.operate.deploy_parameters import (
    FILE_SUFFIX,
    WrongParameters,
    as_arguments,
    chosen,
    effective,
    in_command,
    options_of,
)
from infra.operate.kept_tables import import_tables, tables_of
from infra.operate.region import take_region

ROOT = Path(__file__).parents[2]
SAMCONFIG = ROOT / "samconfig.toml"
ALARMS_AT_ONCE = 100  # of DescribeAlarms
# Alarms that a bad version sets off within minutes, and that end with it; five are the most that a
# stack takes. The last two are there without Observability.
TRIGGERS = (
    "FunctionErrorsAlarm",
    "ApiErrorsAlarm",
    "PointerLagAlarm",
    "RescuedAlarm",
    "DamageAlarm",
)
ALWAYS_THERE = TRIGGERS[-2:]
VERSIONS_KEPT = 3
PROTECTED = "prod"  # of the environments
WITHIN_AN_HOUR = {"Delay": 5, "MaxAttempts": 720}
REFUSED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    environment: str
    stack: str
    template: Path
    parameters: Mapping[str, str]
    sam: tuple[str, ...]
    watch_minutes: int
    again: str  # the command that deploys this
    is_failed_replaced: bool
    tables: Mapping[str, str]  # of a deleted stack, which are to be this one's, by logical ids
    asks_before_changes: bool


class Stopped(Exception):
    """Nothing was deployed; the message has the reason and a remedy."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account of the credentials, in their Region."""

    client: Callable[[str], Any]
    region: str

    def stack(self, name: str) -> dict[str, Any] | None:
        try:
            described = self.client("cloudformation").describe_stacks(StackName=name)
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        stack: dict[str, Any] = described["Stacks"][0]
        return stack

    def resources(self, stack: str) -> Iterator[dict[str, Any]]:
        """Including those of nested stacks."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        for page in pages.paginate(StackName=stack):
            for resource in page["StackResourceSummaries"]:
                yield resource
                within = resource.get("PhysicalResourceId")
                if within and resource["ResourceType"] == "AWS::CloudFormation::Stack":
                    yield from self.resources(within)


def deployed(account: Account, options: Options, template: Mapping[str, Any]) -> int:
    """The exit code of `sam deploy`. Raises Stopped if nothing can be deployed."""
    declared = template["Parameters"]
    stack = account.stack(options.stack)
    if stack is not None:
        hindered = advice.obstacle(stack["StackStatus"], options.stack, options.again)
        if hindered:
            if stack["StackStatus"] not in advice.NEVER_MADE or not options.is_failed_replaced:
                raise Stopped("\n".join([*hindered, *_reasons(account, stack)]))
            _delete_failed(account, stack)
            stack = None
    if options.tables:
        stack = _with_kept_tables(account, options, stack, template)
    previous = _parameters_of(stack)
    will_be = effective(declared, previous, options.parameters)
    _say(_about_concurrency(account, will_be, options.stack))
    if stack is None and will_be["AuthMode"] == "iam" and will_be["IamDefault"] == "none":
        _say(advice.access(will_be, options.stack))
    environment = dict(os.environ)
    if stack is not None:
        is_watched_as_before = previous.get("Observability") == will_be["Observability"]
        names = TRIGGERS if is_watched_as_before else ALWAYS_THERE  # else they may go, or come
        triggers = json.dumps(_triggers(account, options, names))
        environment[sam_with_triggers.VARIABLE] = triggers
    done = subprocess.run(sam_command(options), env=environment, check=False).returncode
    if done == 0:
        _say(_result(account, options, declared))
    else:
        _say(_refused_early(account, options.stack))
    return done


def _with_kept_tables(
    account: Account,
    options: Options,
    stack: Mapping[str, Any] | None,
    template: Mapping[str, Any],
) -> dict[str, Any] | None:
    wanted = sorted(tables_of(template))
    if stack is not None:
        raise Stopped(f"{options.stack} is there, with tables of its own: leave TABLES out.")
    if sorted(options.tables) != wanted:
        raise Stopped(f"TABLES names each of {', '.join(wanted)}: Wheel=its-name ...")
    cloudformation = account.client("cloudformation")
    import_tables(cloudformation, options.stack, template, options.tables, options.parameters)
    _say([f"{options.stack} has its tables again: {', '.join(options.tables.values())}"])
    return account.stack(options.stack)


def _refused_early(account: Account, stack: str) -> list[str]:
    """What CloudFormation found wrong before it changed anything: the SAM CLI shows only that it
    did. Of the last operation; the latest event is the first."""
    try:
        described = account.client("cloudformation").describe_events(
            StackName=stack, Filters={"FailedEvents": True}
        )
    except ClientError as error:
        return [f"What CloudFormation refused could not be looked up: {error}"]
    events = described["OperationEvents"]
    return [
        f"Refused before any change: {event.get('LogicalResourceId', stack)} "
        f"{event.get('ValidationPath', '')}: {event.get('ValidationStatusReason', 'no reason')}"
        for event in events
        if event["EventType"] == "VALIDATION_ERROR"
        and event["OperationId"] == events[0]["OperationId"]
    ]


def sam_command(options: Options) -> list[str]:
    command = [
        *options.sam, "deploy",
        "--template-file", str(options.template),
        "--config-file", str(SAMCONFIG),  # otherwise sam reads it beside the template
        "--config-env", options.environment,
        "--stack-name", options.stack,
        "--s3-prefix", options.stack,
    ]  # fmt: skip
    if not options.asks_before_changes:
        command.append("--no-confirm-changeset")
    if options.parameters:
        command += ["--parameter-overrides", *as_arguments(options.parameters)]
    return command


def _parameters_of(stack: Mapping[str, Any] | None) -> dict[str, str]:
    if stack is None:
        return {}
    return {
        one["ParameterKey"]: one.get("ParameterValue", "") for one in stack.get("Parameters", [])
    }


def _about_concurrency(account: Account, parameters: Mapping[str, str], stack: str) -> list[str]:
    try:
        settings = account.client("lambda").get_account_settings()
    except ClientError as error:
        return [f"The account's concurrency of Lambda could not be looked up: {error}"]
    limit = settings["AccountLimit"]["ConcurrentExecutions"]
    return advice.concurrency(limit, account.region, parameters, stack)


def _triggers(account: Account, options: Options, names: Sequence[str]) -> dict[str, Any]:
    """The alarms of these names that the stack has. One that is on already is left out: it would
    undo the update that is to end it."""
    alarms = {
        one["PhysicalResourceId"]: one["LogicalResourceId"]
        for one in account.resources(options.stack)
        if one["LogicalResourceId"] in names
    }
    if not alarms:
        return {"RollbackTriggers": [], "MonitoringTimeInMinutes": 0}
    described = account.client("cloudwatch").describe_alarms(AlarmNames=list(alarms))[
        "MetricAlarms"
    ]
    is_on = sorted(alarms[a["AlarmName"]] for a in described if a["StateValue"] == "ALARM")
    if is_on:
        _say([f"On already, so that they do not undo this update: {', '.join(is_on)}."])
    arns = sorted(a["AlarmArn"] for a in described if a["StateValue"] != "ALARM")
    return {
        "RollbackTriggers": [{"Arn": arn, "Type": "AWS::CloudWatch::Alarm"} for arn in arns],
        "MonitoringTimeInMinutes": options.watch_minutes,
    }


def _reasons(account: Account, stack: Mapping[str, Any]) -> list[str]:
    """The first failure is the cause; the others are its consequences."""
    if stack["StackStatus"] not in advice.NEVER_MADE:
        return []
    pages = account.client("cloudformation").get_paginator("describe_stack_events")
    failures = [
        f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason given')}"
        for page in pages.paginate(StackName=stack["StackId"])
        for event in page["StackEvents"]  # the latest first
        if event.get("ResourceStatus") == "CREATE_FAILED"
    ]
    return [f"It failed on {failures[-1]}"] if failures else []


def _delete_failed(account: Account, stack: Mapping[str, Any]) -> None:
    name, stack_id = stack["StackName"], stack["StackId"]
    _say([f"Deleting {name}, whose first creation failed."])
    for resource in account.resources(stack_id):
        is_there = resource["ResourceStatus"] not in ("DELETE_COMPLETE", "DELETE_SKIPPED")
        if resource["ResourceType"] == "AWS::DynamoDB::Table" and is_there:
            _unprotect(account, resource.get("PhysicalResourceId"))
    cloudformation = account.client("cloudformation")
    cloudformation.delete_stack(StackName=stack_id)
    waiter = cloudformation.get_waiter("stack_delete_complete")
    waiter.wait(StackName=stack_id, WaiterConfig=WITHIN_AN_HOUR)
    kept = [
        f"  {one['ResourceType']} {one['PhysicalResourceId']}"
        for one in account.resources(stack_id)
        if one["ResourceStatus"] == "DELETE_SKIPPED"
    ]
    if kept:
        _say(["It left these behind; delete them by hand (docs/operations.md):", *kept])


def _unprotect(account: Account, table: str | None) -> None:
    """A protected table keeps its stack from being deleted."""
    dynamodb = account.client("dynamodb")
    try:
        described = dynamodb.describe_table(TableName=table)["Table"] if table else {}
    except dynamodb.exceptions.ResourceNotFoundException:
        return
    if described.get("DeletionProtectionEnabled"):
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.get_waiter("table_exists").wait(TableName=table)


def _protected(account: Account, stack: str) -> list[str]:
    """Protect the tables from deletion. Only after a success, since protected tables would block
    the rollback of a failed first creation. CloudFormation keeps properties that it did not set."""
    dynamodb = account.client("dynamodb")
    protected = []
    for resource in account.resources(stack):
        if resource["ResourceType"] != "AWS::DynamoDB::Table":
            continue
        table = resource["PhysicalResourceId"]
        described = dynamodb.describe_table(TableName=table)["Table"]
        if not described.get("DeletionProtectionEnabled"):
            dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
            protected.append(f"{table} is protected from deletion now.")
    return protected


def _kept(account: Account, options: Options, stack: Mapping[str, Any]) -> list[str]:
    """A protected stack cannot be deleted by accident, with its queues and its address."""
    if options.environment != PROTECTED or stack.get("EnableTerminationProtection"):
        return []
    account.client("cloudformation").update_termination_protection(
        StackName=options.stack, EnableTerminationProtection=True
    )
    return [f"{options.stack} is protected from deletion now."]


def _pruned(account: Account, stack: str) -> list[str]:
    """Delete each function's versions but the last ones that an alias has used, since Lambda keeps
    them, with their network interfaces, for ever. Newer ones are those of failed deployments, whose
    numbers an alias may still pass."""
    client = account.client("lambda")
    pruned = 0
    for resource in account.resources(stack):
        if resource["ResourceType"] != "AWS::Lambda::Function":
            continue
        function = resource["PhysicalResourceId"]
        named = _named_by_aliases(client, function)
        pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=function)
        versions = [one["Version"] for page in pages for one in page["Versions"]]
        used = sorted(int(one) for one in versions if one.isdigit() and int(one) <= max(named))
        for version in sorted(set(used[:-VERSIONS_KEPT]) - named):
            client.delete_function(FunctionName=function, Qualifier=str(version))
            pruned += 1
    return [f"{pruned} old versions of functions are deleted."] if pruned else []


def _named_by_aliases(client: Any, function: str) -> set[int]:
    pages = client.get_paginator("list_aliases").paginate(FunctionName=function)
    aliases = [alias for page in pages for alias in page["Aliases"]]
    weights = [a.get("RoutingConfig", {}).get("AdditionalVersionWeights", {}) for a in aliases]
    versions = {a["FunctionVersion"] for a in aliases}.union(*weights)
    return {0, *(int(version) for version in versions if version.isdigit())}


def _result(account: Account, options: Options, declared: Mapping[str, Any]) -> list[str]:
    """The deployment is a success even if these credentials may not read all of it."""
    try:
        return ["", *_looked_up(account, options, declared)]
    except ClientError as error:
        return [f"{options.stack} could not be read after the deployment: {error}"]


def _looked_up(account: Account, options: Options, declared: Mapping[str, Any]) -> list[str]:
    stack = account.stack(options.stack)
    if stack is None or stack["StackStatus"] == "REVIEW_IN_PROGRESS":
        return [f"{options.stack} was not created."]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}
    parameters = effective(declared, _parameters_of(stack), {})
    return [
        f"{options.stack} in {account.region} runs version {outputs['Version']}.",
        f"API: {outputs['ApiUrl']}",
        *_domain_of(outputs),
        f"Console: {outputs['ConsoleUrl']}",
        *advice.access(parameters, options.stack),
        *advice.notified(_watched(account, options.stack), options.stack),
        *advice.rolled_back_by(stack.get("RollbackConfiguration", {})),
        *_protected(account, options.stack),
        *_kept(account, options, stack),
        *_pruned(account, options.stack),
    ]


def _domain_of(outputs: Mapping[str, str]) -> list[str]:
    if "DomainUrl" not in outputs:
        return []
    return [f"     {outputs['DomainUrl']}, by a record in DNS to {outputs['DomainTarget']}"]


def _watched(account: Account, stack: str) -> advice.Watched:
    logical = {
        resource["PhysicalResourceId"]: resource["LogicalResourceId"].removesuffix("Alarm")
        for resource in account.resources(stack)
        if resource["ResourceType"] == "AWS::CloudWatch::Alarm"
    }
    names = list(logical)
    alarms = [
        advice.Alarm(
            logical[alarm["AlarmName"]],
            tuple(alarm["AlarmActions"]),
            not alarm["ActionsEnabled"],
        )
        for start in range(0, len(names), ALARMS_AT_ONCE)
        for alarm in account.client("cloudwatch").describe_alarms(
            AlarmNames=names[start : start + ALARMS_AT_ONCE], MaxRecords=ALARMS_AT_ONCE
        )["MetricAlarms"]
    ]
    topics = {topic for alarm in alarms for topic in alarm.topics if ":sns:" in topic}
    return advice.Watched(alarms, {topic: _subscriptions(account, topic) for topic in topics})


def _subscriptions(account: Account, topic: str) -> list[advice.Subscription]:
    pages = account.client("sns").get_paginator("list_subscriptions_by_topic")
    return [
        advice.Subscription(
            one["Protocol"], one["Endpoint"], one["SubscriptionArn"].startswith("arn:")
        )
        for page in pages.paginate(TopicArn=topic)
        for one in page["Subscriptions"]
    ]


def _say(lines: list[str]) -> None:
    for line in lines:
        print(line, flush=True)


def options_from(given: argparse.Namespace, declared: Mapping[str, Any]) -> Options:
    section = options_of(SAMCONFIG.read_text("utf-8"), given.env)
    stack = given.stack or section["stack_name"]
    file = ROOT / f"{stack}{FILE_SUFFIX}"
    own = file.read_text("utf-8") if file.exists() else ""
    return Options(
        environment=given.env,
        stack=stack,
        template=given.template,
        parameters=chosen(section, own, given.parameters, declared),
        sam=tuple(shlex.split(given.sam)),
        watch_minutes=given.watch_minutes,
        again=given.again,
        is_failed_replaced=given.replace_failed == "yes",
        tables=in_command(given.tables),
        asks_before_changes=bool(section["confirm_changeset"]) and not given.no_questions,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make deploy", description=__doc__)
    parser.add_argument("env", help="an environment of samconfig.toml")
    parser.add_argument("--template", type=Path, required=True, help="of the built package")
    parser.add_argument("--sam", required=True, help="the SAM CLI, as a command")
    parser.add_argument(
        "--watch-minutes", type=int, required=True, help="how long alarms may undo an update"
    )
    parser.add_argument("--again", required=True, help="the command that does the same once more")
    parser.add_argument("--stack", default="", help="another name than that of samconfig.toml")
    parser.add_argument("--parameters", default="", help='"Name=value Other=value"')
    parser.add_argument(
        "--replace-failed", default="", help="yes: delete a stack that never came to be"
    )
    parser.add_argument("--tables", default="", help="of a deleted stack: Wheel=its-name ...")
    parser.add_argument("--no-questions", action="store_true")
    given = parser.parse_args(arguments)
    try:
        template = yaml_parse(given.template.read_text("utf-8"))
        options = options_from(given, template["Parameters"])
        region = take_region()
        return deployed(Account(boto3.Session().client, region), options, template)
    except (BotoCoreError, ClientError, WrongParameters, Stopped) as error:
        print(f"Nothing was deployed.\n{error}", file=sys.stderr)
        return REFUSED


if __name__ == "__main__":
    sys.exit(main())
