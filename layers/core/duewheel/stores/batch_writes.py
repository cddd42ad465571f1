"""Batches that DynamoDB may carry out in part: the rest is sent again.

After an answer that carried out anything the next request follows at once, however many it takes:
BatchGetItem returns at most 1 MB of a partition. After an answer that carried out nothing there is
a pause, and after a few such answers in a row the rest is left.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from duewheel.clock import Clock
from duewheel.stores.conditional_writes import Throttled, is_throttling

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

WRITES_PER_BATCH = 25
READS_PER_BATCH = 100
PAUSES_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8)

T = TypeVar("T")


def chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def write_batch(
    client: "DynamoDBClient", clock: Clock, table: str, requests: Sequence[Any]
) -> list[Any]:
    """Carry out these writes; returns those that DynamoDB left undone to the last."""
    left: list[Any] = []
    for chunk in chunks(requests, WRITES_PER_BATCH):
        left += _carry_out(list(chunk), lambda some: _written(client, table, some), clock)
    return left


def write_all(
    client: "DynamoDBClient", clock: Clock, table: str, requests: Sequence[Any], what: str
) -> None:
    """Carry out these writes, or raise Throttled, which says `what`, without trying the rest."""
    for chunk in chunks(requests, WRITES_PER_BATCH):
        if left := write_batch(client, clock, table, chunk):
            raise Throttled(f"{len(left)} {what}")


def get_batch(
    client: "DynamoDBClient",
    clock: Clock,
    table: str,
    keys: Sequence[Any],
    *,
    strongly: bool = True,
) -> list[Any]:
    """Read the items of these keys that exist, in no order."""
    found: list[Any] = []

    def read(left: list[Any]) -> list[Any]:
        answer = _answer(client, {table: {"Keys": left, "ConsistentRead": strongly}})
        found.extend(answer["Responses"].get(table, []))
        unread: list[Any] = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
        return unread

    for chunk in chunks(keys, READS_PER_BATCH):
        if left := _carry_out(list(chunk), read, clock):
            raise Throttled(f"BatchGetItem left {len(left)} keys unread")
    return found


def write_while_taken(client: "DynamoDBClient", table: str, requests: Sequence[Any]) -> list[Any]:
    """Those of up to 25 writes that DynamoDB left undone, when it took no more of them."""
    return _carry_out(list(requests), lambda left: _written(client, table, left))


def _carry_out(
    left: list[Any], request: Callable[[list[Any]], list[Any]], clock: Clock | None = None
) -> list[Any]:
    """`request` gets the rest and returns the part of it that was not carried out. Returns the rest
    when one answer carried out nothing; with a clock, when several in a row did so."""
    pauses = iter(PAUSES_SECONDS)
    while left:
        before = len(left)
        left = request(left)
        if left and len(left) < before:
            pauses = iter(PAUSES_SECONDS)
        elif left:
            pause_seconds = next(pauses, None)
            if clock is None or pause_seconds is None:
                break
            clock.sleep(pause_seconds)
    return left


def _written(client: "DynamoDBClient", table: str, requests: list[Any]) -> list[Any]:
    """Those that were left undone by one request. A batch of which DynamoDB takes nothing at all is
    refused as a whole."""
    try:
        answer = client.batch_write_item(RequestItems={table: requests})
    except ClientError as error:
        if not is_throttling(error):
            raise
        return requests
    return list(answer.get("UnprocessedItems", {}).get(table, []))


def _answer(client: "DynamoDBClient", sent: Any) -> Any:
    try:
        return client.batch_get_item(RequestItems=sent)
    except ClientError as error:
        if not is_throttling(error):
            raise
        return {"Responses": {}, "UnprocessedKeys": sent}
