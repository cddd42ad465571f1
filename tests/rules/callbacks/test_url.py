"""The URL of a callback is parsed in exactly one way, or refused with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.url import CallbackUrl, parse_callback_url
from tests.support.cases import each_case


@each_case(
    ("url", "parsed"),
    [
        ("https://example.com", CallbackUrl("https", "example.com", 443, "/")),
        ("http://example.com/a/b?c=d", CallbackUrl("http", "example.com", 80, "/a/b?c=d")),
        ("https://example.com?c=d", CallbackUrl("https", "example.com", 443, "/?c=d")),
        ("HTTPS://EXAMPLE.com.:8443/", CallbackUrl("https", "example.com", 8443, "/")),
        ("http://[2001:DB8::1]:8080/x", CallbackUrl("http", "2001:db8::1", 8080, "/x")),
        ("http://my_service:9000/", CallbackUrl("http", "my_service", 9000, "/")),
        ("http://bücher.example/", CallbackUrl("http", "xn--bcher-kva.example", 80, "/")),
        ("https://example.com/a%20b", CallbackUrl("https", "example.com", 443, "/a%20b")),
        ("https://example.com/?to=a@b:c", CallbackUrl("https", "example.com", 443, "/?to=a@b:c")),
    ],
)
def test_a_url_is_parsed(url: str, parsed: CallbackUrl) -> None:
    assert parse_callback_url(url) == parsed


@each_case(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7F000001", "１２７。0。0。1"],
)
def test_every_spelling_of_an_ipv4_host_becomes_its_dotted_form(host: str) -> None:
    assert parse_callback_url(f"http://{host}/").host == "127.0.0.1"


@each_case(
    ("url", "reason"),
    [
        ("", "http:// or https://"),
        ("example.com/x", "http:// or https://"),
        ("ftp://example.com/", "http:// or https://"),
        ("http:/example.com/", "http:// or https://"),
        ("javascript://example.com/", "http:// or https://"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("http://:80/", "no host"),
        ("http://./", "no host"),
        ("http://user@example.com/", "user name"),
        ("http://user:secret@example.com/", "user name"),
        ("http://public.example\\@10.0.0.1/", "user name"),
        ("http://example.com:0/", "port"),
        ("http://example.com:65536/", "port"),
        ("http://example.com:/", "port"),
        ("http://example.com:80:80/", "port"),
        ("http://example.com:+80/", "port"),
        ("http://example.com:٨٠/", "port"),
        ("http://example.com/a b", "white space"),
        ("http://example.com/\r\nx: y", "control"),
        (" http://example.com/", "white space"),
        ("http://example.com/#top", "fragment"),
        ("http://example.com#top", "fragment"),
        ("http://example.com/é", "not ASCII"),
        ("http://example.com/\ud800", "not ASCII"),
        ("http://\ud800/", "no valid name"),
        ("http://public.example\\.internal/", "no valid name"),
        ("http://a..b/", "no valid name"),
        ("http://%31%32%37.example/", "no valid name"),
        ("http://℀.example/", "no valid name"),
        ("http://" + "a" * 64 + "/", "no valid name"),
        ("http://" + "a." * 130 + "a/", "no valid name"),
        ("http://faß.example/", "ambiguous"),
        ("http://1.2.3.4.5/", "no IPv4"),
        ("http://256.1.1.1/", "no IPv4"),
        ("http://08.8.8.8/", "no IPv4"),
        ("http://4294967296/", "no IPv4"),
        ("http://example.0x/", "no IPv4"),
        ("http://" + "9" * 1_500 + "/", "no IPv4"),
        ("http://[::1", "malformed"),
        ("http://[::1]x/", "malformed"),
        ("http://[127.0.0.1]/", "malformed"),
        ("http://[fe80::1%25eth0]/", "zone"),
        ("http://example.com/" + "a" * 2_048, "longer"),
    ],
)
def test_an_invalid_url_is_refused_with_a_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_callback_url(url)


@each_case(
    ("url", "authority"),
    [
        ("http://example.com:80/", "example.com"),
        ("https://example.com:443/", "example.com"),
        ("https://example.com:80/", "example.com:80"),
        ("http://[::1]/", "[::1]"),
        ("http://[::1]:8080/", "[::1]:8080"),
    ],
)
def test_the_authority_contains_the_port_unless_it_is_the_default(url: str, authority: str) -> None:
    assert parse_callback_url(url).authority == authority


@given(st.text(max_size=60), st.text(max_size=20))
def test_an_accepted_url_is_valid_in_a_request_line_and_a_host_header(
    authority: str, rest: str
) -> None:
    try:
        url = parse_callback_url(f"http://{authority}{rest}")
    except ValueError:
        return
    for part in (url.host, url.target, url.authority):
        assert part.isascii()
        assert part.isprintable()
        assert " " not in part
    assert url.target.startswith("/")
    assert "@" not in url.host
