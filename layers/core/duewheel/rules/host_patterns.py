"""Which hosts a business's callbacks may go to: exact names, or all below one (`*.example.com`).

A pattern is kept as a URL's host is read, so the two compare letter by letter.
"""

from collections.abc import Iterable

from duewheel.rules.callback_url import parse_callback_url

PATTERNS_MAX = 50
_BELOW = "*."


def host_pattern(text: str) -> str:
    """Raise ValueError, with a reason meant for the caller, for what is no name of a host."""
    below = _BELOW if text.startswith(_BELOW) else ""
    name = text.removeprefix(_BELOW)
    if not name or any(mark in name for mark in "/?#:@*"):
        raise ValueError("this is no host: a name or an IPv4 address, or *. and a name")
    return below + parse_callback_url(f"https://{name}/").host


def is_allowed(host: str, patterns: Iterable[str]) -> bool:
    return any(
        host.endswith(pattern[1:]) if pattern.startswith(_BELOW) else host == pattern
        for pattern in patterns
    )
