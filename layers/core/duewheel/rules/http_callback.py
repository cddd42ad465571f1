"""The callback of type `http`, checked before it is stored.

A header that passes here can be sent as it is: it is one line, it is ASCII, and it is none
that the delivery itself sets or that would change how the call is framed.
"""

import re

from duewheel.rules.callback_url import parse_callback_url
from duewheel.rules.refusals import TooLarge
from duewheel.rules.task import HttpCallback
from duewheel.rules.task_fields import Fields, invalid

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
HEADERS_MAX = 20
HEADERS_BYTES_MAX = 4_096

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[!-~ \t]*[!-~])?)?")
_FORBIDDEN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_FORBIDDEN_PREFIXES = ("duewheel-", "proxy-", "webhook-")


def http_callback(fields: Fields, *, is_raw: bool) -> HttpCallback:
    """What is left out is left to the business: it is empty."""
    fields.refuse_unknown(("type", "url", "method", "headers", "body"))
    method = fields.text("method") if "method" in fields else ""
    if "method" in fields and method not in METHODS:
        raise fields.invalid("method", f"must be one of {', '.join(METHODS)}.")
    headers = _headers(fields.nested("headers")) if "headers" in fields else ()
    return HttpCallback(_url(fields) if "url" in fields else "", method, headers, is_raw)


def _url(fields: Fields) -> str:
    url = fields.text("url")
    try:
        parse_callback_url(url)
    except ValueError as error:
        raise fields.invalid("url", f"{error}.") from error
    return url


def _headers(fields: Fields) -> tuple[tuple[str, str], ...]:
    if len(fields.members) > HEADERS_MAX:
        raise invalid(fields.path, f"must have at most {HEADERS_MAX} headers.")
    headers = []
    seen: set[str] = set()
    for name in fields.members:
        _check_header_name(fields, name)
        if name.lower() in seen:
            raise fields.invalid(name, "is given more than once, in another spelling.")
        seen.add(name.lower())
        headers.append((name, _header_value(fields, name)))
    if sum(len(name) + len(value) for name, value in headers) > HEADERS_BYTES_MAX:
        raise TooLarge(f"The headers are larger than {HEADERS_BYTES_MAX:,} bytes.", fields.path)
    return tuple(headers)


def _check_header_name(fields: Fields, name: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise fields.invalid(name, "is no name that a header can have.")
    if name.lower() in _FORBIDDEN_HEADERS or name.lower().startswith(_FORBIDDEN_PREFIXES):
        raise fields.invalid(name, "is a header that the delivery itself decides on.")


def _header_value(fields: Fields, name: str) -> str:
    value = fields.text(name)
    if not _HEADER_VALUE.fullmatch(value):
        raise fields.invalid(
            name, "must be visible ASCII with blanks and tabs only between other characters."
        )
    return value
