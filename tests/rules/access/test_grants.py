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

# Few letters, so that names and beginnings meet each other often.
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
def test_a_grant_covers_a_business_by_its_name_or_by_its_beginning(
    businesses: str, covered: list[str], not_covered: list[str]
) -> None:
    grant = Grant(READ, businesses)
    assert [name for name in covered if not grant.covers(name)] == []
    assert [name for name in not_covered if grant.covers(name)] == []


@each_case("text", ["orders", "orders-*", "o*", "*", "a" * 63, "a" * 63 + "*"])
def test_what_stands_for_businesses(text: str) -> None:
    assert are_businesses(text)


@each_case(
    "text", ["", "**", "-*", "*a", "a*b", "Orders", "orders\n", "a b", "a,b", "a:b", "a" * 64 + "*"]
)
def test_what_stands_for_no_businesses(text: str) -> None:
    assert not are_businesses(text)


def test_a_right_includes_those_before_it() -> None:
    included = [[one.includes(other) for other in Right] for one in Right]
    assert included == [[True, False, False], [True, True, False], [True, True, True]]


@given(grants, grants, st.sampled_from(Right), names)
def test_what_a_grant_includes_it_permits(
    one: Grant, other: Grant, right: Right, biz_type: str
) -> None:
    if one.includes(other) and Access("", (other,)).may(right, biz_type):
        assert Access("", (one,)).may(right, biz_type)


@given(some_grants, some_grants, st.sampled_from(Right), names)
def test_nobody_can_grant_what_they_may_not_do(
    mine: tuple[Grant, ...], wanted: tuple[Grant, ...], right: Right, biz_type: str
) -> None:
    me = Access("me", mine)
    if me.may_grant(wanted) and Access("new", wanted).may(right, biz_type):
        assert me.may(ADMIN, biz_type)


def test_who_is_no_admin_grants_nothing() -> None:
    assert not Access("me", (Grant(WRITE, ALL),)).may_grant([Grant(READ, "orders")])


def test_an_admin_of_one_business_grants_on_that_alone() -> None:
    me = Access("me", (Grant(ADMIN, "orders-*"), Grant(WRITE, ALL)))
    assert me.may_grant([Grant(ADMIN, "orders-*"), Grant(READ, "orders-eu")])
    for businesses in ("orders", "orders*", ALL, "mail"):
        assert not me.may_grant([Grant(READ, "orders-eu"), Grant(READ, businesses)])


@given(some_grants.filter(bool))
def test_grants_travel_as_text(some: tuple[Grant, ...]) -> None:
    assert grants_of(grants_text(some)) == some


@each_case(
    "text", ["", "read", "read:", ":orders", "own:orders", "read:Orders", "read:a,", "read:a b"]
)
def test_text_that_grants_nothing_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the caller asks for no more
        grants_of(text)


def test_a_business_out_of_reach_and_a_right_too_low_are_refused_alike() -> None:
    access = Access("me", (Grant(READ, "orders"),))
    permit = Permit(access, WRITE)
    for biz_type in ("orders", "mail"):
        with pytest.raises(NotPermitted) as refused:
            permit.check(biz_type)
        assert refused.value.detail == f"This call needs the right to write to business {biz_type}."
    Permit(access, READ).check("orders")


def test_what_is_found_out_of_reach_is_as_if_it_were_not_there() -> None:
    permit = Permit(Access("me", (Grant(READ, "orders"),)), WRITE)
    unknown = no_such_task()
    with pytest.raises(type(unknown)) as raised:
        permit.check_found("mail", unknown)
    assert raised.value is unknown
    with pytest.raises(NotPermitted):
        permit.check_found("orders", unknown)


def test_all_businesses_are_more_than_any_number_of_them() -> None:
    for businesses in ("orders", "a*"):
        with pytest.raises(NotPermitted):
            Permit(Access("me", (Grant(ADMIN, businesses),)), READ).check(ALL)
    ANYTHING.check(ALL)


@given(names, st.sampled_from(Right))
def test_nobody_may_do_anything(biz_type: str, right: Right) -> None:
    assert not ANONYMOUS.may(right, biz_type)
    assert not ANONYMOUS.reaches(biz_type)
