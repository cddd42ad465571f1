"""A definition in a template is the definition of a call, though CloudFormation makes texts of
it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.access.stacks import check_stack_businesses, permit_of_stack, stack_of
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets, Scope
from duewheel.rules.timers.requests import named_timer
from duewheel.rules.timers.stack_resource import (
    ANSWER_BYTES_MAX,
    NoStackRequest,
    StackRequest,
    definition,
    failed,
    handed_over,
    owner_of,
    stack_request,
)
from tests.support.cases import each_case
from tests.support.stack_requests import StackOfATeam, as_texts

STACK = StackOfATeam(send=lambda event: event)
HOOK = {"url": "https://receiver.example/hook"}
WHOLE = {"biz_type": "orders", "name": "closing", "cron": "0 3 * * *", "callback": HOOK}
QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
TARGETS = AllowedTargets(
    Scope("aws", "us-east-1", "123456789012"),
    {
        "TARGET_QUEUE_ARNS": ("arn:aws:sqs:us-east-1:123456789012:*",),
        "TARGET_FUNCTION_ARNS": ("arn:aws:lambda:us-east-1:123456789012:function:*",),
    },
)


def request(
    properties: Any, stack: StackOfATeam = STACK, resource: str = "Nightly"
) -> StackRequest:
    return stack_request(stack.event("Create", resource, properties))


texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
numberlike = st.sampled_from(["17", "1.5", "true", "false", "null", "1e3", "-0"])
callbacks = st.fixed_dictionaries(
    {"url": st.just(HOOK["url"])},
    optional={
        "method": st.sampled_from(["GET", "POST"]),
        "headers": st.dictionaries(st.sampled_from(["x-a", "x-b"]), numberlike, max_size=2),
    },
) | st.fixed_dictionaries(
    {"type": st.just("lambda"), "function": st.just("close")},
    optional={"complete_within_seconds": st.integers(1, 3_600)},
)
seconds = st.integers(1, 3_600) | st.floats(0.5, 3_600).map(lambda one: round(one, 3))
definitions = st.fixed_dictionaries(
    {"every_seconds": st.integers(1, 86_400), "callback": callbacks},
    optional={
        "max_runs": st.integers(1, 1_000_000_000),
        "retry": st.fixed_dictionaries(
            {"attempts": st.integers(1, 100)},
            optional={"delays_seconds": st.lists(seconds, min_size=1, max_size=3)},
        ),
        "expires_after_seconds": seconds,
        "disable_on_stop": st.booleans(),
        "tolerance_seconds": st.integers(0, 3_600),
        "priority": st.sampled_from(["high", "low"]),
        "flow_key": texts | numberlike,
        "labels": st.dictionaries(st.sampled_from(["a", "b"]), numberlike, max_size=2),
        "payload": st.dictionaries(texts, texts | numberlike, max_size=3),
        "exclude": st.just(["2030-12-25"]),
        "on_outcome": st.fixed_dictionaries(
            {"outcomes": st.just(["dead"]), "callback": st.just(HOOK)},
            optional={"with_payload": st.booleans()},
        ),
        "enabled": st.booleans(),
    },
)


@given(body=definitions)
def test_a_definition_of_texts_is_the_one_of_the_call(body: dict[str, Any]) -> None:
    wanted = request({**body, "biz_type": "orders", "name": "17"})
    owner = {"managed_by": owner_of(wanted)}
    of_call = named_timer(
        json.dumps({**body, **owner}, separators=(",", ":")), "orders", "17", TARGETS
    )
    assert definition(wanted, TARGETS) == of_call


def test_numbers_that_cloudformation_writes_in_its_own_way_are_numbers() -> None:
    for text, number in (("1E+3", 1_000), ("1.0", 1), ("9.0E8", 900_000_000)):
        assert definition(request({**WHOLE, "max_runs": text}), HTTP_ALONE).values["max_runs"] == (
            number
        )


@each_case("text", ["", " 1", "1 ", "0x10", "1_000", "NaN", "Infinity", "١", "01", "+1"])
def test_what_is_no_number_of_json_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(Exception, match="max_runs: must be") as refusal:
        definition(request({**WHOLE, "max_runs": text}), HTTP_ALONE)
    assert refusal.value.field == "max_runs"  # type: ignore[attr-defined]


def test_owners_differ_by_stack_its_incarnation_and_resource_and_fit_into_the_field() -> None:
    again = StackOfATeam(send=STACK.send)
    long = StackOfATeam(send=STACK.send, name="n" * 128)
    wanted = [request(WHOLE), request(WHOLE, again), request(WHOLE, STACK, "Other")]
    wanted += [request(WHOLE, long, "R" * 255), request(WHOLE, long, "R" * 254)]
    owners = {owner_of(one) for one in wanted}
    assert len(owners) == len(wanted)
    assert max(map(len, owners)) <= 128
    assert handed_over(wanted[0]) == handed_over(wanted[1]) == "cloudformation:orders-app/Nightly"


@given(reason=st.text(max_size=3_000))
def test_an_answer_is_never_larger_than_cloudformation_takes(reason: str) -> None:
    longest = StackOfATeam(send=STACK.send, name="n" * 128)
    event = longest.event("Update", "R" * 255, WHOLE, PhysicalResourceId="\x01" * 255)
    answer = failed(stack_request(event), reason)
    assert len(answer) <= ANSWER_BYTES_MAX
    assert reason.startswith(json.loads(answer).get("Reason", ""))


@each_case(
    "stack_id",
    ["", "orders-app", "arn:aws:s3:::bucket", "arn:aws:cloudformation:us-east-1:1:stack/a/b"],
)
def test_what_is_no_stack_is_no_request(stack_id: str) -> None:
    with pytest.raises(NoStackRequest):
        stack_request({**STACK.event("Create", "Nightly", WHOLE), "StackId": stack_id})


@each_case("text", ["", "a=b=c", "=orders", "orders=", "or*ders=a", "Orders", "a b", "1a=orders"])
def test_a_list_of_businesses_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no businesses"):
        check_stack_businesses([text])


def test_a_stack_of_another_account_or_of_a_longer_name_has_no_right() -> None:
    listed = ["orders-app=orders", "shop-*=shop*"]
    check_stack_businesses(listed)
    for name, biz_type, may in (
        ("orders-app", "orders", True),
        ("orders-app-2", "orders", False),
        ("orders-app", "shop", False),
        ("shop-eu", "shop-eu", True),
        ("shop", "shop", False),
    ):
        for account in ("123456789012", "210987654321"):
            stack = stack_of(StackOfATeam(send=STACK.send, name=name, account=account).stack_id)
            permit = permit_of_stack(stack, listed, "123456789012")
            is_permitted = may and account == "123456789012"
            assert permit.access.may(permit.right, biz_type) == is_permitted


def test_texts_are_what_cloudformation_passes() -> None:
    assert as_texts({"a": [1, True, {"b": 0.5}]}) == {"a": ["1", "true", {"b": "0.5"}]}
