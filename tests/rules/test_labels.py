"""Labels: what is taken, and which tasks a filter takes."""

from typing import Any

import pytest

from duewheel.rules.cursors import opened, sealed
from duewheel.rules.labels import has_all, labels_from, wanted_labels
from duewheel.rules.refusals import InvalidField
from duewheel.rules.tasks.listing import ListQuery, list_request, question_of
from tests.support.cases import each_case

BILLING = (("team", "billing"),)
LONGEST = "a" * 63
SECRET = bytes(32)


def test_labels_are_equal_in_whatever_order_they_are_given() -> None:
    given = labels_from({"team": "billing", "order": "17"})
    assert given == labels_from({"order": "17", "team": "billing"})
    assert given == (("order", "17"), ("team", "billing"))


@each_case("members", [{}, {LONGEST: "b" * 128}, {"a/b.c_d-E": "é: 💡 x"}])
def test_names_and_values_are_taken_as_documented(members: dict[str, str]) -> None:
    assert labels_from(members) == tuple(members.items())


@each_case(
    ("members", "field"),
    [
        ({f"n{number}": "v" for number in range(9)}, "labels"),
        ({"": "v"}, "labels"),
        ({"-a": "v"}, "labels.-a"),
        ({"a b": "v"}, "labels.a b"),
        ({"a:b": "v"}, "labels.a:b"),
        ({"a\n": "v"}, "labels.a\n"),
        ({LONGEST + "a": "v"}, f"labels.{LONGEST}a"),
        ({"a": ""}, "labels.a"),
        ({"a": " v"}, "labels.a"),
        ({"a": "v\n"}, "labels.a"),
        ({"a": "v" * 129}, "labels.a"),
        ({"a": 1}, "labels.a"),
        ({"a": None}, "labels.a"),
    ],
)
def test_other_labels_are_refused_by_their_path(members: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        labels_from(members)
    assert caught.value.field == field


def test_a_filter_takes_what_has_all_of_its_labels() -> None:
    both = labels_from({"team": "billing", "order": "17"})
    assert has_all(both, wanted_labels(["team:billing", "order:17", "team:billing"]))
    assert has_all(both, ())
    assert not has_all(both, wanted_labels(["team:billing", "order:18"]))
    assert not has_all(both, wanted_labels(["team:billing", "team:sales"]))
    assert not has_all((), BILLING)


def test_the_value_of_a_filter_begins_behind_its_first_colon() -> None:
    assert wanted_labels(["at:09:30"]) == (("at", "09:30"),)


@each_case(
    ("texts", "field"),
    [
        (["team"], "label"),
        ([""], "label"),
        ([":v"], "label"),
        (["team:"], "label.team"),
        ([f"n{number}:v" for number in range(9)], "label"),
    ],
)
def test_another_filter_is_refused(texts: list[str], field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        wanted_labels(texts)
    assert caught.value.field == field


def test_a_parameter_of_labels_alone_may_be_repeated() -> None:
    query = list_request("biz_type=a&label=b:1&label=a:2").query
    assert query == ListQuery("a", labels=(("a", "2"), ("b", "1")))
    with pytest.raises(InvalidField, match="more than once"):
        list_request("biz_type=a&label=b:1&biz_type=a")


def test_a_cursor_is_good_for_the_same_labels_alone() -> None:
    cursor = sealed("here", question_of(ListQuery("a", labels=BILLING)), SECRET)
    again = list_request("biz_type=a&label=team:billing").query
    assert opened(cursor, question_of(again), SECRET) == "here"
    for other in (ListQuery("a"), ListQuery("a", labels=(("team", "sales"),))):
        with pytest.raises(InvalidField):
            opened(cursor, question_of(other), SECRET)
