"""A callback is shown by the members that a create takes."""

from msgspec import to_builtins

from duewheel.interface.callbacks.callback_view import callback_view
from duewheel.rules.tasks.requests import single_request
from tests.rules.callbacks.test_requests import (
    ALLOWED,
    EVENT,
    HTTP,
    LAMBDA,
    NOW_MS,
    QUEUE,
    SNS,
    SQS,
    body,
)
from tests.support.cases import each_case


@each_case(
    "callback",
    [
        {"type": "http", **HTTP, "method": "PUT", "headers": {"x-a": "1"}, "body": "raw"},
        {"type": "http", **HTTP, "method": "POST", "headers": {}},
        {**LAMBDA, "invocation": "async"},
        {**SQS, "attributes": {"a": "1"}, "body": "raw"},
        {**SQS, "queue_url": f"{QUEUE}.fifo", "group_id": "g", "attributes": {}},
        {**SNS, "attributes": {}},
        EVENT,
    ],
)
def test_a_shown_callback_can_be_sent_again(callback: dict[str, object]) -> None:
    payload = "a" if "body" in callback else 1
    made = single_request(body(callback, payload=payload), NOW_MS, ALLOWED).callback
    assert to_builtins(callback_view(made)) == callback
