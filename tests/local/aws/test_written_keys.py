"""Which partitions requests have written."""

import json
from typing import Any

import boto3

from local.aws.emulator import Emulator
from local.aws.written_keys import WrittenKeys
from local.control.clock import MovableClock
from tests.support.cases import each_case


def key(slot: str) -> dict[str, Any]:
    return {"slot": {"S": slot}, "place": {"S": "p"}}


HERE: dict[str, Any] = {"TableName": "written"}


@each_case(
    ("operation", "request", "found"),
    [
        ("PutItem", {**HERE, "Item": key("1")}, {"1"}),
        ("UpdateItem", {**HERE, "Key": key("1")}, {"1"}),
        ("DeleteItem", {**HERE, "Key": key("1")}, {"1"}),
        ("DeleteItem", {"TableName": "arn:aws:dynamodb:r:1:table/written", "Key": key("1")}, {"1"}),
        ("PutItem", {"TableName": "registry", "Item": {"id": {"S": "1"}}}, set()),
        ("GetItem", {**HERE, "Key": key("1")}, set()),
        (
            "BatchWriteItem",
            {
                "RequestItems": {
                    "written": [
                        {"PutRequest": {"Item": key("1")}},
                        {"DeleteRequest": {"Key": key("2")}},
                    ],
                    "registry": [{"PutRequest": {"Item": {"id": {"S": "3"}}}}],
                }
            },
            {"1", "2"},
        ),
        (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": {**HERE, "Item": key("1")}},
                    {"Update": {**HERE, "Key": key("2")}},
                    {"Delete": {**HERE, "Key": key("3")}},
                    {"ConditionCheck": {**HERE, "Key": key("4")}},
                    {"Put": {"TableName": "registry", "Item": {"id": {"S": "5"}}}},
                ]
            },
            {"1", "2", "3"},
        ),
    ],
)
def test_the_partitions_of_a_write_are_noted(
    operation: str, request: dict[str, Any], found: set[str]
) -> None:
    keys = WrittenKeys("written", "slot")
    keys.note(operation, json.dumps(request).encode())
    assert keys.take() == found
    assert keys.take() == set()


def test_the_emulator_answers_what_was_written_since_it_was_last_asked() -> None:
    with Emulator(MovableClock(1_800_000_000_000, frozen=True)) as emulator:
        dynamodb = boto3.client("dynamodb")
        dynamodb.create_table(
            TableName="written",
            KeySchema=[
                {"AttributeName": "slot", "KeyType": "HASH"},
                {"AttributeName": "place", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("slot", "place")
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        dynamodb.update_time_to_live(
            TableName="written",
            TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"},
        )
        for slot in ("1", "2"):
            dynamodb.put_item(TableName="written", Item=key(slot))

        def written() -> dict[str, list[dict[str, Any]]]:
            return emulator.written_partitions("written", ("slot", "n"))

        assert written() == {"1": [{"slot": {"S": "1"}}], "2": [{"slot": {"S": "2"}}]}
        assert written() == {}
        dynamodb.update_item(
            TableName="written",
            Key=key("2"),
            UpdateExpression="SET n = :n, expires_at = :e",
            ExpressionAttributeValues={":n": {"N": "7"}, ":e": {"N": "1799999999"}},
        )
        assert written() == {"2": [{"slot": {"S": "2"}, "n": {"N": "7"}}]}
        emulator.delete_expired()
        dynamodb.delete_item(TableName="written", Key=key("1"))
        assert written() == {"1": [], "2": []}
