"""`make roll-back`: point a stack's aliases at the versions of the deployment before the last one.

Versions of one deployment share one version of our layer, which no other deployment has. All
aliases move or none: when one fails, the others are moved back. An alias moves only if it is
unchanged since it was read. A repeat completes an interrupted run, and goes no further back.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.operate.deploy import Account

CORE_LAYER = "CoreLayer"  # the transform puts a digest behind its logical id
AT_REST = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
COMPLETE, FAILED, UNKNOWN = "complete", "failed", "unknown"
REFUSED = 2

Published = tuple[str, str]  # a function, and the number of its version


class Refused(Exception):
    """The message has the reason, and the positions of the aliases if they have changed."""


@dataclass(slots=True)
class Deployment:
    """`number`: of the version of our layer. `outcome`: of the update that published it."""

    number: int
    made: str = ""
    versions: dict[str, str] = field(default_factory=dict)  # by function
    outcome: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class Alias:
    function: str
    name: str
    version: str
    revision: str
    is_shifting: bool


@dataclass(frozen=True, slots=True)
class Found:
    stack: str
    deployed: int  # the number of the deployment that CloudFormation made last
    deployments: Mapping[int, Deployment]
    aliases: Sequence[Alias]


def outcomes(events: Iterable[Mapping[str, Any]]) -> dict[Published, str]:
    """The outcome of the update that published each version. Events come the latest first."""
    found: dict[Published, str] = {}
    outcome = UNKNOWN
    for event in events:
        status = event.get("ResourceStatus", "")
        if event.get("PhysicalResourceId") == event["StackId"]:
            if "ROLLBACK" in status or status.endswith("FAILED"):
                outcome = FAILED
            elif "COMPLETE" in status:
                outcome = COMPLETE
        elif event.get("ResourceType") == "AWS::Lambda::Version" and status == "CREATE_COMPLETE":
            *_, function, version = event["PhysicalResourceId"].split(":")
            found.setdefault((function, version), outcome)
    return found


def deployments(
    layer: str, published: Iterable[Mapping[str, Any]], became: Mapping[Published, str]
) -> dict[int, Deployment]:
    """The deployments by number. `layer`: the ARN of our layer, without a version."""
    found: dict[int, Deployment] = {}
    of_versions: dict[int, set[str]] = {}
    for one in published:
        for arn in (each["Arn"] for each in one.get("Layers", [])):
            name, _, number = arn.rpartition(":")
            if name != layer:
                continue
            deployment = found.setdefault(int(number), Deployment(int(number)))
            deployment.made = max(deployment.made, one["LastModified"])
            deployment.versions[one["FunctionName"]] = one["Version"]
            outcome = became.get((one["FunctionName"], one["Version"]), UNKNOWN)
            of_versions.setdefault(int(number), set()).add(outcome)
    for number, all_of_it in of_versions.items():
        if FAILED in all_of_it:
            found[number].outcome = FAILED
        elif all_of_it == {COMPLETE}:
            found[number].outcome = COMPLETE
    return found


def target(found: Found, to: int | None) -> Deployment:
    """The deployment at which the aliases must point."""
    shifting = sorted({alias.function for alias in found.aliases if alias.is_shifting})
    if shifting:
        raise Refused(f"A canary is under way: {', '.join(shifting)}. Stop it in CodeDeploy first.")
    chosen = _before(found) if to is None else found.deployments.get(to)
    if chosen is None:
        raise Refused(f"No version is there of a deployment {to}.")
    missing = sorted({a.function for a in found.aliases} - chosen.versions.keys())
    if missing:
        raise Refused(f"Deployment {chosen.number} has no version of {', '.join(missing)}.")
    return chosen


def _before(found: Found) -> Deployment:
    for number in sorted(found.deployments, reverse=True):
        one = found.deployments[number]
        if number >= found.deployed or one.outcome == FAILED:
            continue
        if one.outcome == UNKNOWN:
            raise Refused(
                f"Whether deployment {number} came to its end is not known: its events are gone, "
                f"which CloudFormation keeps for 90 days. If it did: make roll-back "
                f"STACK={found.stack} TO={number}"
            )
        return one
    raise Refused(f"There are no versions of a deployment before {found.deployed}.")


def looked_up(account: Account, name: str) -> Found:
    stack = account.stack(name)
    if stack is None:
        raise Refused(f"There is no stack {name} in {account.region}.")
    if stack["StackStatus"] not in AT_REST:
        raise Refused(f"{name} is {stack['StackStatus']}: a deployment is under way, or failed.")
    resources = [
        one
        for one in account.resources(stack["StackId"])
        if not one["ResourceStatus"].startswith("DELETE_")
    ]
    layer, number = _layer_of(resources, name)
    client = account.client("lambda")
    aliases = [
        _alias(client, *arn.split(":")[-2:]) for arn in _physical(resources, "AWS::Lambda::Alias")
    ]
    pages = client.get_paginator("list_versions_by_function")
    published = [
        version
        for function in sorted({alias.function for alias in aliases})
        for page in pages.paginate(FunctionName=function)
        for version in page["Versions"]
        if version["Version"] != "$LATEST"
    ]
    events = account.client("cloudformation").get_paginator("describe_stack_events")
    became = outcomes(
        event
        for page in events.paginate(StackName=stack["StackId"])
        for event in page["StackEvents"]
    )
    return Found(name, number, deployments(layer, published, became), aliases)


def _layer_of(resources: Sequence[Mapping[str, Any]], stack: str) -> tuple[str, int]:
    for one in resources:
        is_layer = one["ResourceType"] == "AWS::Lambda::LayerVersion"
        if is_layer and one["LogicalResourceId"].startswith(CORE_LAYER):
            name, _, number = one["PhysicalResourceId"].rpartition(":")
            return name, int(number)
    raise Refused(f"{stack} has no {CORE_LAYER}: it is no stack of this template.")


def _physical(resources: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    return [one["PhysicalResourceId"] for one in resources if one["ResourceType"] == kind]


def _alias(client: Any, function: str, name: str) -> Alias:
    got = client.get_alias(FunctionName=function, Name=name)
    weights = got.get("RoutingConfig", {}).get("AdditionalVersionWeights")
    return Alias(function, name, got["FunctionVersion"], got["RevisionId"], bool(weights))


def move(client: Any, aliases: Sequence[Alias], to: Deployment) -> int:
    """How many moved. Raises Refused if one could not move; then the others are moved back."""
    begun: list[Alias] = []
    for alias in aliases:
        if alias.version == to.versions[alias.function]:
            continue
        begun.append(alias)
        try:
            _lead(client, alias, to.versions[alias.function])
        except (BotoCoreError, ClientError) as error:
            left = _moved_back(client, begun, to)
            lines = [f"{alias.function}:{alias.name} could not be moved: {error}"]
            lines += left or ["All aliases are where they were."]
            raise Refused("\n".join(lines)) from error
    return len(begun)


def _lead(client: Any, alias: Alias, version: str) -> None:
    client.update_alias(
        FunctionName=alias.function,
        Name=alias.name,
        FunctionVersion=version,
        RevisionId=alias.revision,
    )


def _moved_back(client: Any, begun: Sequence[Alias], to: Deployment) -> list[str]:
    """The aliases that could not be moved back. Each is checked: the failed one may have moved,
    too."""
    left = []
    for alias in reversed(begun):
        try:
            now = _alias(client, alias.function, alias.name)
            if now.version == to.versions[alias.function]:
                _lead(client, now, alias.version)
        except (BotoCoreError, ClientError) as error:
            left.append(f"{alias.function}:{alias.name} may be at another version now: {error}")
    if left:
        left.append("Run the same command again: it completes the way back.")
    return left


def shown(found: Found) -> list[str]:
    """Each deployment that still has versions, and the aliases that point at it."""
    lines = [f"{found.stack}: deployments by the version of their layer, the latest first"]
    for number in sorted(found.deployments, reverse=True):
        one = found.deployments[number]
        led = [a for a in found.aliases if one.versions.get(a.function) == a.version]
        about = [f"published {one.made}"]
        if number == found.deployed:
            about.append("deployed last")
        elif one.outcome != COMPLETE:
            about.append(
                "its deployment failed" if one.outcome == FAILED else "over 90 days old, or unknown"
            )
        about.append(f"{len(led)} of {len(found.aliases)} aliases")
        lines.append(f"  {number}: {', '.join(about)}")
        lines += [f"    {name} {version}" for name, version in sorted(one.versions.items())]
    return lines


def consequences(found: Found, to: Deployment) -> list[str]:
    if to.number == found.deployed:
        return []
    return [
        "Parameters, roles, queues and alarms are as they were deployed last. What the newer",
        "release has stored this one may not be able to read (docs/decisions/0052).",
        "The next make deploy of another package moves the aliases on, and one that fails may lead",
        f"them to {found.deployed} again. The same package once more moves none; this does:",
        f"  make roll-back STACK={found.stack} TO={found.deployed}",
    ]


def rolled_back(account: Account, stack: str, *, to: int | None, only_shows: bool) -> None:
    found = looked_up(account, stack)
    print("\n".join(shown(found)))
    if only_shows:
        return
    chosen = target(found, to)
    moved = move(account.client("lambda"), found.aliases, chosen)
    did = f"{moved} aliases moved" if moved else "All aliases were there already"
    print(
        "\n".join(
            [f"{did}: {stack} runs deployment {chosen.number}.", *consequences(found, chosen)]
        )
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make roll-back", description=__doc__)
    parser.add_argument("stack")
    parser.add_argument("--to", type=int, help="a deployment, by the number that is shown")
    parser.add_argument("--show", action="store_true", help="move nothing")
    given = parser.parse_args(arguments)
    try:
        session = boto3.Session()
        if session.region_name is None:
            raise Refused("No Region is set: export AWS_REGION=..., or name one in the profile.")
        account = Account(session.client, session.region_name)
        rolled_back(account, given.stack, to=given.to, only_shows=given.show)
    except (BotoCoreError, ClientError, Refused) as error:
        print(f"Not rolled back.\n{error}", file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
