"""The fast encoder of attribute values gives the same results as moto."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.patches.attribute_values import values_of_one_type

VALUES: dict[str, Any] = {
    "text": {"S": "one"},
    "no_text": {"S": ""},
    "number": {"N": "1.50"},
    "bytes": {"B": b"\x00\xff"},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2"]},
    "many_bytes": {"BS": [b"a", b"b"]},
    "yes": {"BOOL": True},
    "no": {"BOOL": False},
    "nothing": {"NULL": True},
    "list": {"L": [{"S": "a"}, {"N": "1"}, {"L": []}, {"M": {"S": {"S": "S"}}}]},
    "map": {"M": {"N": {"N": "1"}, "L": {"L": [{"B": b"x"}]}, "empty": {"M": {}}}},
}


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("dynamodb")
        client.create_table(
            TableName="t",
            KeySchema=[{"AttributeName": "h", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "h", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        for name, value in VALUES.items():
            client.put_item(TableName="t", Item={"h": {"S": name}, name: value})
        client.put_item(TableName="t", Item={"h": {"S": "all"}, "u": {"S": "u"}, **VALUES})
        yield client


def answers(client: Any) -> list[Any]:
    update = {"UpdateExpression": "SET u = :u", "ExpressionAttributeValues": {":u": {"S": "u"}}}
    found = [
        client.get_item(TableName="t", Key={"h": {"S": "all"}})["Item"],
        client.get_item(TableName="t", Key={"h": {"S": "nowhere"}}).get("Item"),
        client.scan(TableName="t", Limit=5)["LastEvaluatedKey"],
        client.scan(TableName="t")["Items"],
        client.update_item(
            TableName="t", Key={"h": {"S": "all"}}, ReturnValues="ALL_NEW", **update
        )["Attributes"],
    ]
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as refused:
        client.put_item(
            TableName="t",
            Item={"h": {"S": "all"}},
            ConditionExpression="attribute_not_exists(h)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    return [*found, refused.value.response["Item"]]


def test_values_are_encoded_as_without_the_patch(client: Any) -> None:
    expected = answers(client)
    with values_of_one_type():
        assert answers(client) == expected
    assert expected[0] == {"h": {"S": "all"}, "u": {"S": "u"}, **VALUES}
