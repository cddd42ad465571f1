"""Cached update expressions have the same results as expressions that moto parses each time."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.patches.update_expressions import update_expressions_read_once
from tests.support.aws_guard import AwsGuard
from tests.support.bounds import quick_first

NAMES = {
    "#n": "n",
    "#t": "text",
    "#m": "map",
    "#l": "list",
    "#h": "h",
    "#s": "texts",
    "#none": "none",
}
VALUES: dict[str, Any] = {
    ":one": {"N": "1"},
    ":text": {"S": "new"},
    ":list": {"L": [{"S": "x"}, {"N": "2"}]},
    ":texts": {"SS": ["b", "c"]},
    ":empty": {"S": ""},
}
EXPRESSIONS = [
    "SET #n = :one",
    "SET #n = :text, #t = :list REMOVE #m, #none",
    "SET #t = :empty",
    "SET #n = #n + :one, #t = :text REMOVE #m, #l[0]",
    "SET #n = if_not_exists(#n, :one) - :one",
    "SET #n = if_not_exists(#n, :one) + :one, #t = :text",
    "SET #none = if_not_exists(#none, :one) + :one, #n = if_not_exists(#none, :one) + :one",
    "SET #n = if_not_exists(#t, :one) + :one",
    "SET #n = if_not_exists(#none, :text) + :one",
    "SET #n = if_not_exists(#n, :one) + :text",
    "SET #n = if_not_exists(#missing, :one) + :one",
    "SET #m.inner = :text, #l[1] = :one",
    "SET #l = list_append(#l, :list)",
    "SET #t = #n REMOVE #n",
    "ADD #n :one, #s :texts",
    "DELETE #s :texts SET #t = :text",
    "REMOVE #l[0], #l[1], #m.#n",
    # Refused updates
    "SET #h = :text",
    "SET #n = :one, #n = :one",
    "SET #n = :one REMOVE #n",
    "SET #h = :empty",
    "SET #t = :one, #missing = :text",
    "SET #m = :text, #m.inner = :one",
    "SET #n = #t + :one",
    "SET #t = missing_name",
    "SET #t = :missing",
    "SET #missing = :one",
    "SET #n = :one SET #t = :text",
    "SET map.nowhere.deep = :one",
    "ADD #t :one",
    "SET #n = = :one",
    "",
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("dynamodb", "us-east-1")
        for table in ("patched", "unpatched"):
            client.create_table(
                TableName=table,
                KeySchema=[{"AttributeName": "h", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "h", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
        yield client


@pytest.fixture(autouse=True)
def _without_the_guard(aws_guard: AwsGuard) -> Iterator[None]:
    """The test compares moto with itself."""
    with aws_guard.lowered():
        yield


def outcomes(client: Any, table: str, expression: str) -> Iterator[Any]:
    """The outcomes of updates of a missing item, of an existing one, and of the same one again."""
    client.delete_item(TableName=table, Key={"h": {"S": "not there"}})
    client.put_item(
        TableName=table,
        Item={
            "h": {"S": "there"},
            "n": {"N": "5"},
            "text": {"S": "old"},
            "texts": {"SS": ["a", "b"]},
            "list": {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]},
            "map": {"M": {"inner": {"S": "old"}, "n": {"N": "1"}}},
        },
    )
    for key in ("not there", "there", "there"):
        try:
            yield client.update_item(
                TableName=table,
                Key={"h": {"S": key}},
                UpdateExpression=expression,
                ExpressionAttributeNames={n: v for n, v in NAMES.items() if n in expression},
                ExpressionAttributeValues={n: v for n, v in VALUES.items() if n in expression},
                ReturnValues="ALL_NEW",
            )["Attributes"]
        except ClientError as error:
            yield str(error)
        except Exception as error:  # noqa: BLE001 - where moto itself fails, it shall fail alike
            yield type(error)
        yield sorted(client.scan(TableName=table)["Items"], key=lambda item: item["h"]["S"])


@pytest.mark.parametrize("expression", quick_first(EXPRESSIONS, pytest.mark.exhaustive, 8))
def test_updates_have_the_outcomes_of_the_unpatched_ones(client: Any, expression: str) -> None:
    ended = {}
    for table, mode in (
        ("unpatched", nullcontext()),
        ("patched", update_expressions_read_once()),
    ):
        with mode:
            ended[table] = list(outcomes(client, table, expression))
    assert ended["patched"] == ended["unpatched"]
    assert len(ended["patched"]) == 6
