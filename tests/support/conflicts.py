"""A conflicting transaction on an item, simulated by refusals below the SDK."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of

FOR_EVER = 1_000_000
A_MOMENT = 2  # so many refusals, which a client survives by retries

Wanted = Callable[[str, dict[str, Any]], bool]


@dataclass
class Conflicts:
    refused: int = 0
    paused_seconds: float = 0.0


@contextmanager
def conflicts(
    is_wanted: Wanted, times: int = FOR_EVER, fault: Fault = Fault.CONFLICT
) -> Iterator[Conflicts]:
    """Refuse the first `times` requests that `is_wanted` selects by operation and body."""
    met, numbers = Conflicts(), count()

    def answer(request: Any, handle: Handle) -> Reply | None:
        operation = operation_of(request)
        body = json.loads(request.body) if operation else {}
        if not is_wanted(operation, body) or next(numbers) >= times:
            return handle(request)
        met.refused += 1
        return do(fault, request, handle, Random(1))

    def pause(seconds: float) -> None:
        met.paused_seconds += seconds

    with answered_by(answer), patch("botocore.endpoint.time", SimpleNamespace(sleep=pause)):
        yield met


def of_keys(operation: str, body: dict[str, Any]) -> bool:
    """The release of a key."""
    slot = body.get("Key", {}).get("slot", {}).get("S", "")
    is_release = "expires_at" in body.get("UpdateExpression", "")
    return operation == "UpdateItem" and slot.startswith("key#") and is_release


def of_claims(operation: str, body: dict[str, Any]) -> bool:
    slot = body.get("Item", {}).get("slot", {}).get("S", "")
    return operation == "PutItem" and slot.startswith("key#")


def of_homes(operation: str, body: dict[str, Any]) -> bool:
    """A change of a task."""
    return operation == "UpdateItem" and "#entry" in body.get("ExpressionAttributeNames", {})


def of_transactions(operation: str, body: dict[str, Any]) -> bool:
    return operation == "TransactWriteItems"


def send_transactions_twice(client: Any) -> None:
    """As the SDK does when the answer to its first try, which was carried out, is lost."""
    real = client.transact_write_items

    def again(**arguments: Any) -> Any:
        real(**arguments)
        return real(**arguments)

    client.transact_write_items = again
