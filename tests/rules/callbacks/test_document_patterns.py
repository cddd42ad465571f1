"""The patterns by which the API document describes hosts, origins and URLs."""

import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.businesses.trusted_origins import origin_pattern
from duewheel.rules.callbacks.url import (
    HOST_PATTERN,
    ORIGIN_PATTERN,
    URL,
    host_pattern,
    parse_callback_url,
)
from tests.support.cases import each_case

Check = Callable[[str], object]

SCHEMES = ("http://", "HTTPS://", "ftp://")
HOSTS = ("*.", "*", ".", "a", "Ab-c_1", "ü", "。", "ß", "[::1]", "127.0.0.1", "0x7f")
OTHERS = (":", ":80", ":0", "/", "/p?q=1", "?", "#", "@", " ", "\n", "\\", "%41")
PIECES = st.sampled_from((*SCHEMES, *HOSTS, *OTHERS))
TEXTS = st.lists(PIECES, max_size=6).map("".join)


def is_taken(check: Check, text: str) -> bool:
    try:
        check(text)
    except ValueError:
        return False
    return True


@given(TEXTS)
def test_what_the_service_takes_is_in_the_document(text: str) -> None:
    for check, pattern in (
        (host_pattern, HOST_PATTERN),
        (origin_pattern, ORIGIN_PATTERN),
        (parse_callback_url, URL),
    ):
        if is_taken(check, text):
            assert re.search(pattern, text), pattern


@each_case(
    ("check", "pattern", "forbidden", "allowed"),
    [
        (host_pattern, HOST_PATTERN, "https://a.example", "a.example"),
        (host_pattern, HOST_PATTERN, "a.example:443", "*.a.example"),
        (host_pattern, HOST_PATTERN, "*", "10.0.0.1"),
        (host_pattern, HOST_PATTERN, "", "bücher.example"),
        (origin_pattern, ORIGIN_PATTERN, "a.example", "https://a.example"),
        (origin_pattern, ORIGIN_PATTERN, "https://a.example/", "https://*.a.example:8443"),
        (origin_pattern, ORIGIN_PATTERN, "https://", "http://[::1]:80"),
        (parse_callback_url, URL, "http://", "http://a"),
        (parse_callback_url, URL, "http:///path", "http://a/path"),
        (parse_callback_url, URL, "http://a b", "http://a?b"),
    ],
)
def test_both_forbid_and_allow(check: Check, pattern: str, forbidden: str, allowed: str) -> None:
    assert not re.search(pattern, forbidden)
    assert not is_taken(check, forbidden)
    assert re.search(pattern, allowed)
    assert is_taken(check, allowed)
