"""A call that makes no HTTP request is, for who makes it, a call of the SDK like any other."""

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
    """Those that the table gets, of which it refuses the first two."""
    heard: list[str] = []
    any_put = DynamoHandler.put_item

    def put_item(handler: Any) -> Any:
        heard.append("put_item")
        if len(heard) <= 2:
            raise DynamodbException(CODE, "too many at once")
        return any_put(handler)

    monkeypatch.setattr(DynamoHandler, "put_item", put_item)
    return heard


def test_events_come_before_and_after_it(client: Any) -> None:
    told: list[str] = []
    client.meta.events.register(
        "before-call.dynamodb.*", lambda model, **_: told.append(model.name)
    )
    client.meta.events.register(
        "after-call.*.*",
        lambda http_response, parsed, **_: told.append(f"{http_response.status_code} {parsed}"),
    )
    client.get_item(TableName="t", Key=ITEM)
    assert told[0] == "GetItem"
    assert told[1].startswith("200 {'ResponseMetadata'")


def test_the_clock_is_told_in_an_answer(client: Any) -> None:
    dates: list[str] = []
    client.meta.events.register(
        "after-call.*.*", lambda http_response, **_: dates.append(http_response.headers["date"])
    )
    client.get_item(TableName="t", Key=ITEM)
    assert dates == ["Fri, 15 Jan 2027 08:00:00 GMT"]


def test_a_refusal_is_tried_again_as_the_client_is_set_to(client: Any, tries: list[str]) -> None:
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


def test_a_call_whose_answer_is_lost_is_tried_again_and_raises_at_last(client: Any) -> None:
    """Carried out each time, as far as its table is concerned."""
    heard: list[str] = []

    def lose(request: Any, handle: Handle) -> Reply | None:
        heard.append(operation_of(request))
        return do(Fault.LOST_AFTER, request, handle, Random(1))

    with answered_by(lose), pytest.raises(ReadTimeoutError):
        client.put_item(TableName="t", Item=ITEM)
    assert heard == ["PutItem"] * 3
    assert client.get_item(TableName="t", Key=ITEM)["Item"] == ITEM


def test_what_its_model_does_not_allow_is_refused_before_it_is_made(
    client: Any, aws_guard: Any
) -> None:
    with aws_guard.lowered():
        for value, says in (
            ("a", r"type for parameter Item\.n"),
            ({"N": 7}, r"Item\.n\.N, value: 7"),
        ):
            with pytest.raises(ParamValidationError, match=says):
                client.put_item(TableName="t", Item={**ITEM, "n": value})


def test_bytes_come_back_as_bytes(client: Any) -> None:
    item = {**ITEM, "b": {"B": b"\x00\xff"}, "all": {"BS": [b"a", b"b"]}}
    client.put_item(TableName="t", Item=item)
    assert client.get_item(TableName="t", Key=ITEM)["Item"] == item
