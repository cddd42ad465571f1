"""The emulated BatchGetItem returns at most 1 MB of a partition and 16 MB in all."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import boto3
import pytest

from local.aws.emulator import Emulator
from local.aws.patches.item_sizes import size_of
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from local.chaos.partial_reads import ANSWER_BYTES_MAX, PARTITION_BYTES_MAX
from local.control.clock import MovableClock

KB = 1024
LARGE = 390 * KB  # just below the limit of moto


@pytest.fixture
def client() -> Iterator[Any]:
    with Emulator(MovableClock(1_800_000_000_000, frozen=True)):
        client = boto3.client("dynamodb")
        types = {"h": "HASH", "r": "RANGE"}
        client.create_table(
            TableName="t",
            KeySchema=[{"AttributeName": n, "KeyType": kind} for n, kind in types.items()],
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in types],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


def stored(client: Any, partitions: int, each: int, size: int) -> list[dict[str, Any]]:
    keys = [
        {"h": {"S": f"h{p:03}"}, "r": {"S": f"r{n:03}"}}
        for n in range(each)
        for p in range(partitions)
    ]
    for key in keys:
        text = {"S": "x" * (size - size_of({**key, "text": {"S": ""}}))}
        client.put_item(TableName="t", Item={**key, "text": text})
    return keys


def asked(client: Any, keys: list[Any]) -> tuple[list[Any], list[Any]]:
    """The returned items, and the unprocessed keys."""
    answer = client.batch_get_item(RequestItems={"t": {"Keys": keys, "ConsistentRead": True}})
    left = answer["UnprocessedKeys"]
    assert not left or left["t"]["ConsistentRead"] is True
    return answer["Responses"]["t"], left["t"]["Keys"] if left else []


def test_a_partition_returns_at_most_a_megabyte(client: Any) -> None:
    keys = stored(client, partitions=1, each=20, size=64 * KB)
    brought, left = asked(client, keys)
    assert sum(map(size_of, brought)) == PARTITION_BYTES_MAX
    assert len(brought) == 16
    assert left == keys[16:]


@pytest.mark.exhaustive
def test_partitions_are_limited_each_and_together(client: Any) -> None:
    keys = stored(client, partitions=25, each=3, size=LARGE)
    brought, left = asked(client, keys)
    of_partitions = Counter(item["h"]["S"] for item in brought)
    assert max(of_partitions.values()) == 2
    assert ANSWER_BYTES_MAX / 2 < sum(map(size_of, brought)) <= ANSWER_BYTES_MAX
    assert len(brought) + len(left) == len(keys)


def test_the_first_item_is_returned_at_any_size(client: Any) -> None:
    keys = stored(client, partitions=1, each=3, size=LARGE)
    assert len(asked(client, keys[2:])[0]) == 1


def test_a_small_batch_with_missing_items_is_complete(client: Any) -> None:
    keys = stored(client, partitions=1, each=15, size=64 * KB)
    brought, left = asked(client, [*keys, {"h": {"S": "h"}, "r": {"S": "none"}}])
    assert (len(brought), left) == (15, [])


def test_repeated_requests_for_unprocessed_keys_return_all_items(client: Any) -> None:
    keys = left = stored(client, partitions=2, each=30, size=100 * KB)
    found = []
    while left:
        brought, left = asked(client, left)
        assert brought
        found += brought
    assert len(found) == len(keys)


def test_unprocessed_keys_are_kept_under_an_injected_fault(client: Any) -> None:
    keys = stored(client, partitions=1, each=40, size=64 * KB)

    def in_part(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request) != "BatchGetItem":
            return handle(request)
        return do(Fault.PARTIAL, request, handle, Random(3))

    with answered_by(in_part):
        brought, left = asked(client, keys)
    assert len(brought) <= 16
    assert len(brought) + len(left) == len(keys)


def test_a_query_page_ends_at_a_megabyte_too(client: Any) -> None:
    stored(client, partitions=1, each=20, size=64 * KB)
    page = client.query(
        TableName="t",
        KeyConditionExpression="h = :h",
        ExpressionAttributeValues={":h": {"S": "h000"}},
    )
    assert 10 < len(page["Items"]) <= 16
    assert "LastEvaluatedKey" in page
