"""Parameters of a request for a list; any other is refused by its name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.refusals import InvalidField
from duewheel.rules.tasks.listing import ListQuery, ListRequest, Order, list_request
from duewheel.rules.tasks.task import Status
from tests.support.cases import each_case

NOON_MS = 1_893_499_200_000  # 2030-01-01T12:00:00Z


def test_a_list_without_parameters_is_of_all_businesses() -> None:
    assert list_request("biz_type=orders") == ListRequest(ListQuery("orders"), 50, None)
    assert list_request("") == ListRequest(ListQuery(""), 50, None)


def test_all_parameters_are_read() -> None:
    assert list_request(
        "biz_type=orders&status=dead&due_from=2030-01-01T12:00:00Z&due_to=2030-01-01T12:00:00.001Z"
        "&order=desc&limit=100&cursor=abc_-"
    ) == ListRequest(
        ListQuery(
            "orders", Status.DEAD, due_from_ms=NOON_MS, due_to_ms=NOON_MS + 1, order=Order.DESC
        ),
        100,
        "abc_-",
    )


@each_case("encoded", ["+02:00", "%2B02:00", "%2b02%3A00"])
def test_an_offset_is_read_encoded_or_not(encoded: str) -> None:
    request = list_request(f"biz_type=orders&due_from=2030-01-01T14:00:00{encoded}")
    assert request.query.due_from_ms == NOON_MS


@each_case("query", ["&biz_type=orders", "biz_type=orders&&", "biz%5Ftype=order%73"])
def test_equivalent_spellings_of_a_query_are_read_alike(query: str) -> None:
    assert list_request(query).query == ListQuery("orders")


@each_case(
    ("query", "field"),
    [
        ("biz_type=", "biz_type"),
        ("biz_type", "biz_type"),
        ("biz_type=Orders", "biz_type"),
        ("biz_type=orders%0A", "biz_type"),
        ("biz_type=a%23b", "biz_type"),
        ("biz_type=" + "a" * 64, "biz_type"),
        ("biz_type=a&biz_type=a", "biz_type"),
        ("biz_type=%FF", "biz_type"),
        ("%FF=a", "%FF"),
        ("biz_type=a&status=", "status"),
        ("biz_type=a&status=PENDING", "status"),
        ("biz_type=a&status=pending,dead", "status"),
        ("biz_type=a&status=dead&status=pending", "status"),
        ("biz_type=a&due_from=now", "due_from"),
        ("biz_type=a&due_from=2030-01-01", "due_from"),
        ("biz_type=a&due_from=2030-01-01T12:00:00", "due_from"),
        ("biz_type=a&due_to=1893499200000", "due_to"),
        ("biz_type=a&due_from=2030-01-01T12:00:00Z&due_to=2030-01-01T12:00:00Z", "due_to"),
        ("biz_type=a&due_from=2030-01-01T12:00:00Z&due_to=2029-01-01T12:00:00Z", "due_to"),
        ("biz_type=a&order=up", "order"),
        ("biz_type=a&limit=0", "limit"),
        ("biz_type=a&limit=101", "limit"),
        ("biz_type=a&limit=-1", "limit"),
        ("biz_type=a&limit=5.5", "limit"),
        ("biz_type=a&limit=null", "limit"),
        ("biz_type=a&status=null", "status"),
        ("biz_type=a&due_from=null", "due_from"),
        ("biz_type=a&limit=" + "9" * 5_000, "limit"),
        ("biz_type=a&limit=٥", "limit"),
        ("biz_type=a&key=b", "key"),
        ("biz_type=a&Limit=5", "Limit"),
        ("biz_type=a&=5", ""),
        ("biz_type=a&" + "x" * 500, "x" * 100 + "…"),
    ],
)
def test_an_invalid_parameter_is_refused_by_its_name(query: str, field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        list_request(query)
    assert refused.value.field == field


@given(st.text())
def test_any_text_is_read_or_refused(query: str) -> None:
    try:
        found = list_request(query)
    except InvalidField:
        return
    assert (query.strip("&"), found) == ("", ListRequest(ListQuery()))
