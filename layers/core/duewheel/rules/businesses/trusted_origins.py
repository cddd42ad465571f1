"""Origins to which a business's default headers go: scheme, host and port, the host by its name or
by all names below one (`https://*.example.com`).

A pattern is kept as a URL's origin is written, so the two compare letter by letter.
"""

from collections.abc import Iterable

from duewheel.rules.callbacks.url import CallbackUrl, parse_callback_url

_BELOW = "*."


def origin_of(url: str) -> str | None:
    """Without the scheme's default port; None if it is no URL."""
    try:
        return _origin(parse_callback_url(url))
    except ValueError:
        return None


def origin_pattern(text: str) -> str:
    """Raises ValueError, with a reason for the caller, if it is no origin."""
    scheme, _, rest = text.partition("://")
    below = _BELOW if rest.startswith(_BELOW) else ""
    name = rest.removeprefix(_BELOW)
    if not name or any(mark in name for mark in "/?#@*"):
        raise ValueError(
            "this is no origin, such as https://api.example.com or https://*.example.com"
        )
    return _origin(parse_callback_url(f"{scheme}://{name}/"), below)


def is_among(origin: str, patterns: Iterable[str]) -> bool:
    scheme, _, authority = origin.partition("://")
    return any(_matches(scheme, authority, pattern) for pattern in patterns)


def _origin(url: CallbackUrl, below: str = "") -> str:
    return f"{url.scheme}://{below}{url.authority}"


def _matches(scheme: str, authority: str, pattern: str) -> bool:
    pattern_scheme, _, rest = pattern.partition("://")
    if scheme != pattern_scheme:
        return False
    return authority.endswith(rest[1:]) if rest.startswith(_BELOW) else authority == rest
