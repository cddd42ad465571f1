"""Rights, grants and permits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.access.grants import (
    ALL,
    ANONYMOUS,
    ANYTHING,
    Access,
    Grant,
    Permit,
    Right,
    are_businesses,
    grants_of,
    grants_text,
)
from duewheel.rules.refusals import NotPermitted, no_such_task
from tests.support.cases import each_case

READ, WRITE, ADMIN = Right

# Few letters, so that names and prefixes often match.
names = st.text("ab-", min_size=1, max_size=3).filter(lambda name: name[0] != "-")
patterns = names | names.map(lambda name: f"{name}*") | st.just(ALL)
grants = st.builds(Grant, st.sampled_from(Right), patterns)
some_grants = st.lists(grants, max_size=4).map(tuple)


@each_case(
    ("businesses", "covered", "not_covered"),
    [
        ("orders", ["orders"], ["order", "orders-eu", "Orders", "orders*", ""]),
        ("orders-*", ["orders-", "orders-eu", "orders-eu-1"], ["orders", "order", "x.orders-eu"]),
        ("*", ["orders", "a", "x.orders"], []),
    ],
)
def test_a_grant_covers_a_business_by_its_name_or_prefix(
    businesses: str, covered: list[str], not_covered: list[str]
) -> None:
    grant = Grant(READ, businesses)
    assert [name for name in covered if not grant.covers(name)] == []
    assert [name for name in not_covered if grant.covers(name)] == []


@each_case("text", ["orders", "orders-*", "o*", "*", "a" * 63, "a" * 63 + "*"])
def test_names_and_prefixes_of_businesses_are_accepted(text: str) -> None:
    assert are_businesses(text)


@each_case(
    "text", ["", "**", "-*", "*a", "a*b", "Orders", "orders\n", "a b", "a,b", "a:b", "a" * 64 + "*"]
)
def test_other_texts_are_not_accepted_as_businesses(text: str) -> None:
    assert not are_businesses(text)


def test_a_right_includes_those_before_it() -> None:
    included = [[one.includes(other) for other in Right] for one in Right]
    assert included == [[True, False, False], [True, True, False], [True, True, True]]


@given(grants, grants, st.sampled_from(Right), names)
def test_a_grant_permits_all_that_an_included_grant_permits(
    one: Grant, other: Grant, right: Right, biz_type: str
) -> None:
    if one.includes(other) and Access("", (other,)).may(right, biz_type):
        assert Access("", (one,)).may(right, biz_type)


@given(some_grants, some_grants, st.sampled_from(Right), names)
def test_a_caller_cannot_grant_more_than_its_own_admin_right(
    mine: tuple[Grant, ...], wanted: tuple[Grant, ...], right: Right, biz_type: str
) -> None:
    me = Access("me", mine)
    if me.may_grant(wanted) and Access("new", wanted).may(right, biz_type):
        assert me.may(ADMIN, biz_type)


def test_a_caller_without_admin_right_grants_nothing() -> None:
    assert not Access("me", (Grant(WRITE, ALL),)).may_grant([Grant(READ, "orders")])


def test_an_admin_of_one_business_grants_on_that_business_only() -> None:
    me = Access("me", (Grant(ADMIN, "orders-*"), Grant(WRITE, ALL)))
    assert me.may_grant([Grant(ADMIN, "orders-*"), Grant(READ, "orders-eu")])
    for businesses in ("orders", "orders*", ALL, "mail"):
        assert not me.may_grant([Grant(READ, "orders-eu"), Grant(READ, businesses)])


@given(some_grants.filter(bool))
def test_grants_are_written_and_read_as_text(some: tuple[Grant, ...]) -> None:
    assert grants_of(grants_text(some)) == some


@each_case(
    "text", ["", "read", "read:", ":orders", "own:orders", "read:Orders", "read:a,", "read:a b"]
)
def test_text_without_valid_grants_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the caller relies on the type only
        grants_of(text)


def test_a_business_out_of_reach_and_a_missing_right_have_the_same_refusal() -> None:
    access = Access("me", (Grant(READ, "orders"),))
    permit = Permit(access, WRITE)
    for biz_type in ("orders", "mail"):
        with pytest.raises(NotPermitted) as refused:
            permit.check(biz_type)
        assert refused.value.detail == f"This call needs the right to write to business {biz_type}."
    Permit(access, READ).check("orders")


def test_a_task_out_of_reach_is_answered_as_unknown() -> None:
    permit = Permit(Access("me", (Grant(READ, "orders"),)), WRITE)
    unknown = no_such_task()
    with pytest.raises(type(unknown)) as raised:
        permit.check_found("mail", unknown)
    assert raised.value is unknown
    with pytest.raises(NotPermitted):
        permit.check_found("orders", unknown)


def test_a_call_on_all_businesses_needs_a_grant_on_all() -> None:
    for businesses in ("orders", "a*"):
        with pytest.raises(NotPermitted):
            Permit(Access("me", (Grant(ADMIN, businesses),)), READ).check(ALL)
    ANYTHING.check(ALL)


@given(names, st.sampled_from(Right))
def test_an_anonymous_caller_has_no_permissions(biz_type: str, right: Right) -> None:
    assert not ANONYMOUS.may(right, biz_type)
    assert not ANONYMOUS.reaches(biz_type)
