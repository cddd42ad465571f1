"""A call without an HTTP request behaves like any other call of the SDK."""

from collections.abc import Iterator
from random import Random
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError, ReadTimeoutError
from moto.dynamodb.exceptions import DynamodbException
from moto.dynamodb.responses import DynamoHandler

from local.aws.emulator import Emulator
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from tests.support.clock import ManualClock

ITEM = {"h": {"S": "a"}}
CODE = "ProvisionedThroughputExceededException"


@pytest.fixture
def client() -> Iterator[Any]:
    with Emulator(ManualClock()):
        config = Config(retries={"mode": "standard", "total_max_attempts": 3})
        client = boto3.client("dynamodb", config=config)
        client.create_table(
            TableName="t",
            KeySchema=[{"AttributeName": "h", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "h", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


@pytest.fixture
def tries(client: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tries that reach the table, which refuses the first two."""
    operations: list[str] = []
    any_put = DynamoHandler.put_item

    def put_item(handler: Any) -> Any:
        operations.append("put_item")
        if len(operations) <= 2:
            raise DynamodbException(CODE, "too many at once")
        return any_put(handler)

    monkeypatch.setattr(DynamoHandler, "put_item", put_item)
    return operations


def test_events_of_the_sdk_are_emitted_before_and_after_a_call(client: Any) -> None:
    emitted: list[str] = []
    client.meta.events.register(
        "before-call.dynamodb.*", lambda model, **_: emitted.append(model.name)
    )
    client.meta.events.register(
        "after-call.*.*",
        lambda http_response, parsed, **_: emitted.append(f"{http_response.status_code} {parsed}"),
    )
    client.get_item(TableName="t", Key=ITEM)
    assert emitted[0] == "GetItem"
    assert emitted[1].startswith("200 {'ResponseMetadata'")


def test_an_answer_has_the_time_of_the_clock(client: Any) -> None:
    dates: list[str] = []
    client.meta.events.register(
        "after-call.*.*", lambda http_response, **_: dates.append(http_response.headers["date"])
    )
    client.get_item(TableName="t", Key=ITEM)
    assert dates == ["Fri, 15 Jan 2027 08:00:00 GMT"]


def test_a_refused_call_is_retried_by_the_configuration_of_the_client(
    client: Any, tries: list[str]
) -> None:
    answer = client.put_item(TableName="t", Item=ITEM)
    assert len(tries) == 3
    assert answer["ResponseMetadata"]["RetryAttempts"] == 2


def test_after_the_last_try_the_refusal_is_raised(client: Any, tries: list[str]) -> None:
    single = boto3.client(
        "dynamodb", config=Config(retries={"mode": "standard", "total_max_attempts": 1})
    )
    with pytest.raises(ClientError) as refused:
        single.put_item(TableName="t", Item=ITEM)
    assert refused.value.response["Error"] == {"Code": CODE, "Message": "too many at once"}
    assert len(tries) == 1


def test_a_call_with_lost_answers_is_retried_and_raises_after_the_last_try(client: Any) -> None:
    """The table carries out each try."""
    operations: list[str] = []

    def lose(request: Any, handle: Handle) -> Reply | None:
        operations.append(operation_of(request))
        return do(Fault.LOST_AFTER, request, handle, Random(1))

    with answered_by(lose), pytest.raises(ReadTimeoutError):
        client.put_item(TableName="t", Item=ITEM)
    assert operations == ["PutItem"] * 3
    assert client.get_item(TableName="t", Key=ITEM)["Item"] == ITEM


def test_a_call_that_breaks_the_service_model_is_refused_before_it_is_made(
    client: Any, aws_guard: Any
) -> None:
    with aws_guard.lowered():
        for value, says in (
            ("a", r"type for parameter Item\.n"),
            ({"N": 7}, r"Item\.n\.N, value: 7"),
        ):
            with pytest.raises(ParamValidationError, match=says):
                client.put_item(TableName="t", Item={**ITEM, "n": value})


def test_bytes_are_returned_as_bytes(client: Any) -> None:
    item = {**ITEM, "b": {"B": b"\x00\xff"}, "all": {"BS": [b"a", b"b"]}}
    client.put_item(TableName="t", Item=item)
    assert client.get_item(TableName="t", Key=ITEM)["Item"] == item
