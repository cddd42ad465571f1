"""Requests to DynamoDB: conditional writes, transactions, batches, throttling.

A refused conditional write returns the current item, and the caller checks whether it has its own
mark: a retry of the SDK can fail its condition because the first try was carried out.

While a transaction holds an item, other writes of it are refused as conflicts, which the SDK does
not retry. The client does (`aws_clients.py`); a write that is refused even then counts as
throttled, and a caller of the API gets a 503.

A batch may be carried out in part: the rest is sent again. After an answer that carried out
anything the next request follows at once, however many it takes: BatchGetItem returns at most 1 MB
of a partition. After an answer that carried out nothing there is a pause, and after a few such
answers in a row the rest is left.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.refusals import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_THROTTLING = {
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "ThrottlingException",
    "TransactionInProgressException",  # an earlier try of the SDK may still be carried out
}

_THROTTLED_IN_TRANSACTION = {"ThrottlingError", "ProvisionedThroughputExceeded"}
_CONFLICT = "TransactionConflictException"  # of a single write

Item = Mapping[str, Any]


class Written(Struct, frozen=True):
    attributes: Item


class Refused(Struct, frozen=True):
    """`item` is the item that was there instead; None if there was none."""

    item: Item | None


def is_throttling(error: ClientError) -> bool:
    return error.response["Error"]["Code"] in _THROTTLING or is_conflict(error.response)


def is_conflict(answer: Mapping[str, Any]) -> bool:
    """Whether the only reason for the refusal was that a transaction held an item."""
    if answer.get("Error", {}).get("Code") == _CONFLICT:
        return True
    reasons = {reason.get("Code") for reason in answer.get("CancellationReasons", ())}
    return "TransactionConflict" in reasons and reasons <= {"TransactionConflict", "None", None}


def is_refused_for_load(answer: Mapping[str, Any]) -> bool:
    """Whether an answer, successful or not, says that something was throttled."""
    reasons = {reason.get("Code") for reason in answer.get("CancellationReasons", ())}
    left = [answer.get(name) for name in ("UnprocessedItems", "UnprocessedKeys")]
    left += [not entry.get("SenderFault") for entry in answer.get("Failed", ())]
    is_refused = answer.get("Error", {}).get("Code") in _THROTTLING
    return is_refused or bool(reasons & _THROTTLED_IN_TRANSACTION) or any(left)


class Throttled(Exception):
    """DynamoDB throttled a read or a write through all retries."""


class Conflict(Throttled):
    """A transaction held an item during all tries of the write: nothing was written."""


def is_for_load(error: Exception) -> bool:
    """Whether DynamoDB throttled a read or a write through all retries of the SDK."""
    return isinstance(error, Throttled) or (isinstance(error, ClientError) and is_throttling(error))


def is_of_aws(error: Exception) -> bool:
    """Whether a request failed, for whatever reason."""
    return isinstance(error, Throttled | ClientError | BotoCoreError)


def code_of(error: Exception) -> str | None:
    """The name by which AWS refused a request."""
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else None


def transact(client: "DynamoDBClient", actions: list[Any]) -> bool:
    """Carry out all or nothing; False when a condition did not hold."""
    try:
        client.transact_write_items(TransactItems=actions)
    except ClientError as error:
        _raise_for_load(error)
        reasons = error.response.get("CancellationReasons", [])
        codes = {reason.get("Code") for reason in reasons}
        if codes & _THROTTLED_IN_TRANSACTION:
            raise Throttled(str(error)) from error
        if "ConditionalCheckFailed" not in codes:
            raise
        return False
    return True


def write_if(call: Callable[..., Any], **arguments: Any) -> Written | Refused:
    try:
        answer = call(**arguments, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    except ClientError as error:
        _raise_for_load(error)
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return Refused(error.response.get("Item") or None)  # type: ignore[arg-type]
    return Written(answer.get("Attributes", {}))


def written(call: Callable[..., Any], **arguments: Any) -> Any:
    """The answer of a write without a condition."""
    try:
        return call(**arguments)
    except ClientError as error:
        _raise_for_load(error)
        raise


def _raise_for_load(error: ClientError) -> None:
    if is_conflict(error.response):
        raise Conflict(str(error)) from error
    if is_throttling(error):
        raise Throttled(str(error)) from error


def as_read(item: Item | None) -> dict[str, Any]:
    """The condition that an item is as it was read, or that there is still none."""
    if item is None:
        return {"ConditionExpression": "attribute_not_exists(place)"}
    return {
        "ConditionExpression": " AND ".join(f"#n{n} = :v{n}" for n in range(len(item))),
        "ExpressionAttributeNames": {f"#n{n}": name for n, name in enumerate(item)},
        "ExpressionAttributeValues": {f":v{n}": value for n, value in enumerate(item.values())},
    }


@contextmanager
def unavailable_when_throttled(answer: Unavailable | None = None) -> Iterator[None]:
    """Answer 503 when DynamoDB throttles."""
    try:
        yield
    except Throttled as throttled:
        raise answer or Unavailable() from throttled


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
    """Carry out these writes; at the first that is throttled raise Throttled with the text
    `what`."""
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
