"""Each rule of the guard is tested with a request that breaks it; and every request passes the
guard."""

from typing import Any

import boto3
import pytest

from local.aws.resources import Resources
from tests.support.aws_guard import AwsGuard
from tests.support.cases import each_case
from tests.support.refused import RefusedByAws

WHEEL = {
    "TableName": "wheel",
    "KeySchema": [
        {"AttributeName": "slot", "KeyType": "HASH"},
        {"AttributeName": "place", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "slot", "AttributeType": "S"},
        {"AttributeName": "place", "AttributeType": "S"},
        {"AttributeName": "biz_part", "AttributeType": "S"},
        {"AttributeName": "due_ms", "AttributeType": "N"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_business",
            "KeySchema": [
                {"AttributeName": "biz_part", "KeyType": "HASH"},
                {"AttributeName": "due_ms", "KeyType": "RANGE"},
            ],
        }
    ],
}
QUEUE = {"QueueUrl": "https://sqs.example/queue"}
MIB = 1024 * 1024


def key(place: str = "a", slot: str = "s") -> dict[str, Any]:
    return {"slot": {"S": slot}, "place": {"S": place}}


def of_wheel(**fields: Any) -> dict[str, Any]:
    return {"TableName": "wheel", **fields}


def put(**attributes: Any) -> dict[str, Any]:
    return of_wheel(Item={**key(), **attributes})


def update(text: str, names: Any = None, values: Any = None, **more: Any) -> dict[str, Any]:
    request = of_wheel(Key=key(), UpdateExpression=text, **more)
    if names is not None:
        request["ExpressionAttributeNames"] = names
    if values is not None:
        request["ExpressionAttributeValues"] = values
    return request


def query(condition: str, values: Any, **more: Any) -> dict[str, Any]:
    return of_wheel(KeyConditionExpression=condition, ExpressionAttributeValues=values, **more)


def writes(*items: dict[str, Any]) -> dict[str, Any]:
    return {"RequestItems": {"wheel": [{"PutRequest": {"Item": item}} for item in items]}}


def reads(*keys: dict[str, Any]) -> dict[str, Any]:
    return {"RequestItems": {"wheel": {"Keys": list(keys)}}}


def transaction(*items: dict[str, Any]) -> dict[str, Any]:
    return {"TransactItems": [{"Put": of_wheel(Item=item)} for item in items]}


def entries(*more: dict[str, Any]) -> dict[str, Any]:
    numbered = [{"Id": str(n), "MessageBody": "m", **one} for n, one in enumerate(more)]
    return {**QUEUE, "Entries": numbered}


SLOT = {":s": {"S": "s"}}
ONE = {":n": {"N": "1"}}
TEXT = {":v": {"S": "text"}}
EMPTY = {":v": {"S": ""}}


@pytest.fixture
def guard() -> AwsGuard:
    guard = AwsGuard()
    guard.check("dynamodb", "CreateTable", WHEEL)
    return guard


@each_case(
    ("operation", "request_", "why"),
    [
        ("BatchWriteItem", writes(*(key(str(n)) for n in range(26))), "26 parts"),
        ("BatchWriteItem", writes(), "0 parts"),
        ("BatchWriteItem", writes(key(), key("b"), key()), "same item twice"),
        ("BatchWriteItem", writes({**key(), "due_ms": {"S": "1"}}), "due_ms is declared N"),
        (
            "BatchWriteItem",
            {"RequestItems": {"wheel": [{"DeleteRequest": {"Key": {"slot": {"S": "s"}}}}]}},
            "the key is",
        ),
        ("BatchGetItem", reads(*(key(str(n)) for n in range(101))), "101 parts"),
        ("BatchGetItem", reads(key(), key()), "same item twice"),
        ("TransactWriteItems", transaction(*(key(str(n)) for n in range(101))), "101 parts"),
        ("TransactWriteItems", transaction(key(), key()), "same item twice"),
        (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": put()},
                    {"Update": update("SET v = :n", values={**ONE, ":v": {"S": ""}})},
                ]
            },
            "unused",
        ),
        (
            "TransactWriteItems",
            transaction(*({**key(str(n)), "v": {"S": "x" * 390_000}} for n in range(11))),
            "over 4 MB",
        ),
        ("PutItem", of_wheel(Item={"slot": {"S": "s"}}), "lacks its key"),
        ("PutItem", of_wheel(Item=key(slot="")), "slot is a key and is empty"),
        ("PutItem", of_wheel(Item=key(slot="s" * 2049)), "over 2048"),
        ("PutItem", of_wheel(Item=key("p" * 1025)), "over 1024"),
        ("PutItem", put(biz_part={"S": ""}), "biz_part is a key and is empty"),
        ("PutItem", put(biz_part={"N": "1"}), "biz_part is declared S"),
        ("PutItem", put(v={"S": "x" * 400 * 1024}), "over 400 KB"),
        ("PutItem", put(v={"L": [{"M": {"n": {"N": "1" * 39}}}]}), "more than 38 digits"),
        ("PutItem", put(v={"N": "one"}), "no number"),
        ("PutItem", put(v={"SS": []}), "a set is empty"),
        ("PutItem", put(v={"S": "a", "N": "1"}), "one type"),
        ("PutItem", {**put(), "ExpressionAttributeNames": {"#a": "a"}}, "unused"),
        ("PutItem", {**put(), "ConditionExpression": "attribute_exists(#a)"}, "not there"),
        ("PutItem", {**put(), "ConditionExpression": " "}, "empty"),
        ("GetItem", of_wheel(Key={"slot": {"S": "s"}}), "the key is"),
        ("GetItem", of_wheel(Key=key(slot="")), "empty"),
        ("GetItem", of_wheel(Key=key(), ProjectionExpression="place, status"), "reserved"),
        ("DeleteItem", of_wheel(Key={**key(), "v": {"N": "1"}}), "the key is"),
        ("UpdateItem", update("SET #a = :n", {"#a": "a", "#b": "b"}, ONE), "unused"),
        ("UpdateItem", update("SET #a = :n", {"#a": "a"}, {**ONE, ":m": {"N": "1"}}), "unused"),
        ("UpdateItem", update("SET #a = :n", None, ONE), "not there"),
        ("UpdateItem", update("SET a = :n, b = :m", None, ONE), "lacks used ones"),
        ("UpdateItem", update("REMOVE a", {}, None), "ExpressionAttributeNames is empty"),
        ("UpdateItem", update("SET status = :n", None, ONE), "reserved"),
        ("UpdateItem", update("SET #p = :v", {"#p": "place"}, TEXT), "part of the key"),
        ("UpdateItem", update("SET a = :n, due_ms = :v", None, {**ONE, **TEXT}), "declared N"),
        ("UpdateItem", update("SET #b = :v", {"#b": "biz_part"}, EMPTY), "is empty"),
        ("UpdateItem", update("SET a = :n REMOVE #a", {"#a": "a"}, ONE), "overlap"),
        ("UpdateItem", update("SET a = :n REMOVE b SET c = :n", None, ONE), "stands twice"),
        ("UpdateItem", update("SET a = :n", None, {":n": {"N": "9" * 39}}), "38 digits"),
        ("UpdateItem", update("SET a = :n" + ", a1 = :n" * 500, None, ONE), "over 4 KB"),
        ("Query", query("slot = :s", SLOT, Limit=0), "Limit"),
        ("Query", query("slot = :s", {":s": {"N": "1"}}), "declared S"),
        ("Query", query("slot > :s", SLOT), "names one slot"),
        ("Query", query("slot = :s AND v = :n", {**SLOT, **ONE}), "not part of"),
        ("Query", query("slot = :s", {**SLOT, **ONE}, FilterExpression="place = :n"), "filter"),
        ("Query", query("slot = :s", SLOT, ExclusiveStartKey=key() | ONE), "place to start"),
        ("Query", query("biz_part = :s", SLOT, IndexName="by_name"), "no index"),
        (
            "Query",
            query("biz_part = :s", SLOT, IndexName="by_business", ConsistentRead=True),
            "strong read",
        ),
        (
            "Query",
            query(
                "slot = :s AND place BETWEEN :b AND :a",
                {**SLOT, ":a": SLOT[":s"], ":b": {"S": "t"}},
            ),
            "wrong way round",
        ),
        (
            "Query",
            query("slot = :s AND begins_with(place, :n)", {**SLOT, **ONE}),
            "place is declared S",
        ),
        ("Scan", of_wheel(Limit=0), "Limit"),
    ],
)
def test_a_request_that_dynamodb_would_refuse_is_reported(
    guard: AwsGuard, operation: str, request_: dict[str, Any], why: str
) -> None:
    with pytest.raises(RefusedByAws, match=why):
        guard.check("dynamodb", operation, request_)
    assert len(guard.taken()) == 1


@each_case(
    ("operation", "request_", "why"),
    [
        ("SendMessageBatch", entries(*[{}] * 11), "11 entries"),
        ("SendMessageBatch", entries(), "0 entries"),
        ("SendMessageBatch", entries({"Id": "a"}, {"Id": "a"}), "Id twice"),
        ("SendMessageBatch", entries({"Id": "a.b"}), "Id like"),
        ("SendMessageBatch", entries({"Id": "a" * 81}), "Id like"),
        ("SendMessageBatch", entries({}, {"DelaySeconds": 901}), "DelaySeconds is 901"),
        ("SendMessageBatch", entries({"DelaySeconds": -1}), "DelaySeconds is -1"),
        ("SendMessageBatch", entries(*[{"MessageBody": "m" * (MIB // 2 + 1)}] * 2), "over 1 MiB"),
        ("SendMessageBatch", entries({}, {"MessageBody": ""}), "empty"),
        ("SendMessage", {**QUEUE, "MessageBody": "é" * (MIB // 2 + 1)}, "over 1 MiB"),
        ("SendMessage", {**QUEUE, "MessageBody": "\x00"}, "characters"),
        ("SendMessage", {**QUEUE, "MessageBody": "m", "DelaySeconds": 901}, "DelaySeconds"),
        (
            "ChangeMessageVisibility",
            {**QUEUE, "ReceiptHandle": "r", "VisibilityTimeout": 43_201},
            "VisibilityTimeout",
        ),
        (
            "ChangeMessageVisibility",
            {**QUEUE, "ReceiptHandle": "", "VisibilityTimeout": 1},
            "receipt handle",
        ),
        ("DeleteMessage", {**QUEUE, "ReceiptHandle": ""}, "receipt handle"),
        (
            "DeleteMessageBatch",
            {**QUEUE, "Entries": [{"Id": "a", "ReceiptHandle": ""}]},
            "receipt handle",
        ),
        ("ReceiveMessage", {**QUEUE, "MaxNumberOfMessages": 11}, "MaxNumberOfMessages"),
        ("ReceiveMessage", {**QUEUE, "WaitTimeSeconds": 21}, "WaitTimeSeconds"),
    ],
)
def test_a_request_that_sqs_would_refuse_is_reported(
    guard: AwsGuard, operation: str, request_: dict[str, Any], why: str
) -> None:
    with pytest.raises(RefusedByAws, match=why):
        guard.check("sqs", operation, request_)


FIFO = {"QueueUrl": "https://sqs.example/queue.fifo", "MessageBody": "m"}
TOPIC = {"TopicArn": "arn:aws:sns:us-east-1:123456789012:topic"}
EVENT = {"Source": "shop", "DetailType": "due", "Detail": "{}"}


def attributes(**values: str) -> dict[str, Any]:
    members = {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}
    return {"MessageAttributes": members}


@each_case(
    ("service", "operation", "request_", "why"),
    [
        ("sqs", "SendMessage", {**FIFO, "MessageGroupId": "g"}, "MessageDeduplicationId"),
        ("sqs", "SendMessage", {**QUEUE, "MessageBody": "m", "MessageGroupId": "g"}, "FIFO alone"),
        ("sqs", "SendMessage", {**QUEUE, "MessageBody": "m", **attributes(a="")}, "is empty"),
        (
            "sqs",
            "SendMessage",
            {**QUEUE, "MessageBody": "m", **attributes(**{"Aws.a": "1"})},
            "is named",
        ),
        (
            "sqs",
            "SendMessage",
            {**QUEUE, "MessageBody": "m", **attributes(**{f"a{n}": "1" for n in range(11)})},
            "over ten",
        ),
        ("sns", "Publish", {**TOPIC, "Message": ""}, "empty"),
        ("sns", "Publish", {**TOPIC, "Message": "\x00"}, "characters"),
        ("sns", "Publish", {**TOPIC, "Message": "m" * (MIB // 4 + 1)}, "over 256 KiB"),
        ("sns", "Publish", {**TOPIC, "Message": "m", "MessageGroupId": "g"}, "FIFO alone"),
        ("events", "PutEvents", {"Entries": [EVENT] * 11}, "11 entries"),
        ("events", "PutEvents", {"Entries": [{**EVENT, "Detail": "[]"}]}, "no object"),
        ("events", "PutEvents", {"Entries": [{**EVENT, "Source": "aws.s"}]}, "aws"),
        ("events", "PutEvents", {"Entries": [{**EVENT, "DetailType": ""}]}, "no DetailType"),
        (
            "events",
            "PutEvents",
            {"Entries": [{**EVENT, "Detail": '{"a": "' + "m" * MIB + '"}'}]},
            "over 1 MiB",
        ),
    ],
)
def test_a_message_that_aws_would_refuse_is_reported(
    guard: AwsGuard, service: str, operation: str, request_: dict[str, Any], why: str
) -> None:
    with pytest.raises(RefusedByAws, match=why):
        guard.check(service, operation, request_)


def test_an_event_of_lambda_over_a_mebibyte_is_reported(guard: AwsGuard) -> None:
    event = {"FunctionName": "f", "InvocationType": "Event", "Payload": b"x" * (MIB + 1)}
    with pytest.raises(RefusedByAws, match="payload"):
        guard.check("lambda", "Invoke", event)
    guard.check("lambda", "Invoke", {**event, "InvocationType": "RequestResponse"})


@each_case(
    ("service", "operation", "request_"),
    [
        ("dynamodb", "BatchWriteItem", writes(*(key(str(n)) for n in range(25)))),
        ("dynamodb", "BatchGetItem", reads(*(key(str(n)) for n in range(100)))),
        ("dynamodb", "TransactWriteItems", transaction(*(key(str(n)) for n in range(100)))),
        ("dynamodb", "PutItem", put(v={"S": ""}, n={"N": "-" + "9" * 38}, due_ms={"N": "1"})),
        (
            "dynamodb",
            "UpdateItem",
            update(
                "SET #s = if_not_exists(#s, :n), due_ms = :n, l = list_append(l, :n) "
                "REMOVE b, biz_part ADD c :n",
                {"#s": "status"},
                ONE,
                ConditionExpression="attribute_not_exists(a) OR size(a) < :n",
            ),
        ),
        (
            "dynamodb",
            "Query",
            query("slot = :s AND place BETWEEN :s AND :s", SLOT, Limit=1, ExclusiveStartKey=key()),
        ),
        (
            "dynamodb",
            "Query",
            query(
                "biz_part = :s AND due_ms >= :n",
                {**SLOT, **ONE},
                IndexName="by_business",
                ExclusiveStartKey={**key(), "biz_part": {"S": "b"}, "due_ms": {"N": "1"}},
            ),
        ),
        ("dynamodb", "GetItem", {"TableName": "another", "Key": {"id": {"S": "a"}}}),
        ("sqs", "SendMessageBatch", entries(*[{"DelaySeconds": 900}] * 10)),
        ("sqs", "SendMessage", {**QUEUE, "MessageBody": "m" * MIB}),
        (
            "sqs",
            "SendMessage",
            {**FIFO, "MessageGroupId": "g", "MessageDeduplicationId": "d", **attributes(a="é")},
        ),
        ("sns", "Publish", {**TOPIC, "Message": "m", **attributes(a="1")}),
        ("events", "PutEvents", {"Entries": [EVENT] * 10}),
        (
            "sqs",
            "ChangeMessageVisibility",
            {**QUEUE, "ReceiptHandle": "r", "VisibilityTimeout": 43_200},
        ),
    ],
)
def test_a_request_that_aws_carries_out_passes(
    guard: AwsGuard, service: str, operation: str, request_: dict[str, Any]
) -> None:
    guard.check(service, operation, request_)
    assert guard.taken() == []


def test_every_client_passes_the_guard(resources: Resources, aws_guard: AwsGuard) -> None:
    client = boto3.client("dynamodb")
    table = resources.table_name("Wheel")
    with pytest.raises(RefusedByAws, match="due_ms is declared N"):
        client.put_item(TableName=table, Item={**key(), "due_ms": {"S": "soon"}})
    (refused,) = aws_guard.taken()
    assert refused.startswith("AWS refuses this PutItem")
