"""Requests on timers: bodies and query strings.

A member sets its field, and `null` sets it back to its default. Each field is checked by itself
here, and all of them together where they are applied. A payload is any JSON, so its null is a
value.
"""

import math
import re
from collections.abc import Callable, Collection
from datetime import date
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct

from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.requests import callback_from
from duewheel.rules.callbacks.retry import retry_from
from duewheel.rules.fields import SECONDS_MIN, Fields, invalid
from duewheel.rules.instants import NoInstant, ms_from_rfc3339
from duewheel.rules.names import AHEAD_SECONDS_MAX, checked_biz_type
from duewheel.rules.query_string import Parameters
from duewheel.rules.refusals import MalformedBody
from duewheel.rules.tasks.requests import payload_from
from duewheel.rules.tasks.task import Status
from duewheel.rules.timers.payload_template import wrong_placeholder
from duewheel.rules.timers.schedule import DstGap, DstOverlap
from duewheel.rules.timers.schedule_validation import CRON_CHARACTERS_MAX, EXCLUDE_MAX
from duewheel.rules.timers.timer import NAME_CHARACTERS_MAX, Misfire, Overlap, Rules
from duewheel.rules.timers.updates import BLANK, changed_rules
from duewheel.rules.wheel.addresses import SECOND_MAX

TIMEZONE_CHARACTERS_MAX = 64
EVERY_SECONDS_MAX = 366 * 86_400
RUNS_MAX = 1_000_000_000
JITTER_SECONDS_MAX = 86_399
GRACE_SECONDS_MAX = 30 * 86_400

NAME_IS = f"must be 1 to {NAME_CHARACTERS_MAX} printable characters, no blank first or last."

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
SCHEDULE_FIELDS = (
    "cron",
    "every_seconds",
    "timezone",
    "start_at",
    "end_at",
    "max_runs",
    "dst_gap",
    "dst_overlap",
    "exclude",
)
_BESIDE_THE_RULES = ("biz_type", "enabled")

E = TypeVar("E", bound=StrEnum)
Values = dict[str, Any]


class NewTimer(Struct, frozen=True):
    biz_type: str
    rules: Rules
    enabled: bool = True


class TimerChange(Struct, frozen=True):
    """`values`: the named members; None resets one to its default. `enabled` None: unchanged."""

    values: Values
    enabled: bool | None = None


class Preview(Struct, frozen=True):
    rules: Rules
    count: int
    from_ms: int | None


def new_timer(body: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE) -> NewTimer:
    fields = Fields.of(body)
    readers = _readers(fields, allowed)
    fields.refuse_unknown((*readers, *_BESIDE_THE_RULES))
    biz_type = checked_biz_type(fields.text("biz_type"))
    checked_name(fields.text("name"))
    rules = changed_rules(BLANK, _values(fields, readers), now_ms // 1000)
    return NewTimer(biz_type, rules, _enabled(fields, usual=True) is not False)


def timer_change(body: str, allowed: AllowedTargets = HTTP_ALONE) -> TimerChange:
    fields = Fields.of(body)
    readers = _readers(fields, allowed)
    if "biz_type" in fields:
        raise fields.invalid("biz_type", "cannot be changed: another business, another timer.")
    fields.refuse_unknown((*readers, "enabled"))
    if not fields.members:
        raise MalformedBody("A change names at least one field of the timer.")
    return TimerChange(_values(fields, readers), _enabled(fields, usual=None))


def preview_request(body: str, now_ms: int) -> Preview:
    """A schedule whose next occurrences are requested."""
    fields = Fields.of(body)
    readers = {name: read for name, read in _readers(fields).items() if name in SCHEDULE_FIELDS}
    fields.refuse_unknown((*readers, "count", "from"))
    count = fields.whole_number("count", 1, UPCOMING_MAX) if "count" in fields else UPCOMING_DEFAULT
    from_ms = _instant_ms(fields, "from") if "from" in fields else None
    return Preview(changed_rules(BLANK, _values(fields, readers), now_ms // 1000), count, from_ms)


def checked_name(name: str, path: str = "name") -> str:
    """A name is printable in lists and has no look-alike characters."""
    if not 1 <= len(name) <= NAME_CHARACTERS_MAX or not name.isprintable() or name.strip() != name:
        raise invalid(path, NAME_IS)
    return name


def checked_cron(cron: str) -> str:
    """Only so far as it may be looked at; whether it is understood shows with all the rest."""
    if len(cron) > CRON_CHARACTERS_MAX:
        raise invalid("cron", f"must have at most {CRON_CHARACTERS_MAX} characters.")
    return cron


def _readers(
    fields: Fields, allowed: AllowedTargets = HTTP_ALONE
) -> dict[str, Callable[[str], Any]]:
    return {
        "name": lambda name: checked_name(fields.text(name)),
        "cron": lambda name: checked_cron(fields.text(name)),
        "every_seconds": lambda name: fields.whole_number(name, 1, EVERY_SECONDS_MAX),
        "timezone": lambda name: _timezone(fields, name),
        "start_at": lambda name: math.ceil(_instant_ms(fields, name) / 1000),
        "end_at": lambda name: _instant_ms(fields, name) // 1000,
        "max_runs": lambda name: fields.whole_number(name, 1, RUNS_MAX),
        "jitter_seconds": lambda name: fields.whole_number(name, 0, JITTER_SECONDS_MAX),
        "payload": lambda _: _payload(fields),
        "callback": lambda name: callback_from(fields.nested(name), allowed),
        "retry": lambda name: retry_from(fields.nested(name)),
        "expires_after_seconds": lambda name: fields.number(name, SECONDS_MIN, AHEAD_SECONDS_MAX),
        "dst_gap": lambda name: _one_of(fields, name, DstGap),
        "dst_overlap": lambda name: _one_of(fields, name, DstOverlap),
        "misfire": lambda name: _one_of(fields, name, Misfire),
        "grace_seconds": lambda name: fields.whole_number(name, 0, GRACE_SECONDS_MAX),
        "overlap": lambda name: _one_of(fields, name, Overlap),
        "exclude": lambda name: _dates(fields, name),
        "disable_on_stop": fields.boolean,
    }


def _values(fields: Fields, readers: dict[str, Callable[[str], Any]]) -> Values:
    return {
        name: None if _is_reset(fields, name) else readers[name](name)
        for name in fields.members
        if name in readers
    }


def _is_reset(fields: Fields, name: str) -> bool:
    return name not in ("name", "payload") and fields.is_null(name)


def _enabled(fields: Fields, *, usual: bool | None) -> bool | None:
    if "enabled" not in fields:
        return usual
    return True if fields.is_null("enabled") else fields.boolean("enabled")


def _payload(fields: Fields) -> str | None:
    payload = payload_from(fields)
    if payload is not None and (wrong := wrong_placeholder(payload)) is not None:
        raise fields.invalid("payload", wrong)
    return payload


def _timezone(fields: Fields, name: str) -> str:
    text = fields.text(name)
    if len(text) > TIMEZONE_CHARACTERS_MAX:
        raise fields.invalid(name, f"must have at most {TIMEZONE_CHARACTERS_MAX} characters.")
    return text


def _one_of(fields: Fields, name: str, choices: type[E]) -> E:
    value = fields.text(name)
    if value not in _names(choices):
        raise fields.invalid(name, f"must be one of {', '.join(_names(choices))}.")
    return choices(value)


def _names(choices: type[StrEnum]) -> Collection[str]:
    return [choice.value for choice in choices]


def _instant_ms(fields: Fields, name: str) -> int:
    try:
        instant_ms = ms_from_rfc3339(fields.text(name))
    except NoInstant as error:
        raise fields.invalid(name, f"{error}.") from error
    if not 0 <= instant_ms <= SECOND_MAX * 1000:
        raise fields.invalid(name, "must be from 1970 to 5138.")
    return instant_ms


def _dates(fields: Fields, name: str) -> tuple[str, ...]:
    elements = fields.elements(name, EXCLUDE_MAX)
    if len(elements) > EXCLUDE_MAX:
        raise fields.invalid(name, f"must have at most {EXCLUDE_MAX} elements.")
    dates = []
    for index, element in enumerate(elements):
        value = element.scalar
        if not isinstance(value, str) or not _is_date(value):
            where = f"{fields.where(name)}[{index}]"
            raise invalid(where, "must be a date, such as 2030-12-25.")
        dates.append(value)
    return tuple(dict.fromkeys(dates))


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


LIMIT_DEFAULT = 50
LIMIT_MAX = 100
UPCOMING_DEFAULT = 10
UPCOMING_MAX = 100


class State(StrEnum):
    """Of a timer. `ENDED`: it is enabled, and nothing more is ahead."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    ENDED = "ended"


class TimersRequest(Struct, frozen=True, kw_only=True):
    biz_type: str
    name_prefix: str
    state: State | None
    cursor: str | None
    limit: int

    @property
    def question(self) -> tuple[str | None, ...]:
        return "timers", self.biz_type, self.name_prefix, self.state


class UpcomingRequest(Struct, frozen=True):
    count: int
    from_ms: int | None


class RunsRequest(Struct, frozen=True):
    status: Status | None
    cursor: str | None
    limit: int


def timers_request(query_string: str) -> TimersRequest:
    known = ("biz_type", "name_prefix", "state", "cursor", "limit")
    parameters = Parameters.of(query_string, known)
    state = parameters.one_of("state", [state.value for state in State])
    prefix = parameters.text("name_prefix") or ""
    if len(prefix) > NAME_CHARACTERS_MAX:
        raise invalid("name_prefix", f"must have at most {NAME_CHARACTERS_MAX} characters.")
    return TimersRequest(
        biz_type=checked_biz_type(parameters.required_text("biz_type")),
        name_prefix=prefix,
        state=None if state is None else State(state),
        cursor=parameters.text("cursor"),
        limit=parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT,
    )


def upcoming_request(query_string: str) -> UpcomingRequest:
    parameters = Parameters.of(query_string, ("count", "from"))
    count = parameters.whole_number("count", 1, UPCOMING_MAX) or UPCOMING_DEFAULT
    return UpcomingRequest(count, parameters.instant_ms("from"))


def runs_request(query_string: str) -> RunsRequest:
    parameters = Parameters.of(query_string, ("status", "cursor", "limit"))
    status = parameters.one_of("status", [status.value for status in Status])
    return RunsRequest(
        None if status is None else Status(status),
        parameters.text("cursor"),
        parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT,
    )
