"""`make deploy ENV=dev` as an operator runs it, with the real SAM CLI, in an account of its own."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.operate.deploy import REFUSED
from tests.emulated.conftest import VERB
from tests.emulated.deployment import DEPLOY_SECONDS_MAX, ROOT
from tests.emulated.emulator import Emulator
from tests.emulated.observed import until
from tests.support.by_verb import given

STACK = "duewheel-dev"
FAILS = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 999_999}}


@pytest.fixture(scope="module")
def first_used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator of its own, so that leftovers affect no other test."""
    python = given("EMULATOR_PYTHON", VERB).absolute()
    emulator = Emulator(python, tmp_path_factory.mktemp("first-used"))
    yield emulator
    emulator.stop()


def deployed(emulator: Emulator, **options: str) -> subprocess.CompletedProcess[str]:
    """Without a terminal that could answer a question."""
    sam: Path = given("SAM", VERB).absolute()
    template = given("PACKAGE", VERB).resolve() / "template.yaml"
    command = f"{sam.with_name('python')} -m infra.operate.sam_with_triggers"
    named = {"template": str(template), "sam": command, "watch-minutes": "10"}
    named |= {"again": "make deploy", **options}
    return subprocess.run(
        [
            sam.with_name("python"), "-m", "infra.operate.deploy", "dev",
            *(word for name, value in named.items() for word in (f"--{name}", value)),
        ],
        cwd=ROOT,
        env=emulator.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEPLOY_SECONDS_MAX,
        check=False,
    )  # fmt: skip


def status(emulator: Emulator) -> str:
    (stack,) = emulator.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    return str(stack["StackStatus"])


def tables(emulator: Emulator) -> dict[str, str]:
    resources = emulator.client("cloudformation").describe_stack_resources(StackName=STACK)
    return {
        one["LogicalResourceId"]: one["PhysicalResourceId"]
        for one in resources["StackResources"]
        if one["ResourceType"] == "AWS::DynamoDB::Table"
    }


def changed_files() -> str:
    command = ["git", "status", "--porcelain"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def failed(first_used: Emulator) -> Emulator:
    """An account in which the first creation of the stack has failed."""
    template = json.dumps({"Resources": {"Cause": FAILS}})
    first_used.client("cloudformation").create_stack(StackName=STACK, TemplateBody=template)
    until(lambda: status(first_used) == "ROLLBACK_COMPLETE", "the failure")
    return first_used


def test_a_failed_first_creation_is_replaced_only_on_request(failed: Emulator) -> None:
    refused = deployed(failed)
    assert refused.returncode == REFUSED, refused.stdout
    assert "REPLACE_FAILED=yes" in refused.stderr
    assert "It failed on Cause: Invalid value for the parameter VisibilityTimeout" in refused.stderr
    assert status(failed) == "ROLLBACK_COMPLETE"

    replaced = deployed(failed, **{"replace-failed": "yes"})
    assert replaced.returncode == 0, replaced.stdout + replaced.stderr
    assert status(failed) == "CREATE_COMPLETE"


def test_a_deployment_asks_no_question_changes_no_file_and_prints_its_result(
    failed: Emulator,
) -> None:
    before = changed_files()
    done = deployed(failed, parameters='AlarmEmail=me@example.com AllowedPrivateCidrs=""')
    assert done.returncode == 0, done.stdout + done.stderr
    assert changed_files() == before
    printed = done.stdout.partition(f"{STACK} in us-east-1 runs version")[2]
    assert "API: https://" in printed
    assert "Alarms: Damage, DeadLetters, Rescued, TasksPerDayGuard" in printed
    assert "email me@example.com" in printed


def test_a_stack_that_was_deleted_gets_its_tables_back_with_their_items(failed: Emulator) -> None:
    cloudformation, dynamodb = map(failed.client, ("cloudformation", "dynamodb"))
    before = tables(failed)
    item = {"slot": {"S": "kept"}, "place": {"S": "kept"}}
    dynamodb.put_item(TableName=before["Wheel"], Item=item)
    cloudformation.delete_stack(StackName=STACK)
    waiter = cloudformation.get_waiter("stack_delete_complete")
    waiter.wait(StackName=STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 60})

    named = " ".join(f"{name}={table}" for name, table in before.items())
    done = deployed(failed, tables=named)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{STACK} has its tables again" in done.stdout
    assert f"{STACK} in us-east-1 runs version" in done.stdout
    assert tables(failed) == before
    assert dynamodb.get_item(TableName=before["Wheel"], Key=item)["Item"] == item
