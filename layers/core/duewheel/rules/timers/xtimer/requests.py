"""The requests of the xTimer interface.

A body that xTimer's own server could not read is malformed; one that it could read, and that cannot
be carried out, is refused by its field. As there, unknown members are ignored.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Self
from urllib.parse import parse_qsl

from msgspec import Meta, Struct
from msgspec.structs import replace

from duewheel.rules.callbacks.http import checked_headers, checked_method, checked_url
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.fields import decode, invalid
from duewheel.rules.refusals import InvalidField, MalformedBody, TooLarge
from duewheel.rules.tasks.requests import PAYLOAD_BYTES_MAX
from duewheel.rules.timers.payload_template import without_placeholders
from duewheel.rules.timers.requests import NewTimer, checked_cron, checked_name
from duewheel.rules.timers.schedule import Dialect, Schedule
from duewheel.rules.timers.updates import BLANK, changed_rules
from duewheel.rules.timers.xtimer.app_names import biz_type_of

PAGE_SIZE_DEFAULT = 10
PAGE_SIZE_MAX = 100
RECORDS_MAX = 1_000  # how far back records are paged

_ID_BEYOND = 2**63
_HEADER_VALUES_MAX = 100
_BLANK = replace(BLANK, schedule=Schedule(dialect=Dialect.CRONEXPR))


class Named(Struct, frozen=True):
    """A timer, and the app that claims it; None where a call names no app."""

    timer_id: str
    app: str | None


class Paging(Struct, frozen=True):
    index: int  # from 1
    size: int

    @property
    def first(self) -> int:
        return (self.index - 1) * self.size

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Self:
        """As xTimer's own server reads them: a value that is not above 0 is the default."""
        index = _whole(parameters, "pageIndex") or 1
        return cls(max(index, 1), min(_size(parameters), PAGE_SIZE_MAX))


def new_timer(body: str, now_ms: int) -> NewTimer:
    """It starts inactive."""
    read = _definition(body)
    callback = HttpCallback(
        checked_url(read.param.url, "notifyHTTPParam.url"),
        checked_method(read.param.method.upper(), "notifyHTTPParam.method"),
        checked_headers(_headers(read.param), "notifyHTTPParam.header"),
        is_raw=True,
    )
    values = {
        "name": checked_name(read.name),
        "cron": checked_cron(read.cron),
        "callback": callback,
        "payload": _payload(read.param.body or ""),
    }
    rules = changed_rules(_BLANK, values, now_ms // 1000)
    return NewTimer(biz_type_of(read.app), rules, enabled=False)


class _NamedBody(Struct, rename="camel"):
    id: Annotated[int, Meta(ge=1, le=_ID_BEYOND - 1)]
    app: str


def named_in_body(body: str) -> Named:
    try:
        read = decode(body, _NamedBody)
        return Named(str(read.id), _filled(read.app, "app"))
    except InvalidField as error:
        raise _malformed(error) from error


def named_in_query(query: str) -> Named:
    parameters = _parameters(query)
    return Named(_id(parameters, "id"), _required_parameter(parameters, "app"))


def timers_of(query: str) -> tuple[str, Paging]:
    """The app whose timers they are."""
    parameters = _parameters(query)
    return _required_parameter(parameters, "app"), Paging.of(parameters)


def records_of(query: str) -> tuple[Named, Paging]:
    parameters = _parameters(query)
    named = Named(_id(parameters, "timerID"), parameters.get("app") or None)
    return named, Paging.of(parameters)


class _Param(Struct):
    url: str
    method: str
    header: dict[str, list[str] | None] | None = None
    body: str | None = None


class _Definition(Struct, rename={"param": "notifyHTTPParam"}):
    app: str
    name: str
    cron: str
    param: _Param


def _definition(body: str) -> _Definition:
    try:
        read = decode(body, _Definition)
        for name in ("app", "name", "cron"):
            _filled(getattr(read, name), name)
        for name in ("url", "method"):
            _filled(getattr(read.param, name), f"notifyHTTPParam.{name}")
    except InvalidField as error:
        raise _malformed(error) from error
    return read


def _headers(param: _Param) -> list[tuple[str, str]]:
    """A line for each value of each name."""
    header = param.header or {}
    for name, values in header.items():
        if len(values or ()) > _HEADER_VALUES_MAX:
            reason = f"notifyHTTPParam.header.{name}: has more than {_HEADER_VALUES_MAX} values."
            raise MalformedBody(reason, "notifyHTTPParam.header")
    return [(name, value) for name, values in header.items() for value in values or ()]


def _payload(text: str) -> str | None:
    """A string that means nothing but itself: the body is its very text."""
    if not text:
        return None
    payload = without_placeholders(json.dumps(text, ensure_ascii=False))
    if len(payload.encode()) > PAYLOAD_BYTES_MAX:
        raise TooLarge(f"The body is larger than {PAYLOAD_BYTES_MAX:,} bytes.", "body")
    return payload


def _filled(text: str, name: str) -> str:
    if not text:
        raise invalid(name, "is empty.")
    return text


def _parameters(query: str) -> dict[str, str]:
    """The first of each name, as its own server takes them."""
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters.setdefault(name, value)
    return parameters


def _required_parameter(parameters: Mapping[str, str], name: str) -> str:
    if not parameters.get(name):
        raise MalformedBody(f"{name}: is missing.", name)
    return parameters[name]


def _id(parameters: Mapping[str, str], name: str) -> str:
    _required_parameter(parameters, name)
    number = _whole(parameters, name)
    if number is None or not 1 <= number < _ID_BEYOND:
        raise MalformedBody(f"{name}: must be a whole number from 1.", name)
    return str(number)


def _size(parameters: Mapping[str, str]) -> int:
    size = _whole(parameters, "pageSize") or 0
    return size if size > 0 else PAGE_SIZE_DEFAULT


def _whole(parameters: Mapping[str, str], name: str) -> int | None:
    text = parameters.get(name, "")
    if not text:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise MalformedBody(f"{name}: must be a whole number.", name)
    return int(text)


def _malformed(error: InvalidField) -> MalformedBody:
    return MalformedBody(error.detail, error.field)
