"""A callback's URL, taken apart once and strictly, and the patterns of hosts it may name.

Create and the HTTP target read a URL through this one function, so the URL that was checked is the
URL that is called. Nothing is guessed, stripped or decoded. A spelling that two parsers could read
as different hosts is refused. A pattern is a name, or all names below one (`*.example.com`). It is
stored as a URL's host is read, so the two compare letter by letter.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address

from msgspec import Struct

from duewheel.rules.callbacks.egress import ipv4_by_any_spelling
from duewheel.rules.callbacks.types import AwsCallback, HttpCallback

URL_LENGTH_MAX = 2_048
DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_HOST_LENGTH_MAX = 253
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_AUTHORITY_END = re.compile(r"[/?#]")
# For the API document: as much of the rules as a pattern can express.
_LABEL = r"(?:[0-9A-Za-z_-]|[^\x00-\x7f])+"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*\.?"
_SCHEME = "[hH][tT][tT][pP][sS]?://"
_AUTHORITY = rf"(?:\[[0-9A-Fa-f:.]+\]|{_NAME})(?::[0-9]{{1,5}})?"
URL = rf'^{_SCHEME}{_AUTHORITY}(?:[/?][!"$-~]*)?$'
HOST_PATTERN = rf"^(?:\*\.)?{_NAME}$"
ORIGIN_PATTERN = rf"^{_SCHEME}(?:\*\.)?{_AUTHORITY}$"
# IDNA 2003 and 2008 map these to different names, which may have different owners.
_IDNA_DEVIATIONS = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")


class CallbackUrl(Struct, frozen=True):
    """`host` is lower-case ASCII (an IPv6 literal without brackets); `target` is path and query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port as the Host header carries them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@lru_cache(maxsize=256)  # the tasks of a page often have the same URL
def parse_callback_url(url: str) -> CallbackUrl:
    """Raises ValueError, with a reason for the caller, if the URL cannot be called."""
    if len(url) > URL_LENGTH_MAX:
        raise ValueError(f"the URL is longer than {URL_LENGTH_MAX:,} characters")
    if any(character <= " " or character == "\x7f" for character in url):
        raise ValueError("the URL contains white space or control characters")
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in DEFAULT_PORTS:
        raise ValueError("the URL does not begin with http:// or https://")
    end = _AUTHORITY_END.search(rest)
    authority, target = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    host, port = _host_and_port(authority)
    return CallbackUrl(scheme, host, port or DEFAULT_PORTS[scheme], _target(target))


def host_of(callback: object) -> str | None:
    """Host and port of an HTTP callback, which share a breaker. Other targets have none."""
    if not isinstance(callback, HttpCallback):
        return None
    try:
        return parse_callback_url(callback.url).authority
    except ValueError:
        return None


def called_at(callback: object) -> str | None:
    """The host of a callback, or the name of its resource."""
    return callback.resource if isinstance(callback, AwsCallback) else host_of(callback)


def _target(text: str) -> str:
    if "#" in text:
        raise ValueError("the URL has a fragment, which is never sent")
    if not text.isascii():
        raise ValueError("the URL's path or query is not ASCII; percent-encode it")
    return text if text.startswith("/") else f"/{text}"


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise ValueError("the URL carries a user name or password")
    if authority.startswith("["):
        literal, bracket, after = authority[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise ValueError("the URL's IPv6 host is malformed")
        return _ipv6(literal), _port(after[1:]) if after else None
    host, colon, port = authority.partition(":")
    return _name_or_ipv4(host), _port(port) if colon else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65_535):
        raise ValueError("the URL's port is no number from 1 to 65535")
    return int(text)


def _ipv6(literal: str) -> str:
    if "%" in literal:
        raise ValueError("the URL's IPv6 host has a zone")
    try:
        return IPv6Address(literal).compressed
    except AddressValueError as error:
        raise ValueError("the URL's IPv6 host is malformed") from error


def _name_or_ipv4(text: str) -> str:
    host = _ascii_name(text).removesuffix(".")
    if not host:
        raise ValueError("the URL has no host")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        # A name never ends in a number: resolvers read such a host as an IPv4 address.
        ipv4 = ipv4_by_any_spelling(host)
        if ipv4 is None:
            raise ValueError("the URL's host ends in a number but is no IPv4 address")
        return str(ipv4)
    if len(host) > _HOST_LENGTH_MAX or not _HOST.fullmatch(host):
        raise ValueError("the URL's host is no valid name")
    return host


def _ascii_name(text: str) -> str:
    if text.isascii():
        return text.lower()
    if not _IDNA_DEVIATIONS.isdisjoint(text):
        raise ValueError("the URL's host is ambiguous; write it in its ASCII form (xn--)")
    try:
        return text.encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise ValueError("the URL's host is no valid name") from error


PATTERNS_MAX = 50
_BELOW = "*."


def host_pattern(text: str) -> str:
    """Raises ValueError, with a reason for the caller, if it is no host name."""
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
