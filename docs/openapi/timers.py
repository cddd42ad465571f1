"""The calls on timers: what they are, what is ahead of them, what has come of them."""

from docs.openapi.operation import BIZ_TYPE, CURSOR, MATCH, Kind, Operation, Parameter, limit
from docs.openapi.schemas import (
    COUNT,
    DATE,
    INSTANT,
    TEXT,
    TRUTH,
    Schema,
    always,
    body,
    described,
    each_required,
    matching,
    nullable,
    one_of,
    page,
    ref,
    shown,
    some,
    text,
    whole,
)
from docs.openapi.tasks import EXPIRES_AFTER, PAYLOAD
from duewheel.rules.names import TIMER_ID
from duewheel.rules.refusals import (
    TargetNotEnabled,
    UnknownTimer,
    VersionMismatch,
)
from duewheel.rules.timers import requests
from duewheel.rules.timers.requests import (
    EVERY_SECONDS_MAX,
    GRACE_SECONDS_MAX,
    JITTER_SECONDS_MAX,
    RUNS_MAX,
    SCHEDULE_FIELDS,
    TIMEZONE_CHARACTERS_MAX,
    State,
)
from duewheel.rules.timers.schedule import Dialect, DstGap, DstOverlap, Schedule
from duewheel.rules.timers.schedule_validation import CRON_CHARACTERS_MAX, EXCLUDE_MAX
from duewheel.rules.timers.timer import NAME_CHARACTERS_MAX, Misfire, Overlap, Rules
from duewheel.stores.timers.counters import Counted

_USUAL = Rules("", Schedule())
NAME = described(text(1, NAME_CHARACTERS_MAX), "Printable, no blank first or last.")

_OPTIONAL: dict[str, Schema] = {
    "cron": described(text(0, CRON_CHARACTERS_MAX), "5 fields, or 6 with seconds first."),
    "every_seconds": whole(1, EVERY_SECONDS_MAX),
    "timezone": {
        **described(text(0, TIMEZONE_CHARACTERS_MAX), "A zone of the IANA database."),
        "default": _USUAL.schedule.timezone,
    },
    "start_at": INSTANT,
    "end_at": INSTANT,
    "max_runs": whole(1, RUNS_MAX),
    "jitter_seconds": whole(0, JITTER_SECONDS_MAX, default=_USUAL.jitter_seconds),
    "callback": ref("Callback"),
    "retry": ref("Retry"),
    "expires_after_seconds": EXPIRES_AFTER,
    "dst_gap": one_of(DstGap, default=_USUAL.schedule.dst_gap.value),
    "dst_overlap": one_of(DstOverlap, default=_USUAL.schedule.dst_overlap.value),
    "misfire": one_of(Misfire, default=_USUAL.misfire.value),
    "grace_seconds": whole(0, GRACE_SECONDS_MAX, default=_USUAL.grace_seconds),
    "overlap": one_of(Overlap, default=_USUAL.overlap.value),
    "exclude": some(DATE, 0, EXCLUDE_MAX),
    "disable_on_stop": {**TRUTH, "default": _USUAL.disable_on_stop},
    "enabled": {**TRUTH, "default": True},
}
_SAID: dict[str, Schema] = {
    "name": NAME,
    **{name: nullable(schema) for name, schema in _OPTIONAL.items()},
    "payload": described(PAYLOAD, "Any JSON; placeholders in its strings are filled in."),
}
_CHANGED = {
    name: {member: value for member, value in schema.items() if member != "default"}
    for name, schema in _SAID.items()
}
_SHOWN: dict[str, Schema] = {
    "timer_id": ref("TimerId"),
    "name": TEXT,
    "biz_type": ref("BizType"),
    "cron": nullable(TEXT),
    "dialect": nullable(one_of(Dialect)),
    "every_seconds": nullable(COUNT),
    "timezone": TEXT,
    "start_at": nullable(INSTANT),
    "end_at": nullable(INSTANT),
    "max_runs": nullable(COUNT),
    "jitter_seconds": COUNT,
    "payload": described({}, "As the very text that came in, placeholders and all."),
    "callback": nullable(ref("ShownCallback")),
    "retry": nullable(ref("Retry")),
    "expires_after_seconds": nullable({"type": "number"}),
    "dst_gap": one_of(DstGap),
    "dst_overlap": one_of(DstOverlap),
    "misfire": one_of(Misfire),
    "grace_seconds": COUNT,
    "overlap": one_of(Overlap),
    "exclude": some(DATE),
    "disable_on_stop": TRUTH,
    "enabled": TRUTH,
    "state": one_of(State),
    "next_at": nullable(INSTANT),
    "version": COUNT,
    "created_at": INSTANT,
    "updated_at": INSTANT,
    "counters": described(shown(dict.fromkeys(Counted, COUNT)), "Only when one timer is read."),
}
_WITH_A_SCHEDULE = each_required(("cron", "every_seconds"))  # of two, one is null
_COUNT = whole(1, requests.UPCOMING_MAX, default=requests.UPCOMING_DEFAULT)

_SCHEMAS: dict[str, Schema] = {
    "TimerId": matching(TIMER_ID),
    "NewTimer": body(
        {"biz_type": ref("BizType"), **_SAID}, ("biz_type", "name"), anyOf=_WITH_A_SCHEDULE
    ),
    "TimerChange": body(_CHANGED, minProperties=1),
    "Timer": shown(_SHOWN, ("counters",)),
    "Timers": page("timers", ref("Timer")),
    "Preview": body(
        {**{name: _SAID[name] for name in SCHEDULE_FIELDS}, "count": _COUNT, "from": INSTANT},
        anyOf=_WITH_A_SCHEDULE,
    ),
    "Upcoming": shown({"upcoming": some(INSTANT)}),
    "TimerDeletion": shown({"timer_id": ref("TimerId"), "deleted": always(True)}),
}

_TIMER = {200: ref("Timer")}
_TAG = ("ETag",)
_ITS = "/v1/timers/{timer_id}"
_CHANGING = (UnknownTimer, VersionMismatch)
_LIMIT = limit(requests.LIMIT_DEFAULT, requests.LIMIT_MAX)

TIMERS = Kind(
    "timers",
    "Definitions that produce tasks, by cron or at an interval.",
    {
        ("POST", "/v1/timers"): Operation(
            "create_timer",
            {201: ref("Timer")},
            body=ref("NewTimer"),
            refusals=(TargetNotEnabled,),
            headers=("Location", "ETag"),
        ),
        ("GET", "/v1/timers"): Operation(
            "list_timers",
            {200: ref("Timers")},
            parameters=(
                BIZ_TYPE,
                Parameter("name_prefix", text(0, NAME_CHARACTERS_MAX)),
                Parameter("state", one_of(State)),
                CURSOR,
                _LIMIT,
            ),
        ),
        ("POST", "/v1/timers/upcoming"): Operation(
            "preview_schedule", {200: ref("Upcoming")}, body=ref("Preview")
        ),
        ("GET", _ITS): Operation("read_timer", _TIMER, refusals=(UnknownTimer,), headers=_TAG),
        ("PATCH", _ITS): Operation(
            "change_timer",
            _TIMER,
            body=ref("TimerChange"),
            parameters=(MATCH,),
            refusals=(*_CHANGING, TargetNotEnabled),
            headers=_TAG,
        ),
        ("DELETE", _ITS): Operation(
            "delete_timer",
            {200: ref("TimerDeletion")},
            parameters=(MATCH,),
            refusals=_CHANGING,
        ),
        ("POST", f"{_ITS}/enable"): Operation(
            "enable_timer", _TIMER, parameters=(MATCH,), refusals=_CHANGING, headers=_TAG
        ),
        ("POST", f"{_ITS}/disable"): Operation(
            "disable_timer", _TIMER, parameters=(MATCH,), refusals=_CHANGING, headers=_TAG
        ),
        ("POST", f"{_ITS}/run"): Operation(
            "run_timer", {201: ref("Task")}, refusals=(UnknownTimer,), headers=("Location",)
        ),
        ("GET", f"{_ITS}/upcoming"): Operation(
            "list_upcoming",
            {200: ref("Upcoming")},
            parameters=(
                Parameter("count", _COUNT),
                Parameter("from", INSTANT, description="Now, if it is left out."),
            ),
            refusals=(UnknownTimer,),
        ),
        ("GET", f"{_ITS}/runs"): Operation(
            "list_runs",
            {200: ref("Tasks")},
            parameters=(Parameter("status", ref("TaskStatus")), CURSOR, _LIMIT),
            refusals=(UnknownTimer,),
        ),
        ("GET", f"{_ITS}/changes"): Operation(
            "list_timer_changes", {200: ref("Changes")}, refusals=(UnknownTimer,)
        ),
    },
    _SCHEMAS,
)
