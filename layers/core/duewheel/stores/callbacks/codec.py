"""Callbacks and retry policies as JSON in tasks and businesses.

Short: a member that says nothing is left out. A row without `type` is of type http.
"""

from typing import Any, assert_never

from duewheel.rules.callbacks.types import (
    Callback,
    EventBridgeCallback,
    HttpCallback,
    LambdaCallback,
    RetryPolicy,
    SnsCallback,
    SqsCallback,
)
from duewheel.stores.item_attributes import decimal, whole, words

_Pairs = tuple[tuple[str, str], ...]


def callback_row(callback: Callback) -> dict[str, Any]:
    return {name: value for name, value in _row(callback).items() if value not in (None, False, ())}


def _row(callback: Callback) -> dict[str, Any]:
    match callback:
        case HttpCallback(url, method, headers, is_raw):
            said = {"url": url or None, "method": method or None}
            return {**said, "headers": headers, "raw": is_raw}
        case LambdaCallback(function, waits):
            return {"type": "lambda", "function": function, "async": not waits}
        case SqsCallback(queue_url, group_id, attributes, is_raw):
            message = {"group": group_id, "attributes": attributes, "raw": is_raw}
            return {"type": "sqs", "queue": queue_url, **message}
        case SnsCallback(topic_arn, group_id, attributes, is_raw):
            message = {"group": group_id, "attributes": attributes, "raw": is_raw}
            return {"type": "sns", "topic": topic_arn, **message}
        case EventBridgeCallback(event_bus, source, detail_type):
            return {"type": "eventbridge", "bus": event_bus, "source": source, "as": detail_type}
        case _:
            assert_never(callback)


def callback_of_row(row: dict[str, Any]) -> Callback:
    """Raises what is `NOT_UNDERSTOOD` for a row that is never written here."""
    match row.get("type", "http"):
        case "http":
            url, method = words(row.get("url", "")), words(row.get("method", ""))
            return HttpCallback(url, method, _pairs(row, "headers"), _flag(row, "raw"))
        case "lambda":
            return LambdaCallback(words(row["function"]), not _flag(row, "async"))
        case "sqs":
            return SqsCallback(words(row["queue"]), *_message(row))
        case "sns":
            return SnsCallback(words(row["topic"]), *_message(row))
        case "eventbridge":
            return EventBridgeCallback(words(row["bus"]), words(row["source"]), words(row["as"]))
    raise ValueError("no type of a callback")


def _message(row: dict[str, Any]) -> tuple[str | None, _Pairs, bool]:
    group_id = words(row["group"]) if "group" in row else None
    return group_id, _pairs(row, "attributes"), _flag(row, "raw")


def _pairs(row: dict[str, Any], name: str) -> _Pairs:
    return tuple((words(key), words(value)) for key, value in row.get(name, ()))


def _flag(row: dict[str, Any], name: str) -> bool:
    value = row.get(name, False)
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


COUNT_MAX = 10_000
DURATION_SECONDS_MAX = 10**9


def retry_row(retry: RetryPolicy) -> dict[str, Any]:
    row: dict[str, Any] = {
        "attempts_max": retry.attempts_max,
        "first_delay_seconds": retry.first_delay_seconds,
        "factor": retry.factor,
        "delay_max_seconds": retry.delay_max_seconds,
        "delays_seconds": retry.delays_seconds,
    }
    if not retry.has_jitter:
        row["has_jitter"] = False
    if retry.max_age_seconds is not None:
        row["max_age_seconds"] = retry.max_age_seconds
    return row


def retry_of_row(row: dict[str, Any]) -> RetryPolicy:
    age_seconds = row.get("max_age_seconds")
    return RetryPolicy(
        attempts_max=whole(row["attempts_max"], COUNT_MAX, smallest=1),
        first_delay_seconds=decimal(row["first_delay_seconds"], DURATION_SECONDS_MAX),
        factor=decimal(row["factor"], DURATION_SECONDS_MAX),
        delay_max_seconds=decimal(row["delay_max_seconds"], DURATION_SECONDS_MAX),
        delays_seconds=tuple(
            decimal(delay, DURATION_SECONDS_MAX) for delay in row["delays_seconds"]
        ),
        has_jitter=row.get("has_jitter", True) is not False,
        max_age_seconds=(
            None if age_seconds is None else decimal(age_seconds, DURATION_SECONDS_MAX)
        ),
    )
