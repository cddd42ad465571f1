"""A transaction that is rolled back item by item gives the same table as a rollback by a copy."""

from collections.abc import Iterator
from contextlib import nullcontext
from random import Random
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.patches.touched_items import transactions_within_their_items
from tests.support.aws_guard import AwsGuard
from tests.support.bounds import quick_first

SEED = 20_262
TABLES = ("patched", "unpatched")


KEY_TYPES = {"h": "HASH", "r": "RANGE"}


@pytest.fixture
def client(aws_guard: AwsGuard) -> Iterator[Any]:
    """Without the guard, since the test compares moto with itself, also for requests that AWS
    refuses."""
    with mock_aws(), aws_guard.lowered():
        yield boto3.client("dynamodb")


def create_tables(client: Any, names: str) -> None:
    for table in TABLES:
        client.create_table(
            TableName=table,
            KeySchema=[{"AttributeName": n, "KeyType": KEY_TYPES[n]} for n in names],
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in names],
            BillingMode="PAY_PER_REQUEST",
        )


def random_action(random: Random, names: str) -> dict[str, Any]:
    key = {name: {"S": f"{name}{random.randrange(4)}"} for name in names}
    condition: dict[str, Any] = random.choice(
        [
            {},
            {"ConditionExpression": "attribute_exists(h)"},
            {"ConditionExpression": "attribute_not_exists(h)"},
        ]
    )
    match random.randrange(4):
        case 0:
            return {"Put": {"Item": {**key, "n": {"N": str(random.randrange(9))}}, **condition}}
        case 1:
            return {"Delete": {"Key": key, **condition}}
        case 2:
            exists = {"ConditionExpression": "attribute_exists(h)"}
            return {"ConditionCheck": {"Key": key, **(condition or exists)}}
        case _:
            update = {
                "UpdateExpression": "SET n = :n",
                "ExpressionAttributeValues": {":n": {"N": str(random.randrange(9))}},
            }
            return {"Update": {"Key": key, **update, **condition}}


def outcome(client: Any, table: str, actions: list[dict[str, Any]]) -> Any:
    """The answer to the caller, and the items of the table after it."""
    answers: Any = None
    try:
        client.transact_write_items(
            TransactItems=[
                {name: {"TableName": table, **action[name]} for name in action}
                for action in actions
            ]
        )
    except ClientError as error:
        answers = error.response["Error"]["Code"], error.response.get("CancellationReasons")
    items = client.scan(TableName=table)["Items"]
    return answers, sorted(items, key=str)


@pytest.mark.parametrize(
    ("names", "transactions"),
    quick_first([("hr", 15), ("hr", 100), ("h", 100)], pytest.mark.exhaustive),
)
def test_transactions_have_the_outcomes_of_the_unpatched_ones(
    client: Any, names: str, transactions: int
) -> None:
    create_tables(client, names)
    random = Random(SEED)
    answers = []
    for _ in range(transactions):
        actions = [random_action(random, names) for _ in range(random.randrange(1, 4))]
        outcomes = []
        for table in TABLES:
            patched = table == "patched"
            with transactions_within_their_items() if patched else nullcontext():
                outcomes.append(outcome(client, table, actions))
        assert outcomes[0] == outcomes[1], actions
        answers.append(outcomes[0][0])
    assert any(reasons is None for reasons in answers)
    assert {"TransactionCanceledException", "ValidationException"} <= {t[0] for t in answers if t}


def test_a_transaction_on_an_unknown_table_is_refused(client: Any) -> None:
    put = {"Put": {"TableName": "nowhere", "Item": {"h": {"S": "h"}, "r": {"S": "r"}}}}
    codes = []
    for patched in (True, False):
        with (
            transactions_within_their_items() if patched else nullcontext(),
            pytest.raises(ClientError) as refused,
        ):
            client.transact_write_items(TransactItems=[put])
        codes.append(refused.value.response["Error"])
    assert codes[0] == codes[1]
