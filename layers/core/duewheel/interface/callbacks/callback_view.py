"""A callback in an answer: the members that a create takes. What is null is left to the
business. Of a header that carries a secret its shown form alone."""

from typing import assert_never

from duewheel.rules.callbacks.secret_headers import shown_value
from duewheel.rules.callbacks.types import (
    Callback,
    EventBridgeCallback,
    HttpCallback,
    LambdaCallback,
    SnsCallback,
    SqsCallback,
)


def callback_view(callback: Callback) -> dict[str, object]:
    match callback:
        case HttpCallback(url, method, headers, is_raw):
            said = {"url": url or None, "method": method or None, "headers": _joined(headers)}
            return {"type": "http", **said, **_body(is_raw)}
        case LambdaCallback(function, waits):
            invocation = "sync" if waits else "async"
            return {"type": "lambda", "function": function, "invocation": invocation}
        case SqsCallback(queue_url):
            return {"type": "sqs", "queue_url": queue_url, **_message(callback)}
        case SnsCallback(topic_arn):
            return {"type": "sns", "topic_arn": topic_arn, **_message(callback)}
        case EventBridgeCallback(event_bus, source, detail_type):
            named = {"event_bus": event_bus, "source": source, "detail_type": detail_type}
            return {"type": "eventbridge", **named}
        case _:
            assert_never(callback)


def _joined(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Lines of one name as the one that means the same."""
    joined: dict[str, str] = {}
    for name, value in headers:
        shown = shown_value(name, value)
        joined[name] = f"{joined[name]}, {shown}" if name in joined else shown
    return joined


def _message(callback: SqsCallback | SnsCallback) -> dict[str, object]:
    group = {} if callback.group_id is None else {"group_id": callback.group_id}
    return {**group, "attributes": dict(callback.attributes), **_body(callback.is_raw)}


def _body(is_raw: bool) -> dict[str, object]:
    """Appears only when it was asked for."""
    return {"body": "raw"} if is_raw else {}
