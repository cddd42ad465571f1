"""The settings of a business: hosts, status lists and default callbacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.businesses.settings import Business, Defaults, Own
from duewheel.rules.callbacks.outcome import (
    RETRY_DEFAULT,
    STOP_DEFAULT,
    StatusLists,
    status_lists,
)
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.callbacks.url import host_pattern, is_allowed
from duewheel.rules.tasks.effective_callback import completed
from tests.support.cases import each_case

entries = st.lists(
    st.integers(300, 599) | st.sampled_from(["3xx", "4xx", "5xx"]), unique=True, max_size=5
).map(tuple)


@each_case(
    ("pattern", "host", "allowed"),
    [
        ("example.com", "example.com", True),
        ("Example.COM.", "example.com", True),
        ("example.com", "a.example.com", False),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "badexample.com", False),
        ("b\u00fccher.example", "xn--bcher-kva.example", True),
        ("0x7f.1", "127.0.0.1", True),
    ],
)
def test_a_host_is_allowed_by_its_name_or_by_a_wildcard_of_a_parent_domain(
    pattern: str, host: str, allowed: bool
) -> None:
    assert is_allowed(host, [host_pattern(pattern)]) is allowed


@each_case(
    "text", ["", "*", "*.", "a.*", "a/b", "a:80", "u@a", "https://a", "a b", "a?", "a#", "**.a"]
)
def test_an_invalid_host_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|white space"):
        host_pattern(text)


@each_case(
    ("statuses", "stops"),
    [
        ((401, 403, 404, 408, 409, 425, 429, 500, 503, 599), False),
        ((301, 302, 304, 400, 405, 410, 413, 414, 415, 422), True),
    ],
)
def test_the_default_lists_stop_at_redirects_and_at_some_client_errors(
    statuses: tuple[int, ...], stops: bool
) -> None:
    assert {StatusLists().stops(status) for status in statuses} == {stops}


def test_a_single_status_takes_precedence_over_its_class() -> None:
    lists = status_lists((429,), ("4xx", 500))
    assert [lists.stops(status) for status in (404, 429, 500, 501, 302)] == [
        True,
        False,
        True,
        False,
        False,
    ]


@given(st.none() | entries, st.none() | entries)
def test_lists_of_a_business_take_precedence_over_the_default_lists(
    retry: tuple[int | str, ...] | None, stop: tuple[int | str, ...] | None
) -> None:
    lists = status_lists(retry, stop)
    if retry is None or stop is None:
        assert lists.in_both == []
    if stop is not None:
        assert all(lists.stops(status) for status in stop if isinstance(status, int))
        assert lists.stop == stop
    elif retry is not None:
        assert not any(lists.stops(status) for status in retry if isinstance(status, int))
    assert {*lists.retry, *lists.stop} <= {
        *RETRY_DEFAULT,
        *STOP_DEFAULT,
        *(retry or stop or ()),
        *(stop or ()),
    }


names = st.sampled_from(["a", "A", "b", "C"])
headers = st.dictionaries(names, st.text("xyz", max_size=2), max_size=3).map(
    lambda found: tuple({name.lower(): (name, value) for name, value in found.items()}.values())
)
callbacks = st.builds(
    HttpCallback,
    st.sampled_from(["", "https://a/", "https://b/"]),
    st.sampled_from(["", "PUT", "GET"]),
    headers,
)


@given(st.none() | callbacks, st.none() | callbacks)
def test_missing_fields_of_a_callback_are_filled_in_from_the_business(
    own: HttpCallback | None, usual: HttpCallback | None
) -> None:
    listed = ("https://a", "https://b")
    business = Business(
        "orders", Defaults(30, 10.0, 30.0), own=Own(callback=usual, trusted_origins=listed)
    )
    whole = completed(own, business)
    from_task, filled = own or HttpCallback("", ""), usual or HttpCallback("", "")
    if not (from_task.url or filled.url):
        assert whole is None
        return
    assert isinstance(whole, HttpCallback)
    assert whole.url == (from_task.url or filled.url)
    assert whole.method == (from_task.method or filled.method or "POST")
    by_name = {name.lower(): value for name, value in whole.headers}
    assert len(by_name) == len(whole.headers)
    expected = {name.lower(): value for name, value in (*filled.headers, *from_task.headers)}
    assert by_name == expected
