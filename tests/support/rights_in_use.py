"""Checks after a run of the whole suite that each right of the template is used.

The used rights of all processes of the run are joined. The whole suite may consist of two runs: the
rights used in the run without long tests are kept for the run of the long tests, which makes the
check. Invariant: a run that failed, or that is another part of the tests, reports this and makes no
check.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.aws.emulator import Emulator
from local.aws.permissions import in_use
from local.aws.policies import Right, roles_of
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template
from local.control.inbox_resources import ALLOWED
from tests.support.bounds import LONG

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
CUSTOMER_KEY = "arn:aws:kms:us-east-1:123456789012:key/0f5a2c9e-1111-2222-3333-444455556666"
# The parameters that grant all optional rights, since these are tested, too.
EVERYTHING = {
    "TargetArns": ",".join(ALLOWED),
    "AuthMode": "keys",
    "IngestBusinesses": "*",
    "StackTimersAs": "duewheel-write",
    "KmsKeyArn": CUSTOMER_KEY,
    "SubnetIds": "subnet-01,subnet-02",
    "SecurityGroupIds": "sg-01",
}
# Options that leave tests out.
_CHOSEN = (
    *("collectonly", "deselect", "ignore", "ignore_glob"),
    *("keyword", "lf", "maxfail", "stepwise"),
)
# How `make test` and `make test-all` select the two parts.
QUICK_PART = f"not ({' or '.join(LONG)})"
LONG_PART = f"{' or '.join(LONG)} or hypothesis"
_KEPT = "duewheel/rights-of-quick-tests"


def given(resources: Resources) -> set[Right]:
    return {right for role in roles_of(resources).values() for right in role.rights()}


def used_by_aws(resources: Resources) -> Iterator[Right]:
    """The rights that Lambda itself uses with a function's role: it polls queues, writes logs,
    and makes network interfaces."""
    template = resources.template
    roles = {role.function_arn: role.name for role in roles_of(resources).values()}
    for mapping in template.of_type("AWS::Lambda::EventSourceMapping"):
        properties = resources.resolve(mapping.properties)
        function = properties["FunctionName"].rpartition(":")[0]  # it names an alias
        for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes"):
            yield Right(roles[function], f"sqs:{action}", properties["EventSourceArn"])
        queue = resources.with_arn(properties["EventSourceArn"])
        if key := resources.resolve(queue.properties).get("KmsMasterKeyId"):
            via = "kms:ViaService is sqs.us-east-1.amazonaws.com*"
            yield Right(roles[function], "kms:Decrypt", key, via)
    for function in template.functions():
        role = roles[resources.attribute(function.logical_id, "Arn")]
        properties = resources.resolve(function.properties)
        logs = resources.attribute(function.properties["LoggingConfig"]["LogGroup"]["Ref"], "Arn")
        for action in ("CreateLogStream", "PutLogEvents"):
            yield Right(role, f"logs:{action}", logs)
        if "VpcConfig" in properties:
            for action in INTERFACES:
                yield Right(role, f"ec2:{action}", "*")


# AWS's list for a function in a customer's network.
INTERFACES = (
    "CreateNetworkInterface",
    "DescribeNetworkInterfaces",
    "DescribeSubnets",
    "DeleteNetworkInterface",
    "AssignPrivateIpAddresses",
    "UnassignPrivateIpAddresses",
)


class _NoClock:
    def now_ms(self) -> int:
        return 0


def unused(seen: Iterable[Right]) -> list[Right]:
    with Emulator(_NoClock()):
        template = load_template(TEMPLATE, EVERYTHING)
        resources = create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))
        used = {*used_by_aws(resources), *seen}
        return sorted(given(resources) - used)


class RightsInUse:
    """A plugin of pytest's main process and of each worker."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seen: set[Right] = set()
        self._lines: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._seen |= {
            Right(*words) for words in getattr(node, "workeroutput", {}).get("rights", ())
        }

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["rights"] = [tuple(right) for right in sorted(in_use)]
            return
        seen = self._seen | in_use
        if why := self._why_not(exitstatus):
            self._lines = [f"rights in use: not judged, {why}"]
            return
        cache: Any = self._config.cache
        part = getattr(self._config.option, "markexpr", "")
        if part == QUICK_PART:
            cache.set(_KEPT, [tuple(right) for right in sorted(seen)])
            self._lines = ["rights in use: judged after the long tests"]
            return
        if part == LONG_PART:
            seen |= {Right(*words) for words in cache.get(_KEPT, [])}
        needless = unused(seen)
        self._lines = [f"no test uses the right: {' '.join(right)}" for right in needless]
        if needless:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        else:
            self._lines = ["rights in use: every right of every role"]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for line in self._lines:
            terminalreporter.write_line(line)

    def _why_not(self, exitstatus: int) -> str:
        options = self._config.option
        is_part = self._config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        is_part |= any(getattr(options, name, None) for name in _CHOSEN)
        is_part |= getattr(options, "markexpr", "") not in ("", QUICK_PART, LONG_PART)
        if is_part or "SECOND_OPINION" in os.environ:
            return "since this was a part of the tests"
        return "" if exitstatus == pytest.ExitCode.OK else "since tests failed"
