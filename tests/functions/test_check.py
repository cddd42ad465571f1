"""The check of each function before it gets traffic, with the role of the function."""

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from duewheel.settings import SettingsError
from duewheel.wiring import process
from duewheel.wiring.check import reached
from duewheel.wiring.process import CHECK
from functions.scheduler import app as scheduler
from local.aws.calling_function import as_function
from local.aws.emulator import Emulator
from local.aws.permissions import taken_refusals
from local.aws.policies import Role, roles_of
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template
from tests.functions.conftest import HANDLERS, Context
from tests.support.cases import each_case
from tests.support.clock import ManualClock
from tests.support.rights_in_use import EVERYTHING, TEMPLATE

READS = ("GetItem", "BatchGetItem", "Query")


@pytest.fixture
def resources(emulator: Emulator) -> Resources:
    template = load_template(TEMPLATE, EVERYTHING)
    return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


def checked(function: str, clock: ManualClock) -> set[str]:
    """The names of the tables and queues that a fresh process reached."""
    process.start_anew(clock)
    answer = HANDLERS[function].handler(dict(CHECK), Context())
    return {name.rpartition("/")[2] for name in answer["reached"]}


def may_use(role: Role) -> set[str]:
    """The names of the tables that the role may read, and of the queues that it may send to or
    receive from."""
    found = set()
    for right in role.rights():
        service, _, action = right.action.partition(":")
        if service == "dynamodb" and action in READS and "/index/" not in right.resource:
            found.add(right.resource.rpartition("/")[2])
        if service == "sqs" and action in ("SendMessage", "ReceiveMessage"):
            found.add(right.resource.rpartition(":")[2])
    return found


@each_case("function", HANDLERS)
def test_a_check_reaches_each_table_and_queue_that_the_function_may_use(
    function: str, wired: ManualClock, resources: Resources
) -> None:
    role = roles_of(resources)[function]
    targets = {arn.rpartition(":")[2] for arn in EVERYTHING["TargetArns"].split(",")}
    assert may_use(role) - targets <= checked(function, wired)
    assert taken_refusals() == []


def items(resources: Resources) -> list[Any]:
    tables = resources.template.of_type("AWS::DynamoDB::Table")
    names = [resources.ref(table.logical_id) for table in tables]
    return [boto3.client("dynamodb").scan(TableName=name)["Items"] for name in names]


def test_a_check_changes_nothing_of_a_wheel_that_has_begun(
    wired: ManualClock, resources: Resources
) -> None:
    for function in HANDLERS:
        checked(function, wired)
    before = items(resources)
    assert before != [[], [], []], "the first check has laid out the wheel, as any run does"

    for function in HANDLERS:
        checked(function, wired)

    assert items(resources) == before
    for queue in resources.template.of_type("AWS::SQS::Queue"):
        url = resources.ref(queue.logical_id)
        assert "Messages" not in boto3.client("sqs").receive_message(QueueUrl=url)


def test_another_event_is_no_check(wired: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    monkeypatch.setattr(
        scheduler.wiring, "lead", lambda: type("Lead", (), {"run": lambda *_: ran.append(1)})()
    )
    for event in ({}, {"check": False}, {"check": True, "more": 1}):
        scheduler.handler(event, Context())
    assert len(ran) == 3


@each_case("function", HANDLERS)
def test_a_wrong_setting_fails_the_check(
    function: str, wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETENTION_DAYS", "many")
    with pytest.raises(SettingsError, match="RETENTION_DAYS"):
        checked(function, wired)


@pytest.mark.parametrize(
    ("function", "table"),
    [("authorizer", "Registry"), ("scheduler", "Wheel"), ("notifier", "Secrets")],
)
def test_a_missing_table_fails_the_check(
    function: str, table: str, wired: ManualClock, resources: Resources
) -> None:
    boto3.client("dynamodb").delete_table(TableName=resources.ref(table))
    with pytest.raises(Exception, match="ResourceNotFound"):
        checked(function, wired)


def test_a_missing_queue_fails_the_check(wired: ManualClock, resources: Resources) -> None:
    boto3.client("sqs").delete_queue(QueueUrl=resources.ref("SliceQueue"))
    with pytest.raises(ClientError, match="NonExistentQueue"):
        checked("scheduler", wired)


@each_case(
    ("function", "action"),
    [
        ("scheduler", "dynamodb:Query"),
        ("sweeper", "dynamodb:BatchGetItem"),
        ("notifier", "sqs:GetQueueAttributes"),
        ("authorizer", "dynamodb:GetItem"),
    ],
)
def test_a_missing_right_fails_the_check(
    function: str, action: str, wired: ManualClock, resources: Resources
) -> None:
    role = roles_of(resources)[function]
    left = (
        replace(one, actions=tuple(each for each in one.actions if each != action))
        for one in role.statements
    )
    lesser = replace(role, statements=tuple(left))
    check = as_function(lesser, lambda *_: reached([HANDLERS[function].wiring]))
    process.start_anew(wired)
    with pytest.raises(ClientError, match="AccessDenied"):
        check(None, None)
    (refused,) = taken_refusals()
    assert refused.startswith(f"{role.name} may not {action} on ")
