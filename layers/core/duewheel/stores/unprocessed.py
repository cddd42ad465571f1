"""Batches that DynamoDB may carry out in part: what is left is sent again, more slowly."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from duewheel.clock import Clock
from duewheel.stores.conditions import Throttled, is_throttling

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
    """Carry out up to 25 writes; returns those that DynamoDB left undone to the last."""
    left = list(requests)
    for pause_seconds in (*PAUSES_SECONDS, None):
        left = write_once(client, table, left)
        if not left or pause_seconds is None:
            break
        clock.sleep(pause_seconds)
    return left


def get_batch(
    client: "DynamoDBClient",
    clock: Clock,
    table: str,
    keys: Sequence[Any],
    *,
    strongly: bool = True,
) -> list[Any]:
    """Read up to 100 items."""
    found: list[Any] = []
    asked: Any = {table: {"Keys": list(keys), "ConsistentRead": strongly}}
    for pause_seconds in (*PAUSES_SECONDS, None):
        answer = _answer(client, asked)
        found.extend(answer["Responses"].get(table, []))
        asked = answer.get("UnprocessedKeys")
        if not asked:
            return found
        if pause_seconds is not None:
            clock.sleep(pause_seconds)
    raise Throttled(f"BatchGetItem left {len(asked[table]['Keys'])} keys unread")


def write_once(client: "DynamoDBClient", table: str, requests: list[Any]) -> list[Any]:
    """Those of up to 25 writes that DynamoDB left undone. A batch of which it takes nothing at all
    is refused as a whole."""
    try:
        answer = client.batch_write_item(RequestItems={table: requests})
    except ClientError as error:
        if not is_throttling(error):
            raise
        return requests
    return list(answer.get("UnprocessedItems", {}).get(table, []))


def _answer(client: "DynamoDBClient", asked: Any) -> Any:
    try:
        return client.batch_get_item(RequestItems=asked)
    except ClientError as error:
        if not is_throttling(error):
            raise
        return {"Responses": {}, "UnprocessedKeys": asked}
