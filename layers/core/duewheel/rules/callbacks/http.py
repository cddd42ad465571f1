"""The callback of type `http`, checked before it is stored.

A header that passes here can be sent as it is: it is one line, it is ASCII, and it is none
that the delivery itself sets or that would change how the call is framed. Nor is it one that a
receiver takes for such a header: CGI and WSGI write `webhook_id` as they write `webhook-id`.
"""

import re
from collections.abc import Sequence

from duewheel.rules.callbacks.payload_encoding import is_raw
from duewheel.rules.callbacks.secret_headers import (
    carries_secret,
    is_reference,
    is_shown_form,
    wrong_reference,
)
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.callbacks.url import parse_callback_url
from duewheel.rules.fields import Fields, invalid, joined_path
from duewheel.rules.refusals import TooLarge

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

_NO_LETTER_OR_DIGIT = re.compile(r"[^0-9a-z]")


def is_of_the_delivery(name: str) -> bool:
    """Also in the spellings that a receiver may take for its own."""
    read_as = _NO_LETTER_OR_DIGIT.sub("-", name.lower())
    return read_as in _FORBIDDEN_HEADERS or read_as.startswith(_FORBIDDEN_PREFIXES)


MEMBERS = ("url", "method", "headers", "body")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
HEADERS_MAX = 20
HEADERS_BYTES_MAX = 4_096

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[!-~ \t]*[!-~])?)?")


def http_callback(fields: Fields) -> HttpCallback:
    """A missing member is left to the business: it is empty."""
    fields.refuse_unknown(("type", *MEMBERS))
    method = (
        checked_method(fields.text("method"), fields.where("method")) if "method" in fields else ""
    )
    url = checked_url(fields.text("url"), fields.where("url")) if "url" in fields else ""
    headers = _headers(fields.nested("headers")) if "headers" in fields else ()
    return HttpCallback(url, method, headers, is_raw(fields))


def checked_method(method: str, path: str) -> str:
    if method not in METHODS:
        raise invalid(path, f"must be one of {', '.join(METHODS)}.")
    return method


def checked_url(url: str, path: str) -> str:
    try:
        parse_callback_url(url)
    except ValueError as error:
        raise invalid(path, f"{error}.") from error
    return url


def checked_headers(headers: Sequence[tuple[str, str]], path: str) -> tuple[tuple[str, str], ...]:
    """A name may come several times: each is a line of its own."""
    if len(headers) > HEADERS_MAX:
        raise invalid(path, f"must have at most {HEADERS_MAX} headers.")
    for name, value in headers:
        where = joined_path(path, name)
        if not _HEADER_NAME.fullmatch(name):
            raise invalid(where, "is no name that a header can have.")
        if is_of_the_delivery(name):
            raise invalid(where, "is a header that the delivery itself decides on.")
        if is_shown_form(value):
            raise invalid(
                where,
                "is what an answer shows of a secret, not the secret itself. Give the value, or "
                "leave callback out of the change, which keeps it.",
            )
        _check_reference(name, value, where)
        if not _HEADER_VALUE.fullmatch(value):
            raise invalid(
                where, "must be visible ASCII with blanks and tabs only between other characters."
            )
    if sum(len(name) + len(value) for name, value in headers) > HEADERS_BYTES_MAX:
        raise TooLarge(f"The headers are larger than {HEADERS_BYTES_MAX:,} bytes.", path)
    return tuple(headers)


def _check_reference(name: str, value: str, where: str) -> None:
    """A header with a reference gets a secret value, so it must be one of the headers whose values
    are not shown."""
    if wrong_reference(value):
        raise invalid(where, "has a {{secret:NAME}} that is malformed, or does not end the value.")
    if is_reference(value) and not carries_secret(name, value):
        raise invalid(where, "refers to a secret, and is no header whose value is hidden.")


def is_header_value(text: str) -> bool:
    return _HEADER_VALUE.fullmatch(text) is not None


def _headers(fields: Fields) -> tuple[tuple[str, str], ...]:
    if len(fields.members) > HEADERS_MAX:
        raise invalid(fields.path, f"must have at most {HEADERS_MAX} headers.")
    seen: set[str] = set()
    for name in fields:
        if name.lower() in seen:
            raise fields.invalid(name, "is given more than once, in another spelling.")
        seen.add(name.lower())
    return checked_headers([(name, fields.text(name)) for name in fields], fields.path)
