"""Every call of a function is checked against its role, also while other functions run."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import Any

import pytest
from botocore.exceptions import ClientError

from duewheel.wiring import process
from local.aws import permissions
from local.aws.actions import ActionRequest, NotUnderstood, actions_of
from local.aws.calling_function import as_function, asking
from local.aws.permissions import UnknownCaller, must_allow, taken_refusals
from local.aws.policies import Right, Role, Statement, roles_of
from local.aws.resources import Resources
from tests.functions.conftest import wired  # noqa: F401
from tests.support.cases import each_case
from tests.support.clock import ManualClock

HERE = "us-east-1:123456789012"
WHEEL = f"arn:aws:dynamodb:{HERE}:table/duewheel-Wheel"
REGISTRY = f"arn:aws:dynamodb:{HERE}:table/duewheel-Registry"
KEY = {"kind": {"S": "api-key"}, "record": {"S": "a"}}


@pytest.fixture(autouse=True)
def _ignore_rights_used_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "in_use", set())


@pytest.fixture
def roles(resources: Resources) -> dict[str, Role]:
    return roles_of(resources)


@each_case(
    ("service", "operation", "params", "asked"),
    [
        ("dynamodb", "GetItem", {"TableName": "T"}, [("dynamodb:GetItem", "dynamodb", "table/T")]),
        (
            "dynamodb",
            "Query",
            {"TableName": "T", "IndexName": "i"},
            [("dynamodb:Query", "dynamodb", "table/T/index/i")],
        ),
        (
            "dynamodb",
            "BatchGetItem",
            {"RequestItems": {"T": {}, "U": {}}},
            [
                ("dynamodb:BatchGetItem", "dynamodb", "table/T"),
                ("dynamodb:BatchGetItem", "dynamodb", "table/U"),
            ],
        ),
        (
            "dynamodb",
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": {"TableName": "T"}},
                    {"Update": {"TableName": "T"}},
                    {"Delete": {"TableName": "U"}},
                    {"ConditionCheck": {"TableName": "U"}},
                ]
            },
            [
                ("dynamodb:PutItem", "dynamodb", "table/T"),
                ("dynamodb:UpdateItem", "dynamodb", "table/T"),
                ("dynamodb:DeleteItem", "dynamodb", "table/U"),
                ("dynamodb:ConditionCheckItem", "dynamodb", "table/U"),
            ],
        ),
        (
            "sqs",
            "SendMessageBatch",
            {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/q"},
            [("sqs:SendMessage", "sqs", "q")],
        ),
        (
            "lambda",
            "Invoke",
            {"FunctionName": "f:live"},
            [("lambda:InvokeFunction", "lambda", "function:f:live")],
        ),
        (
            "events",
            "PutEvents",
            {"Entries": [{"EventBusName": "b"}]},
            [("events:PutEvents", "events", "event-bus/b")],
        ),
        (
            "stepfunctions",
            "StartExecution",
            {"stateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:m:prod"},
            [("states:StartExecution", "states", "stateMachine:m")],
        ),
    ],
)
def test_a_call_needs_the_actions_that_iam_checks(
    service: str, operation: str, params: Any, asked: list[tuple[str, str, str]]
) -> None:
    assert [(one.action, one.resource) for one in actions_of(service, operation, params)] == [
        (action, f"arn:aws:{service}:{HERE}:{resource}") for action, service, resource in asked
    ]


def test_the_arn_of_a_queue_follows_from_its_url() -> None:
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders.fifo"
    (request,) = actions_of("sqs", "SendMessage", {"QueueUrl": url})
    assert request.resource == "arn:aws:sqs:eu-central-1:111122223333:orders.fifo"


def test_an_unknown_call_is_refused_by_the_emulator() -> None:
    for service, operation in (("dynamodb", "Scan"), ("s3", "PutObject")):
        with pytest.raises(NotUnderstood, match=operation):
            actions_of(service, operation, {})


def test_a_call_without_a_right_is_refused_as_aws_refuses_it(roles: dict[str, Role]) -> None:
    with pytest.raises(ClientError) as refusal:
        must_allow(roles["scheduler"], "dynamodb", "PutItem", {"TableName": "duewheel-Wheel"})
    assert refusal.value.response["Error"]["Code"] == "AccessDeniedException"
    assert taken_refusals() == [f"SchedulerRole may not dynamodb:PutItem on {WHEEL}"]


def test_one_part_without_a_right_refuses_the_whole_transaction(roles: dict[str, Role]) -> None:
    parts = [{"Put": {"TableName": "duewheel-Wheel"}}, {"Delete": {"TableName": "duewheel-Wheel"}}]
    with pytest.raises(ClientError):
        must_allow(roles["ingest"], "dynamodb", "TransactWriteItems", {"TransactItems": parts})
    assert taken_refusals() == [f"IngestRole may not dynamodb:DeleteItem on {WHEEL}"]


def test_a_used_right_is_recorded(roles: dict[str, Role]) -> None:
    must_allow(roles["notifier"], "dynamodb", "GetItem", {"TableName": "duewheel-Registry"})
    assert permissions.in_use == {Right("NotifierRole", "dynamodb:GetItem", REGISTRY)}


def role(*statements: Statement) -> Role:
    return Role(
        "R",
        "arn:aws:iam::1:role/R",
        "arn:aws:lambda:us-east-1:1:function:f",
        statements,
        {},
        {REGISTRY: "kind"},
    )


def test_a_condition_on_leading_keys_is_checked_for_items_of_its_table() -> None:
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ("api-key",)}}
    mine = role(Statement("Allow", ("dynamodb:GetItem",), (REGISTRY,), condition))
    other = {**KEY, "kind": {"S": "business"}}

    assert mine.right_to(ActionRequest("dynamodb:GetItem", REGISTRY, (KEY,))) is not None
    assert mine.right_to(ActionRequest("dynamodb:GetItem", REGISTRY, (other,))) is None


TABLE = "duewheel-Registry"
FORBIDDEN = {**KEY, "kind": {"S": "business"}}
_QUERY = {
    "TableName": TABLE,
    "KeyConditionExpression": "#kind = :kind AND #record BETWEEN :first AND :last",
    "ExpressionAttributeNames": {"#kind": "kind", "#record": "record"},
}


@each_case(
    ("operation", "params_with"),
    [
        ("GetItem", lambda key: {"TableName": TABLE, "Key": key}),
        ("PutItem", lambda key: {"TableName": TABLE, "Item": key}),
        ("UpdateItem", lambda key: {"TableName": TABLE, "Key": key}),
        ("DeleteItem", lambda key: {"TableName": TABLE, "Key": key}),
        ("Query", lambda key: {**_QUERY, "ExpressionAttributeValues": {":kind": key["kind"]}}),
        ("BatchGetItem", lambda key: {"RequestItems": {TABLE: {"Keys": [KEY, key]}}}),
        (
            "BatchWriteItem",
            lambda key: {
                "RequestItems": {
                    TABLE: [{"PutRequest": {"Item": KEY}}, {"DeleteRequest": {"Key": key}}]
                }
            },
        ),
        (
            "TransactWriteItems",
            lambda key: {
                "TransactItems": [
                    {"Put": {"TableName": TABLE, "Item": KEY}},
                    {"Update": {"TableName": TABLE, "Key": key}},
                ]
            },
        ),
    ],
)
def test_a_condition_on_leading_keys_is_checked_in_every_operation(
    operation: str, params_with: Any
) -> None:
    """As on AWS, one key outside the condition refuses the whole request."""
    actions = ("Get", "Put", "Update", "Delete", "BatchGet", "BatchWrite")
    condition = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ("api-*",)}}
    every = (*(f"dynamodb:{action}Item" for action in actions), "dynamodb:Query")
    mine = role(Statement("Allow", every, (REGISTRY,), condition))

    must_allow(mine, "dynamodb", operation, params_with(KEY))
    with pytest.raises(ClientError):
        must_allow(mine, "dynamodb", operation, params_with(FORBIDDEN))
    assert len(taken_refusals()) == 1


def test_a_deny_statement_overrides_all_others() -> None:
    denied = Statement("Deny", ("sqs:SendMessage",), ("arn:aws:sqs:*:*:q",), {})
    allowed = Statement("Allow", ("sqs:SendMessage",), ("arn:aws:sqs:us-east-1:1:*",), {})
    mine = role(allowed, denied)

    assert mine.right_to(ActionRequest("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:q")) is None
    assert mine.right_to(ActionRequest("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:p")) is not None


def test_a_wildcard_stays_within_its_part_of_an_arn() -> None:
    mine = role(Statement("Allow", ("sqs:SendMessage",), ("arn:aws:sqs:us-east-1:*:q",), {}))

    assert mine.right_to(ActionRequest("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:q")) is not None
    assert mine.right_to(ActionRequest("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:p:q")) is None


# The caller


def get(_: Any = None, __: Any = None) -> Any:
    table = process.settings().registry_table
    return process.dynamodb().get_item(TableName=table, Key=KEY)


def delete(_: Any = None, __: Any = None) -> Any:
    return process.dynamodb().delete_item(TableName=process.settings().registry_table, Key=KEY)


def in_a_pool(*_: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(delete, range(2)))


def in_a_coroutine(*_: Any) -> None:
    async def work() -> None:
        await asyncio.to_thread(delete)

    asyncio.run(work())


@pytest.mark.parametrize("work", [delete, in_a_pool, in_a_coroutine])
def test_the_calling_function_is_known_in_threads_and_coroutines(
    wired: ManualClock,  # noqa: F811
    roles: dict[str, Role],
    work: Any,
) -> None:
    as_function(roles["api"], work)({}, None)
    with pytest.raises(ClientError, match="SchedulerFunction is not authorized"):
        as_function(roles["scheduler"], work)({}, None)
    assert set(taken_refusals()) == {f"SchedulerRole may not dynamodb:DeleteItem on {REGISTRY}"}


def test_a_concurrent_function_does_not_get_the_rights_of_another(
    wired: ManualClock,  # noqa: F811
    roles: dict[str, Role],
) -> None:
    """Both run concurrently on the same client, each in the thread of its own environment."""
    both, met = threading.Barrier(2), {}

    def run(function: str) -> None:
        def work(*_: Any) -> None:
            both.wait()
            delete()

        try:
            as_function(roles[function], work)({}, None)
        except ClientError:
            met[function] = "refused"

    threads = [threading.Thread(target=run, args=[name]) for name in ("api", "sweeper")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == {"sweeper": "refused"}
    assert len(taken_refusals()) == 1


def test_a_call_without_a_known_caller_is_refused(
    wired: ManualClock,  # noqa: F811
) -> None:
    get()  # a call of the test itself
    with pytest.raises(UnknownCaller):
        Context().run(get)


def test_a_function_is_the_caller_only_until_it_ends(
    wired: ManualClock,  # noqa: F811
    roles: dict[str, Role],
) -> None:
    def asks(*_: Any) -> Role | None:
        return asking.get()

    assert as_function(roles["api"], asks)({}, None) is roles["api"]
    assert asking.get() is None
