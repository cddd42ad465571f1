"""Callbacks of each type in requests: how they are read, and which are refused, by which field."""

import json
from typing import Any

import pytest
from msgspec.json import encode
from msgspec.structs import replace

from duewheel.interface.callbacks.callback_view import callback_view
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets, Scope
from duewheel.rules.callbacks.aws.eventbridge import EventBridgeCallback
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.aws.sns import SnsCallback
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.aws.stepfunctions import StepFunctionsCallback
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.refusals import InvalidField, MalformedBody, Refusal, TargetNotEnabled, TooLarge
from duewheel.rules.tasks.requests import batch_request, single_request
from duewheel.rules.tasks.updates import Change, change_request, changed
from duewheel.rules.tolerance import Window
from tests.rules.tasks.test_lifecycle import TASK
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000


def as_requested(window: Window) -> int:
    return window.due_ms


HERE = Scope("aws", "us-east-1", "123456789012")
ALLOWED = AllowedTargets(
    HERE,
    (
        "arn:aws:lambda:us-east-1:*:function:orders-*",
        "arn:aws:sqs:us-east-1:123456789012:*",
        "arn:aws:sns:us-east-1:123456789012:*",
        "arn:aws:events:us-east-1:123456789012:event-bus/*",
        "arn:aws:states:us-east-1:123456789012:stateMachine:*",
    ),
)
OWN = "arn:aws:lambda:us-east-1:123456789012:function:orders-close"
ELSEWHERE = OWN.replace("1234", "9876")  # in another account
QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
TOPIC = "arn:aws:sns:us-east-1:123456789012:orders"
BUS = "arn:aws:events:us-east-1:123456789012:event-bus/orders"
LAMBDA = {"type": "lambda", "function": "orders-close"}
SQS = {"type": "sqs", "queue_url": QUEUE}
SNS = {"type": "sns", "topic_arn": TOPIC}
EVENT = {"type": "eventbridge", "event_bus": "orders", "source": "shop", "detail_type": "due"}
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:orders"
STATES = {"type": "stepfunctions", "state_machine_arn": MACHINE}
HTTP = {"url": "https://example.com/hook"}


def body(callback: dict[str, Any], **more: Any) -> str:
    return json.dumps({"biz_type": "orders", "delay_seconds": 5, "callback": callback, **more})


def callback_of(
    callback: dict[str, Any], allowed: AllowedTargets = ALLOWED, **more: Any
) -> Callback:
    found = single_request(body(callback, **more), NOW_MS, allowed).callback
    assert found is not None
    return found


def refused(callback: dict[str, Any], allowed: AllowedTargets = ALLOWED, **more: Any) -> Refusal:
    with pytest.raises(Refusal) as raised:
        single_request(body(callback, **more), NOW_MS, allowed)
    return raised.value


@each_case(
    ("callback", "meant"),
    [
        (HTTP, HttpCallback("https://example.com/hook", "")),
        (LAMBDA, LambdaCallback("orders-close")),
        ({**LAMBDA, "function": "orders-close:prod"}, LambdaCallback("orders-close:prod")),
        ({**LAMBDA, "function": f"{OWN}:7"}, LambdaCallback(f"{OWN}:7")),
        ({**LAMBDA, "function": ELSEWHERE}, LambdaCallback(ELSEWHERE)),
        ({**LAMBDA, "invocation": "async"}, LambdaCallback("orders-close", is_async=True)),
        (SQS, SqsCallback(QUEUE)),
        (
            {**SQS, "queue_url": f"{QUEUE}.fifo", "group_id": "g/17", "attributes": {"a.b": "é"}},
            SqsCallback(f"{QUEUE}.fifo", group_id="g/17", attributes=(("a.b", "é"),)),
        ),
        (SNS, SnsCallback(TOPIC)),
        (
            {**SNS, "topic_arn": f"{TOPIC}.fifo", "group_id": "g"},
            SnsCallback(f"{TOPIC}.fifo", group_id="g"),
        ),
        (EVENT, EventBridgeCallback("orders", "shop", "due")),
        (STATES, StepFunctionsCallback(MACHINE)),
        (
            {**STATES, "state_machine_arn": f"{MACHINE}:prod"},
            StepFunctionsCallback(f"{MACHINE}:prod"),
        ),
        ({**EVENT, "event_bus": BUS}, EventBridgeCallback(BUS, "shop", "due")),
    ],
)  # fmt: skip
def test_each_type_of_callback_is_read(callback: dict[str, Any], meant: Callback) -> None:
    assert callback_of(callback) == meant


@each_case(
    ("callback", "field"),
    [
        ({**HTTP, "type": "mqtt"}, "type"),
        ({**HTTP, "function": "f"}, "function"),
        ({**HTTP, "body": "xml"}, "body"),
        ({"type": "lambda"}, "function"),
        ({**LAMBDA, "url": "https://example.com"}, "url"),
        ({**LAMBDA, "body": "raw"}, "body"),
        ({**LAMBDA, "function": "orders close"}, "function"),
        ({**LAMBDA, "function": OWN.replace("us-east-1", "us-east-2")}, "function"),
        ({**LAMBDA, "function": OWN.replace("aws", "aws-cn")}, "function"),
        ({**LAMBDA, "function": TOPIC}, "function"),
        ({**LAMBDA, "function": OWN.replace("function:", "layer:")}, "function"),
        ({**LAMBDA, "function": f"{OWN}:a:b"}, "function"),
        ({**LAMBDA, "invocation": "later"}, "invocation"),
        ({**LAMBDA, "complete_within_seconds": 0}, "complete_within_seconds"),
        ({**SQS, "complete_within_seconds": 86_401}, "complete_within_seconds"),
        ({**HTTP, "complete_within_seconds": 60}, "complete_within_seconds"),
        (
            {**SQS, "complete_within_seconds": 60, "attributes": dict.fromkeys("abcdef", "x")},
            "attributes",
        ),
        ({"type": "sqs"}, "queue_url"),
        ({**SQS, "queue_url": QUEUE.replace("https", "http")}, "queue_url"),
        ({**SQS, "queue_url": "https://sqs.us-east-1.amazonaws.com.evil.example/1/q"}, "queue_url"),
        ({**SQS, "queue_url": QUEUE.replace("us-east-1", "eu-west-1")}, "queue_url"),
        ({**SQS, "queue_url": QUEUE.replace("123456789012", "1234")}, "queue_url"),
        ({**SQS, "group_id": "g"}, "group_id"),
        ({**SQS, "queue_url": QUEUE + "s" * 80}, "queue_url"),
        ({**SQS, "queue_url": f"{QUEUE}.fifo"}, "group_id"),
        ({**SQS, "queue_url": f"{QUEUE}.fifo", "group_id": ""}, "group_id"),
        ({**SQS, "queue_url": f"{QUEUE}.fifo", "group_id": "a b"}, "group_id"),
        ({**SQS, "attributes": {"duewheel-x": "a"}}, "attributes.duewheel-x"),
        ({**SQS, "attributes": {"AWS.x": "a"}}, "attributes.AWS.x"),
        ({**SQS, "attributes": {"a..b": "a"}}, "attributes.a..b"),
        ({**SQS, "attributes": {"a": ""}}, "attributes.a"),
        ({**SQS, "attributes": {"a": "\u0001"}}, "attributes.a"),
        ({**SQS, "attributes": {str(n): "a" for n in range(7)}}, "attributes"),
        ({**SNS, "topic_arn": "orders"}, "topic_arn"),
        ({**SNS, "topic_arn": f"{TOPIC}.fifo"}, "group_id"),
        ({**EVENT, "event_bus": "a b"}, "event_bus"),
        ({**EVENT, "source": "aws.shop"}, "source"),
        ({**EVENT, "source": "a\nb"}, "source"),
        ({**EVENT, "detail_type": "d" * 129}, "detail_type"),
        ({"type": "eventbridge", "event_bus": "orders", "source": "shop"}, "detail_type"),
        ({"type": "eventbridge", "source": "shop", "detail_type": "due"}, "event_bus"),
        ({"type": "stepfunctions"}, "state_machine_arn"),
        ({**STATES, "state_machine_arn": "orders"}, "state_machine_arn"),
        ({**STATES, "state_machine_arn": f"{MACHINE}:a:b"}, "state_machine_arn"),
        ({**STATES, "state_machine_arn": f"{MACHINE}/label"}, "state_machine_arn"),
        ({**STATES, "state_machine_arn": MACHINE.replace("us-", "eu-")}, "state_machine_arn"),
        ({**STATES, "state_machine_arn": MACHINE.replace("stateM", "m")}, "state_machine_arn"),
    ],
)  # fmt: skip
def test_an_invalid_callback_is_refused_by_its_field(callback: dict[str, Any], field: str) -> None:
    refusal = refused(callback)
    assert isinstance(refusal, InvalidField)
    assert refusal.field == f"callback.{field}"


BOUNDED = replace(ALLOWED, timeout_seconds_max=30)
TYPES = [HTTP, LAMBDA, SQS, SNS, EVENT, STATES]


@each_case("callback", TYPES)
@each_case("seconds", [0.1, 12.5, 30])
def test_a_callback_of_each_type_may_have_a_timeout_up_to_that_of_the_deployment(
    callback: dict[str, Any], seconds: float
) -> None:
    with_timeout = callback_of({**callback, "timeout_seconds": seconds}, BOUNDED)
    assert with_timeout == replace(callback_of(callback, BOUNDED), timeout_seconds=seconds)
    assert with_timeout != callback_of(callback, BOUNDED)
    shown = json.loads(encode(callback_view(with_timeout)))
    assert shown["timeout_seconds"] == seconds
    assert "timeout_seconds" not in json.loads(encode(callback_view(callback_of(callback))))


@each_case("callback", TYPES)
@each_case("seconds", [0, 0.09, -1, 30.001, 1e9, "5", True, None])
def test_another_timeout_is_refused_by_its_field(callback: dict[str, Any], seconds: Any) -> None:
    refusal = refused({**callback, "timeout_seconds": seconds}, BOUNDED)
    assert isinstance(refusal, InvalidField)
    assert refusal.field == "callback.timeout_seconds"


def test_attributes_are_limited_in_bytes() -> None:
    refusal = refused({**SQS, "attributes": {"a": "é" * 2_048}})
    assert isinstance(refusal, TooLarge)
    assert refusal.field == "callback.attributes"


# Targets that the deployment allows


@each_case(
    ("callback", "service"),
    [(LAMBDA, "lambda"), (SQS, "sqs"), (SNS, "sns"), (EVENT, "events"), (STATES, "states")],
)
def test_a_target_that_is_not_enabled_is_refused_with_its_service(
    callback: dict[str, Any], service: str
) -> None:
    others = tuple(arn for arn in ALLOWED.arns if f":{service}:" not in arn)
    for allowed in (HTTP_ALONE, replace(ALLOWED, arns=others)):
        refusal = refused(callback, allowed)
        assert isinstance(refusal, TargetNotEnabled)
        assert refusal.field == "callback.type"
        assert f"TargetArns names no resource of {service}." in refusal.detail


@each_case(
    ("callback", "field"),
    [
        ({**LAMBDA, "function": "bills-close"}, "function"),
        ({**LAMBDA, "function": OWN.replace("orders", "bills")}, "function"),
        ({**SQS, "queue_url": QUEUE.replace("1234", "9876")}, "queue_url"),
        ({**SNS, "topic_arn": TOPIC.replace("1234", "9876")}, "topic_arn"),
        ({**EVENT, "event_bus": BUS.replace("1234", "9876")}, "event_bus"),
    ],
)
def test_a_resource_that_the_list_does_not_cover_is_refused(
    callback: dict[str, Any], field: str
) -> None:
    refusal = refused(callback)
    assert isinstance(refusal, TargetNotEnabled)
    assert refusal.field == f"callback.{field}"
    assert "TargetArns does not cover it" in refusal.detail


def test_an_alias_must_be_covered_too() -> None:
    exact = replace(ALLOWED, arns=(OWN,))
    single_request(body(LAMBDA), NOW_MS, exact)
    assert isinstance(refused({**LAMBDA, "function": "orders-close:prod"}, exact), TargetNotEnabled)


def test_an_alias_of_a_state_machine_is_covered_with_it() -> None:
    """As in IAM, the ARN of the state machine decides."""
    exact = replace(ALLOWED, arns=(MACHINE,))
    single_request(body({**STATES, "state_machine_arn": f"{MACHINE}:prod"}), NOW_MS, exact)
    other = {**STATES, "state_machine_arn": f"{MACHINE}s:prod"}
    assert isinstance(refused(other, exact), TargetNotEnabled)


def test_a_batch_and_a_change_allow_the_same_targets() -> None:
    good, bad = {**SQS}, {**LAMBDA, "function": "bills-close"}
    text = json.dumps({"tasks": [json.loads(body(one)) for one in (good, bad)]})
    made, refusal = batch_request(text, NOW_MS, ALLOWED)
    assert not isinstance(made, Refusal)
    assert isinstance(refusal, TargetNotEnabled)
    assert refusal.field == "tasks[1].callback.function"
    assert refusal.window == made.window, "what its home would follow from"
    assert change_request(json.dumps({"callback": SQS}), NOW_MS, ALLOWED).callback == SqsCallback(
        QUEUE
    )
    with pytest.raises(TargetNotEnabled):
        change_request(json.dumps({"callback": bad}), NOW_MS, ALLOWED)


# Callback and payload together


@each_case("callback", [HTTP, SQS, SNS])
def test_the_payload_of_a_raw_callback_must_be_a_string(callback: dict[str, Any]) -> None:
    raw = {**callback, "body": "raw"}
    assert callback_of(raw, payload="<paid/>") == replace(callback_of(callback), is_raw=True)
    for payload in ({"order": 17}, 17, None, True):
        assert refused(raw, payload=payload).field == "payload"
    assert isinstance(refused(raw, payload="\ud800"), MalformedBody)


def test_a_raw_callback_without_payload_is_accepted_for_http_only() -> None:
    callback_of({**HTTP, "body": "raw"})
    assert refused({**SQS, "body": "raw"}).field == "payload"


@each_case("callback", [SQS, SNS])
def test_a_message_that_is_empty_or_has_refused_characters_is_refused(
    callback: dict[str, Any],
) -> None:
    raw = {**callback, "body": "raw"}
    assert refused(raw, payload="").field == "payload"
    assert refused(raw, payload="\x00").field == "payload"
    callback_of(callback, payload="\x00")  # escaped in JSON
    callback_of(callback)


def test_a_change_is_checked_together_with_the_fields_that_stay() -> None:
    raw = replace(TASK, callback=HttpCallback("https://a.example", is_raw=True), payload='"a"')
    with pytest.raises(InvalidField) as raised:
        changed(raw, Change(sets_payload=True, payload="17"), NOW_MS, as_requested)
    assert raised.value.field == "payload"
    changed(raw, Change(sets_payload=True, payload='"b"'), NOW_MS, as_requested)
    with pytest.raises(InvalidField):
        changed(replace(raw, payload="17", callback=HttpCallback("https://a.example")),
                Change(callback=raw.callback), NOW_MS, as_requested)  # fmt: skip


def test_a_change_of_the_due_instant_does_not_check_callback_and_payload() -> None:
    odd = replace(TASK, callback=HttpCallback("https://a.example", is_raw=True), payload="17")
    assert changed(odd, Change(due_ms=NOW_MS + 1), NOW_MS, as_requested).due_ms == NOW_MS + 1
