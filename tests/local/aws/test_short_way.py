"""Requests that bypass moto's HTTP layer have the same answers and effects as in moto."""

from contextlib import nullcontext
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local.aws import emulator
from local.aws.emulator import Emulator
from local.aws.patches.short_way import answered_the_short_way
from tests.support.cases import each_case
from tests.support.clock import ManualClock

HERE = {"h": {"S": "a"}, "r": {"S": "1"}}
NOWHERE = {"h": {"S": "z"}, "r": {"S": "9"}}
ITEM = {
    **HERE,
    "n": {"N": "7"},
    "text": {"S": "größer"},
    "list": {"L": [{"BOOL": True}, {"NULL": True}]},
    "map": {"M": {"inner": {"N": "1.50"}}},
    "binary": {"B": b"\x00\xff"},
}
IF_ABSENT = {"ConditionExpression": "attribute_not_exists(h)"}
SHOWN = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
VALUES = {"ExpressionAttributeValues": {":one": {"N": "1"}}}
SET = {"UpdateExpression": "SET #n = :one", "ExpressionAttributeNames": {"#n": "n"}, **VALUES}
OF_A = {
    "KeyConditionExpression": "h = :h",
    "ExpressionAttributeValues": {":h": {"S": "a"}},
}


def put(item: dict[str, Any], **condition: Any) -> dict[str, Any]:
    return {"Put": {"TableName": "t", "Item": item, **condition}}


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("get_item", {"Key": HERE}),
    ("get_item", {"Key": NOWHERE, "ConsistentRead": True}),
    ("get_item", {"Key": HERE, "ReturnConsumedCapacity": "TOTAL"}),
    ("put_item", {"Item": {**HERE, "n": {"N": "8"}}, "ReturnValues": "ALL_OLD"}),
    ("put_item", {"Item": {**NOWHERE, "binary": {"B": b"\x00\xff"}}}),
    ("put_item", {"Item": ITEM, **IF_ABSENT, **SHOWN}),
    ("update_item", {"Key": HERE, **SET, "ReturnValues": "ALL_NEW"}),
    ("update_item", {"Key": NOWHERE, **SET, "ReturnValues": "UPDATED_OLD"}),
    ("update_item", {"Key": HERE, **SET, "ConditionExpression": "#n = :one", **SHOWN}),
    ("update_item", {"Key": HERE, "UpdateExpression": "SET n = = 1"}),
    ("delete_item", {"Key": HERE, "ReturnValues": "ALL_OLD"}),
    ("delete_item", {"Key": NOWHERE}),
    ("scan", {}),
    ("scan", {"Limit": 1, "ProjectionExpression": "#n", "ExpressionAttributeNames": {"#n": "n"}}),
    ("scan", {"ProjectionExpression": "size"}),
    ("query", OF_A),
    ("query", {**OF_A, "Limit": 1, "ScanIndexForward": False}),
    ("query", {**OF_A, "Select": "COUNT"}),
    ("query", {**OF_A, "IndexName": "no index"}),
    ("batch_get_item", {"RequestItems": {"t": {"Keys": [HERE, NOWHERE]}}}),
    ("batch_get_item", {"RequestItems": {"no table": {"Keys": [HERE]}}}),
    ("batch_write_item", {"RequestItems": {"t": [{"PutRequest": {"Item": {**NOWHERE}}}]}}),
    ("transact_write_items", {"TransactItems": [put(NOWHERE), put(ITEM)]}),
    ("transact_write_items", {"TransactItems": [put(NOWHERE), put(ITEM, **IF_ABSENT)]}),
    ("describe_table", {}),
]


@pytest.fixture
def the_short_way(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request, whether it bypassed moto's HTTP layer."""
    taken: list[bool] = []

    def answered(request: Any) -> Any:
        reply = answered_the_short_way(request)
        taken.append(reply is not None)
        return reply

    monkeypatch.setattr(emulator, "answered_the_short_way", answered)
    return taken


def moto_alone(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """moto alone, with HTTP requests of the SDK."""
    monkeypatch.setattr(emulator, "answered_the_short_way", lambda _: None)
    monkeypatch.setattr(emulator, "calls_without_http", nullcontext)
    return Emulator(ManualClock())


def outcome(operation: str, request: dict[str, Any]) -> list[Any]:
    """The answer of a new table, and its items after the request."""
    client = boto3.client("dynamodb")
    client.create_table(
        TableName="t",
        KeySchema=[
            {"AttributeName": "h", "KeyType": "HASH"},
            {"AttributeName": "r", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in "hr"],
        BillingMode="PAY_PER_REQUEST",
    )
    for item in (ITEM, {**HERE, "r": {"S": "2"}}):
        client.put_item(TableName="t", Item=item)
    is_batch = "RequestItems" in request or "TransactItems" in request
    arguments = request if is_batch else {"TableName": "t", **request}
    try:
        answer: Any = getattr(client, operation)(**arguments)
        del answer["ResponseMetadata"]
    except ClientError as error:
        answer = error.response
        answer["ResponseMetadata"] = answer["ResponseMetadata"]["HTTPStatusCode"]
    answer.get("Table", {}).pop("CreationDateTime", None)
    answer.get("Table", {}).pop("TableId", None)
    return [answer, client.scan(TableName="t")["Items"]]


def messages_outcome() -> list[Any]:
    """The answers for a batch that is sent, received in part, deleted, and received completely."""
    client = boto3.client("sqs")
    url = client.create_queue(QueueName="q")["QueueUrl"]
    entries = [
        {"Id": "a", "MessageBody": "größer"},
        {"Id": "b", "MessageBody": "2", "DelaySeconds": 0},
        {"Id": "late", "MessageBody": "3", "DelaySeconds": 900},
    ]
    sent = client.send_message_batch(QueueUrl=url, Entries=entries)
    first = client.receive_message(QueueUrl=url, AttributeNames=["ApproximateReceiveCount"])
    (message,) = first["Messages"]
    handles = [{"Id": "x", "ReceiptHandle": message["ReceiptHandle"]}]
    hidden = client.change_message_visibility_batch(
        QueueUrl=url, Entries=[{**one, "VisibilityTimeout": 60} for one in handles]
    )
    deleted = client.delete_message_batch(QueueUrl=url, Entries=handles)
    second = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    third = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    left = {"QueueUrl": url, "ReceiptHandle": second["Messages"][0]["ReceiptHandle"]}
    single = [
        client.send_message(QueueUrl=url, MessageBody="5", DelaySeconds=900),
        client.change_message_visibility(**left, VisibilityTimeout=0),
        client.delete_message(**left),
    ]
    assert single[0].pop("MessageId")
    for answer in (sent, first, hidden, deleted, second, third, *single):
        del answer["ResponseMetadata"]
    for one in (*sent["Successful"], *first["Messages"], *second["Messages"]):
        assert one.pop("MessageId")
        one.pop("ReceiptHandle", None)
    attributes = {"n": {"DataType": "String", "StringValue": "x"}}
    with_attributes = {"Id": "c", "MessageBody": "4", "MessageAttributes": attributes}
    client.send_message_batch(QueueUrl=url, Entries=[with_attributes])
    (fourth,) = client.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    try:
        client.send_message_batch(QueueUrl="https://sqs/none", Entries=entries)
    except ClientError as error:
        answers = [sent, first, hidden, deleted, second, third, *single]
        return [*answers, fourth["MessageAttributes"], str(error)]
    raise AssertionError("there is no such queue")


def test_messages_are_sent_and_received_as_in_moto(
    the_short_way: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Emulator(ManualClock()):
        short = messages_outcome()
    assert the_short_way.count(True) >= 9
    with moto_alone(monkeypatch):
        assert short == messages_outcome()


@each_case(("operation", "request_"), REQUESTS)
def test_answers_and_effects_are_those_of_moto(
    operation: str,
    request_: dict[str, Any],
    the_short_way: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    aws_guard: Any,
) -> None:
    with aws_guard.lowered():
        with Emulator(ManualClock()):
            short = outcome(operation, request_)
        assert any(the_short_way)
        with moto_alone(monkeypatch):
            assert short == outcome(operation, request_)
