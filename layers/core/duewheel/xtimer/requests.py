"""The requests of the xTimer interface.

A body that xTimer's own server could not read is malformed; one that it could read, and that cannot
be carried out, is refused by its field. As there, unknown members are ignored.
"""

import json
import re
from collections.abc import Callable
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl

from msgspec import Meta, Struct
from msgspec.structs import replace

from duewheel.rules.callbacks.requests import METHODS, checked_headers, checked_method, checked_url
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.fields import decode, read_members, says
from duewheel.rules.refusals import InvalidField, MalformedBody, TooLarge
from duewheel.rules.tasks.requests import PAYLOAD_BYTES_MAX
from duewheel.rules.timers.payload_template import without_placeholders
from duewheel.rules.timers.requests import NOT_BLANK, NewTimer, checked_name
from duewheel.rules.timers.schedule import Dialect, Schedule
from duewheel.rules.timers.schedule_validation import CRON_CHARACTERS_MAX
from duewheel.rules.timers.timer import NAME_CHARACTERS_MAX
from duewheel.rules.timers.updates import BLANK, changed_rules
from duewheel.xtimer.app_names import biz_type_of

PAGE_SIZE_DEFAULT = 10
PAGE_SIZE_MAX = 100
RECORDS_MAX = 1_000  # how far back records are paged

_HEADER_VALUES_MAX = 100
_NUMBER = re.compile("(-?)0*([0-9]{1,20})[0-9]*")
T = TypeVar("T")
S = TypeVar("S")

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


XTimerId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
_Text = Annotated[str, Meta(min_length=1)]
# If they are too long, the rules of all timers refuse them.
_Name = Annotated[_Text, says(maxLength=NAME_CHARACTERS_MAX)]
_Cron = Annotated[
    _Text,
    says(
        "5 to 7 fields that name a time to come.", maxLength=CRON_CHARACTERS_MAX, pattern=NOT_BLANK
    ),
]
_Lines = Annotated[list[str], Meta(max_length=_HEADER_VALUES_MAX)]


class XTimerQuery(Struct):
    id: XTimerId
    app: _Text


class _PagedQuery(Struct, kw_only=True, rename={"index": "pageIndex", "size": "pageSize"}):
    index: Annotated[int, says("A smaller one than 1 counts as that.")] = 1
    size: Annotated[int, says(f"A larger one than {PAGE_SIZE_MAX} counts as that.")] = (
        PAGE_SIZE_DEFAULT
    )

    @property
    def paging(self) -> Paging:
        """As xTimer's own server reads it: a value that is not above 0 is the default."""
        size = self.size if self.size > 0 else PAGE_SIZE_DEFAULT
        return Paging(max(self.index, 1), min(size, PAGE_SIZE_MAX))


class XTimerListQuery(_PagedQuery, kw_only=True):
    app: _Text


class XTimerRecordsQuery(_PagedQuery, kw_only=True, rename={"timer_id": "timerID"}):
    timer_id: XTimerId
    app: str | None = None


def new_timer(body: str, now_ms: int) -> NewTimer:
    """It starts inactive."""
    read = _read(decode, body, XTimerDefinitionBody)
    callback = HttpCallback(
        checked_url(read.param.url, "notifyHTTPParam.url"),
        checked_method(read.param.method.upper(), "notifyHTTPParam.method"),
        headers=checked_headers(_headers(read.param), "notifyHTTPParam.header"),
        is_raw=True,
    )
    values = {
        "name": checked_name(read.name),
        "cron": read.cron,
        "callback": callback,
        "payload": _payload(read.param.body or ""),
    }
    rules = changed_rules(_BLANK, values, now_ms // 1000)
    return NewTimer(biz_type_of(read.app), rules, enabled=False)


class XTimerNamedBody(Struct):
    id: XTimerId
    app: _Text


class XTimerParamBody(Struct):
    url: _Text
    method: Annotated[_Text, says(f"{', '.join(METHODS)}, in any case.")]
    header: dict[str, _Lines | None] | None = None
    body: str | None = None


class XTimerDefinitionBody(Struct, rename={"param": "notifyHTTPParam"}):
    app: _Text
    name: _Name
    cron: _Cron
    param: XTimerParamBody


def named_in_body(body: str) -> Named:
    read = _read(decode, body, XTimerNamedBody)
    return Named(str(read.id), read.app)


def named_in_query(query: str) -> Named:
    read = _read(read_members, _parameters(query), XTimerQuery)
    return Named(str(read.id), read.app)


def timers_of(query: str) -> tuple[str, Paging]:
    """The app whose timers they are."""
    read = _read(read_members, _parameters(query), XTimerListQuery)
    return read.app, read.paging


def records_of(query: str) -> tuple[Named, Paging]:
    read = _read(read_members, _parameters(query), XTimerRecordsQuery)
    return Named(str(read.timer_id), read.app), read.paging


def _headers(param: XTimerParamBody) -> list[tuple[str, str]]:
    """A line for each value of each name."""
    header = param.header or {}
    return [(name, value) for name, values in header.items() for value in values or ()]


def _payload(text: str) -> str | None:
    """The notification body is this text as it is."""
    if not text:
        return None
    payload = without_placeholders(json.dumps(text, ensure_ascii=False))
    if len(payload.encode()) > PAYLOAD_BYTES_MAX:
        raise TooLarge(f"The body is larger than {PAYLOAD_BYTES_MAX:,} bytes.", "body")
    return payload


def _parameters(query: str) -> dict[str, str]:
    """The first of each name, as xTimer's own server reads them; an empty one counts as missing. A
    number keeps its first digits, which are more than any bound has."""
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        number = None if name == "app" else _NUMBER.fullmatch(value)
        parameters.setdefault(name, value if number is None else number[1] + number[2])
    return {name: value for name, value in parameters.items() if value}


def _read(read: Callable[[S, type[T]], T], source: S, kind: type[T]) -> T:
    try:
        return read(source, kind)
    except InvalidField as error:
        raise MalformedBody(error.detail, error.field) from error
