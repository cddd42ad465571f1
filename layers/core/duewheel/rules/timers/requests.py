"""Requests on timers: bodies and query strings.

A member sets its field, and `null` sets it back to its default. Each field is checked by itself
here, and all of them together where they are applied. A payload is any JSON, so its null is a
value.
"""

import math
from collections.abc import Callable
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.requests import (
    CallbackOrNull,
    OnOutcomeBody,
    callback_from,
    on_outcome_from,
)
from duewheel.rules.callbacks.retry import Retry, retry_policy
from duewheel.rules.fields import (
    Date,
    Instant,
    RequestBody,
    decode,
    given,
    instant_ms,
    instant_or_none,
    invalid,
    members,
    says,
)
from duewheel.rules.labels import LabelsField, labels_from, written
from duewheel.rules.names import (
    BizType,
    FlowKey,
    checked_biz_type,
    checked_key,
    name_of,
    printable_name,
)
from duewheel.rules.priority import PriorityField
from duewheel.rules.query_string import LabelledQuery, PageQuery, Query
from duewheel.rules.refusals import MalformedBody
from duewheel.rules.tasks.requests import ExpiresAfter, payload_text
from duewheel.rules.tasks.task import Status
from duewheel.rules.timers.payload_template import wrong_placeholder
from duewheel.rules.timers.schedule import DstGap, DstOverlap
from duewheel.rules.timers.schedule_validation import CRON_CHARACTERS_MAX, EXCLUDE_MAX
from duewheel.rules.timers.timer import NAME_CHARACTERS_MAX, Misfire, Overlap, Rules
from duewheel.rules.timers.updates import BLANK, changed_rules
from duewheel.rules.tolerance import ToleranceSeconds
from duewheel.rules.wheel.addresses import SECOND_MAX

TIMEZONE_CHARACTERS_MAX = 64
EVERY_SECONDS_MAX = 366 * 86_400
RUNS_MAX = 1_000_000_000
JITTER_SECONDS_MAX = 86_399
GRACE_SECONDS_MAX = 30 * 86_400
FAILURES_MAX = 100
UPCOMING_DEFAULT = 10
UPCOMING_MAX = 100

NOT_BLANK = r"\S"
_Name = Annotated[str, name_of(NAME_CHARACTERS_MAX)]
_Count = Annotated[int, Meta(ge=1, le=UPCOMING_MAX)]

Values = dict[str, Any]


_Cron = Annotated[
    str,
    Meta(
        max_length=CRON_CHARACTERS_MAX,
        description="5 fields, or 6 with seconds first, that name a time to come.",
        extra_json_schema={"pattern": NOT_BLANK},
    ),
]
_Timezone = Annotated[
    str, Meta(max_length=TIMEZONE_CHARACTERS_MAX, description="A zone of the IANA database.")
]


class ScheduleBody(RequestBody):
    """`cron` or `every_seconds`, with an occurrence ahead; `docs/timers.md` lists what is
    refused."""

    cron: _Cron | UnsetType | None = UNSET
    every_seconds: Annotated[int, Meta(ge=1, le=EVERY_SECONDS_MAX)] | UnsetType | None = UNSET
    timezone: _Timezone | UnsetType | None = UNSET
    start_at: Instant | UnsetType | None = UNSET
    end_at: Instant | UnsetType | None = UNSET
    max_runs: Annotated[int, Meta(ge=1, le=RUNS_MAX)] | UnsetType | None = UNSET
    dst_gap: DstGap | UnsetType | None = UNSET
    dst_overlap: DstOverlap | UnsetType | None = UNSET
    exclude: (
        Annotated[
            tuple[Date, ...],
            Meta(max_length=EXCLUDE_MAX),
        ]
        | UnsetType
        | None
    ) = UNSET


_Jitter = Annotated[
    int, Meta(ge=0, le=JITTER_SECONDS_MAX, description="Less than `every_seconds`.")
]


_Template = Annotated[Raw, says("Any JSON; placeholders in its strings are filled in.")]


class TimerBody(ScheduleBody):
    jitter_seconds: _Jitter | UnsetType | None = UNSET
    payload: _Template | UnsetType = UNSET
    callback: CallbackOrNull | UnsetType = UNSET
    retry: Retry | UnsetType | None = UNSET
    expires_after_seconds: ExpiresAfter | UnsetType | None = UNSET
    misfire: Misfire | UnsetType | None = UNSET
    grace_seconds: Annotated[int, Meta(ge=0, le=GRACE_SECONDS_MAX)] | UnsetType | None = UNSET
    overlap: Overlap | UnsetType | None = UNSET
    disable_on_stop: bool | UnsetType | None = UNSET
    pause_on_failures: Annotated[int, Meta(ge=1, le=FAILURES_MAX)] | UnsetType | None = UNSET
    tolerance_seconds: ToleranceSeconds | UnsetType | None = UNSET
    priority: PriorityField | UnsetType | None = UNSET
    flow_key: FlowKey | UnsetType | None = UNSET
    labels: LabelsField | UnsetType | None = UNSET
    managed_by: _Name | UnsetType | None = UNSET
    on_outcome: OnOutcomeBody | UnsetType | None = UNSET
    enabled: bool | UnsetType | None = UNSET


class NewTimerBody(TimerBody, kw_only=True):
    biz_type: BizType
    name: _Name


class TimerChangeBody(TimerBody):
    """`null` sets a member back to its default. The timer has to have one of `cron` and
    `every_seconds` then."""

    name: _Name | UnsetType = UNSET


class TimerByNameBody(TimerBody):
    """The whole definition but the name. What is left out has its default, except `enabled`: it
    stays as it is."""


class PreviewBody(ScheduleBody, rename={"from_": "from"}):
    """A request for the next occurrences of a schedule."""

    count: _Count = UPCOMING_DEFAULT
    from_: Instant | UnsetType = UNSET


class NewTimer(Struct, frozen=True):
    biz_type: str
    rules: Rules
    enabled: bool = True


class TimerChange(Struct, frozen=True):
    """`values`: the named members; None resets one to its default. `enabled` None: unchanged."""

    values: Values
    enabled: bool | None = None


class NamedTimer(Struct, frozen=True):
    """The definition of the timer of this name. `values` are those that are no defaults; `enabled`
    None: unchanged, and true for a new one."""

    biz_type: str
    name: str
    values: Values
    enabled: bool | None = None


class Preview(Struct, frozen=True):
    rules: Rules
    count: int
    from_ms: int | None


def new_timer(body: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE) -> NewTimer:
    read = decode(body, NewTimerBody)
    rules = changed_rules(BLANK, _values(read, allowed), now_ms // 1000)
    return NewTimer(read.biz_type, rules, given(read.enabled, True) is not False)


def timer_change(body: str, allowed: AllowedTargets = HTTP_ALONE) -> TimerChange:
    read = decode(body, TimerChangeBody)
    values = _values(read, allowed)
    if not values and isinstance(read.enabled, UnsetType):
        raise MalformedBody("A change names at least one field of the timer.")
    return TimerChange(values, _enabled(read))


def named_timer(
    body: str, biz_type: str, name: str, allowed: AllowedTargets = HTTP_ALONE
) -> NamedTimer:
    read = decode(body, TimerByNameBody)
    named = checked_biz_type(biz_type), checked_key(name, "name")
    return NamedTimer(*named, _values(read, allowed), _enabled(read))


def _enabled(read: TimerBody) -> bool | None:
    return given(read.enabled, None) if read.enabled is not None else True


def preview_request(body: str, now_ms: int) -> Preview:
    read = decode(body, PreviewBody)
    from_ms = None if isinstance(read.from_, UnsetType) else _instant_ms(read.from_, "from")
    rules = changed_rules(BLANK, _values(read, HTTP_ALONE), now_ms // 1000)
    return Preview(rules, read.count, from_ms)


def checked_name(name: str, path: str = "name") -> str:
    return printable_name(name, NAME_CHARACTERS_MAX, path)


_NO_RULES = ("biz_type", "enabled", "count", "from_")


def _values(read: ScheduleBody, allowed: AllowedTargets) -> Values:
    checked: dict[str, Callable[[Any, str], Any]] = {
        "name": checked_name,
        "managed_by": checked_name,
        "start_at": lambda text, where: math.ceil(_instant_ms(text, where) / 1000),
        "end_at": lambda text, where: _instant_ms(text, where) // 1000,
        "payload": lambda raw, where: _payload(raw),
        "callback": lambda raw, where: callback_from(raw, allowed, where),
        "retry": retry_policy,
        "exclude": _dates,
        "labels": labels_from,
        "on_outcome": lambda body, where: on_outcome_from(body, allowed, where),
    }
    return {
        name: checked[name](value, name) if name in checked and value is not None else value
        for name, value in members(read, null_is_a_value=("payload",)).items()
        if name not in _NO_RULES
    }


def _payload(raw: Raw) -> str | None:
    payload = payload_text(raw)
    if payload is not None and (wrong := wrong_placeholder(payload)) is not None:
        raise invalid("payload", wrong)
    return payload


def _instant_ms(text: str, where: str) -> int:
    found_ms = instant_ms(text, where)
    if not 0 <= found_ms <= SECOND_MAX * 1000:
        raise invalid(where, "must be from 1970 to 5138.")
    return found_ms


def _dates(texts: tuple[str, ...], path: str) -> tuple[str, ...]:
    for index, text in enumerate(texts):
        if not _is_date(text):
            raise invalid(f"{path}[{index}]", "must be a date, such as 2030-12-25.")
    return tuple(dict.fromkeys(texts))


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


class State(StrEnum):
    """Of a timer. `ENDED`: it is enabled, and nothing more is ahead."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    ENDED = "ended"


class TimersQuery(LabelledQuery):
    biz_type: Annotated[BizType, says("All that the caller reaches, if it is left out.")] | None = (
        None
    )
    name_prefix: Annotated[str, Meta(max_length=NAME_CHARACTERS_MAX)] = ""
    state: State | None = None

    @property
    def question(self) -> tuple[str | None, ...]:
        return "timers", self.biz_type, self.name_prefix, self.state, *written(self.labels)


class TimerByNameQuery(Query):
    dry_run: Annotated[
        Literal["true", "false"],
        says("`true`: answers with the timer as it would be, and changes nothing."),
    ] = "false"

    @property
    def is_dry_run(self) -> bool:
        return self.dry_run == "true"


class UpcomingQuery(Query, rename={"from_": "from"}):
    count: _Count = UPCOMING_DEFAULT
    from_: Annotated[Instant, says("Now, if it is left out.")] | None = None

    @property
    def from_ms(self) -> int | None:
        return instant_or_none(self.from_, "from")


class RunsQuery(PageQuery):
    status: Status | None = None
