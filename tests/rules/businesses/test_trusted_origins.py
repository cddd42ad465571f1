"""The origins to which a business's own headers go."""

from duewheel.rules.businesses.settings import Business, Defaults, Own
from duewheel.rules.businesses.trusted_origins import origin_pattern
from duewheel.rules.callbacks.types import HttpCallback
from tests.support.cases import each_case

LISTED = (
    "https://Api.example.com",
    "https://*.below.example",
    "http://a.example:8080",
    "https://[::1]",
)
USUAL = HttpCallback("https://own.example/hook", headers=(("authorization", "a"),))


def business(*listed: str) -> Business:
    own = Own(callback=USUAL, trusted_origins=tuple(map(origin_pattern, listed)) or None)
    return Business("orders", Defaults(30, 10.0, 30.0), own=own)


@each_case(
    "url",
    [
        *(
            "https://api.example.com/a?b",
            "https://API.example.com:443",
            "https://api.example.com./",
        ),
        *("https://a.below.example/", "https://a.b.below.example/", "http://a.example:8080/"),
        *("https://[::1]/", "https://own.example/elsewhere"),
    ],
)
def test_listed_origins_and_the_origin_of_the_default_callback_are_trusted(url: str) -> None:
    assert business(*LISTED).trusts(HttpCallback(url))


@each_case(
    "url",
    [
        *("http://api.example.com/", "https://api.example.com:8443/", "https://example.com/"),
        *("https://api.example.com.evil.example/", "https://evil-api.example.com/"),
        *("https://below.example/", "https://evilbelow.example/", "https://a.below.example:444/"),
        *("http://a.below.example/", "http://a.example/", "https://a.example:8080/"),
        *("http://own.example/hook", "https://own.example:8443/", "https://www.own.example/"),
        *("https://user@own.example/", "https://own.example\\@evil.example/", "no URL", ""),
    ],
)
def test_other_origins_are_not_trusted(url: str) -> None:
    assert not business(*LISTED).trusts(HttpCallback(url))


def test_without_a_list_only_the_origin_of_the_default_callback_is_trusted() -> None:
    assert business().trusts(HttpCallback("https://own.example:443/"))
    assert not business().trusts(HttpCallback("https://api.example.com/"))
