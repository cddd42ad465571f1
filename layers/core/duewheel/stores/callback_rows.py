"""A callback as it is kept in tasks and businesses: what JSON can hold.

Short: a member that says nothing is left out. A row without `type` is of type http.
"""

from typing import Any, assert_never

from duewheel.rules.task import (
    Callback,
    EventBridgeCallback,
    HttpCallback,
    LambdaCallback,
    SnsCallback,
    SqsCallback,
)
from duewheel.stores.attributes import words

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
