"""A callback is read from its row as it was written, and a short one has a short row."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.aws.eventbridge import EventBridgeCallback
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.aws.sns import SnsCallback
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.aws.stepfunctions import StepFunctionsCallback
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.stores.callbacks.codec import callback_of_row, callback_row
from tests.support.cases import each_case

texts = st.text(st.characters(exclude_categories=["Cs"]))
pairs = st.lists(st.tuples(texts, texts), max_size=3).map(tuple)
timeouts = st.none() | st.floats(0.1, 450)
callbacks = st.one_of(
    st.builds(
        HttpCallback, texts, st.sampled_from(["GET", "POST"]), pairs, st.booleans(), timeouts
    ),
    st.builds(LambdaCallback, texts, st.booleans(), timeout_seconds=timeouts),
    st.builds(
        SqsCallback, texts, group_id=st.none() | texts, attributes=pairs, is_raw=st.booleans()
    ),
    st.builds(
        SnsCallback, texts, group_id=st.none() | texts, attributes=pairs, is_raw=st.booleans()
    ),
    st.builds(EventBridgeCallback, texts, texts, texts, timeout_seconds=timeouts),
    st.builds(StepFunctionsCallback, texts, timeout_seconds=timeouts),
)


@given(callbacks)
def test_a_callback_is_read_as_it_was_written(callback: Callback) -> None:
    assert callback_of_row(json.loads(json.dumps(callback_row(callback)))) == callback


@each_case(
    ("callback", "row"),
    [
        (HttpCallback("", ""), {}),
        (HttpCallback("https://a.example", ""), {"url": "https://a.example"}),
        (
            HttpCallback("https://a.example", "PUT", (("x-a", "1"),)),
            {"url": "https://a.example", "method": "PUT", "headers": (("x-a", "1"),)},
        ),
        (HttpCallback(method="", timeout_seconds=2.5), {"timeout_seconds": 2.5}),
        (
            SqsCallback("q", timeout_seconds=2.0),
            {"type": "sqs", "queue": "q", "timeout_seconds": 2.0},
        ),
        (LambdaCallback("f"), {"type": "lambda", "function": "f"}),
        (LambdaCallback("f", is_async=True), {"type": "lambda", "function": "f", "async": True}),
        (
            SqsCallback("q", group_id="g", attributes=(("a", "b"),), is_raw=True),
            {"type": "sqs", "queue": "q", "group": "g", "attributes": (("a", "b"),), "raw": True},
        ),
        (SnsCallback("t"), {"type": "sns", "topic": "t"}),
        (
            EventBridgeCallback("b", "shop", "due"),
            {"type": "eventbridge", "bus": "b", "source": "shop", "as": "due"},
        ),
        (StepFunctionsCallback("m"), {"type": "stepfunctions", "machine": "m"}),
    ],
)
def test_default_members_are_left_out_of_the_row(callback: Callback, row: dict[str, Any]) -> None:
    assert callback_row(callback) == row


@each_case(
    "row",
    [
        {"type": "mqtt", "url": "a"},
        {"type": "lambda"},
        {"type": "lambda", "function": 7},
        {"type": "lambda", "function": "\ud800"},
        {"type": "lambda", "function": "f", "async": 1},
        {"type": "sqs", "queue": "q", "group": 7},
        {"type": "sns", "topic": "t", "attributes": [["a"]]},
        {"type": "eventbridge", "bus": "b", "source": "s"},
        {"url": "a", "raw": "yes"},
        {"url": "a", "timeout_seconds": "5"},
        {"url": "a", "timeout_seconds": -1},
        {"type": "lambda", "function": "f", "timeout_seconds": -1},
    ],
)
def test_a_row_that_is_never_written_is_invalid(row: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        callback_of_row(row)
