"""The fast projection to whole attributes gives the same items as moto."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.patches.projections import projections_of_whole_attributes
from tests.local.aws.test_attribute_values import VALUES
from tests.support.cases import each_case

NAMES = {"#text": "text", "#list": "list", "#map": "map", "#none": "none", "#h": "h", "#yes": "yes"}
ITEMS = [
    {"h": {"S": "a"}, "r": {"S": "1"}, "parts": VALUES["list"], **VALUES},
    {"h": {"S": "a"}, "r": {"S": "2"}, "text": {"S": "alone"}},
    {"h": {"S": "a"}, "r": {"S": "3"}},
]


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
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in "hr"],
            BillingMode="PAY_PER_REQUEST",
        )
        for item in ITEMS:
            client.put_item(TableName="t", Item=item)
        yield client


@each_case(
    "wanted",
    [
        ["#text"],
        ["#h", "#text", "#list", "#map"],
        ["#yes", "#none"],
        ["#none"],
        ["parts[1]", "#text"],
        ["#map.N", "#h"],
        ["#map.#none"],
    ],
)
def test_projections_give_the_answers_of_the_unpatched_projection(
    client: Any, wanted: list[str]
) -> None:
    request = {
        "TableName": "t",
        "KeyConditionExpression": "h = :h",
        "ExpressionAttributeValues": {":h": {"S": "a"}},
        "ProjectionExpression": ", ".join(wanted),
        "ExpressionAttributeNames": {n: NAMES[n] for n in NAMES if any(n in w for w in wanted)},
    }
    expected = client.query(**request)["Items"]
    with projections_of_whole_attributes():
        assert client.query(**request)["Items"] == expected
    if "#text" in wanted:
        assert [item["text"]["S"] for item in expected if "text" in item] == ["one", "alone"]
