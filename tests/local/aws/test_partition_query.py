"""A query that reads one partition gives the same answer as moto's scan of the whole table."""

from collections.abc import Iterator
from random import Random
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.patches.partition_query import query_within_its_partition
from tests.support.bounds import quick_first

SEED = 20_261


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("dynamodb")
        client.create_table(
            TableName="t",
            KeySchema=[
                {"AttributeName": "h", "KeyType": "HASH"},
                {"AttributeName": "r", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "h", "AttributeType": "S"},
                {"AttributeName": "r", "AttributeType": "S"},
                {"AttributeName": "g", "AttributeType": "S"},
                {"AttributeName": "n", "AttributeType": "N"},
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "by_g",
                    "KeySchema": [
                        {"AttributeName": "g", "KeyType": "HASH"},
                        {"AttributeName": "n", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


def fill(client: Any, random: Random) -> None:
    for _ in range(90):
        item = {
            "h": {"S": f"h{random.randrange(6)}"},
            "r": {"S": f"{random.randrange(60):03d}"},
            "n": {"N": str(random.randrange(5))},
        }
        if random.random() < 0.8:
            item["g"] = {"S": f"g{random.randrange(3)}"}
        client.put_item(TableName="t", Item=item)


def random_query(random: Random) -> dict[str, Any]:
    query = random_index_query(random) if random.random() < 0.3 else random_table_query(random)
    query["ScanIndexForward"] = random.random() < 0.7
    if random.random() < 0.5:
        query["Limit"] = random.randrange(1, 8)
    return query


def random_index_query(random: Random) -> dict[str, Any]:
    group, least = {"S": f"g{random.randrange(4)}"}, {"N": str(random.randrange(3))}
    query: dict[str, Any] = {
        "IndexName": "by_g",
        "KeyConditionExpression": "g = :g AND n >= :n",
        "ExpressionAttributeValues": {":g": group, ":n": least},
    }
    if random.random() < 0.3:
        place = {"h": {"S": f"h{random.randrange(8)}"}, "r": {"S": f"{random.randrange(60):03d}"}}
        query["ExclusiveStartKey"] = {**place, "g": group, "n": least}
    return query


def random_table_query(random: Random) -> dict[str, Any]:
    low, high = sorted(f"{random.randrange(60):03d}" for _ in range(2))
    partition = {"S": f"h{random.randrange(8)}"}
    query: dict[str, Any] = {
        "KeyConditionExpression": "h = :h AND r BETWEEN :low AND :high",
        "ExpressionAttributeValues": {
            ":h": partition,
            ":low": {"S": low},
            ":high": {"S": high},
        },
        "ConsistentRead": random.random() < 0.5,
    }
    if random.random() < 0.6:
        other = random.choice(
            ["begins_with(r, :low)", "r = :low", "r >= :low", "r > :low", "r < :low"]
        )
        query["KeyConditionExpression"] = f"h = :h AND {other}"
        query["ExpressionAttributeValues"] = {
            ":h": partition,
            ":low": {"S": low[:2] if "begins" in other else low},
        }
    if random.random() < 0.3:
        query["ExclusiveStartKey"] = {"h": partition, "r": {"S": low}}
    if random.random() < 0.3:
        query["FilterExpression"] = "n > :n"
        query["ExpressionAttributeValues"][":n"] = {"N": "2"}
    return query


def answer(client: Any, query: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in client.query(TableName="t", **query).items()
        if name != "ResponseMetadata"
    }


@pytest.mark.parametrize("queries", quick_first([40, 250], pytest.mark.exhaustive))
def test_queries_give_the_answers_of_the_unpatched_query(client: Any, queries: int) -> None:
    random = Random(SEED)
    fill(client, random)
    for _ in range(queries):
        query = random_query(random)
        expected = answer(client, query)
        with query_within_its_partition():
            assert answer(client, query) == expected


def test_a_query_does_not_create_a_partition(client: Any) -> None:
    query = {
        "KeyConditionExpression": "h = :h",
        "ExpressionAttributeValues": {":h": {"S": "nowhere"}},
    }
    with query_within_its_partition():
        assert answer(client, query)["Items"] == []
    assert client.describe_table(TableName="t")["Table"]["ItemCount"] == 0
