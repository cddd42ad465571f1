"""The calls on businesses: their settings, their dead tasks, their statistics."""

from docs.openapi.operation import CURSOR, MATCH, NONE_MATCH, Kind, Operation, Parameter, limit
from docs.openapi.schemas import (
    ANY,
    COUNT,
    INSTANT,
    TEXT,
    TRUTH,
    Schema,
    body,
    described,
    matching,
    names_to,
    nullable,
    number,
    one_of,
    page,
    ref,
    shown,
    some,
    text,
    whole,
)
from duewheel.interface.sweep.stats_view import CLASSES
from duewheel.rules.businesses import requests, trusted_origins
from duewheel.rules.businesses.lanes import ChosenBy
from duewheel.rules.businesses.settings import RETENTION_DAYS_MAX, RETENTION_DAYS_MIN, Own
from duewheel.rules.callbacks import outcome, secret_headers, signature
from duewheel.rules.callbacks.signature import SECRET_BYTES_MAX, SECRET_BYTES_MIN, SECRETS_MAX
from duewheel.rules.callbacks.url import PATTERNS_MAX
from duewheel.rules.history.changes import KEPT_MAX, ChangeAction
from duewheel.rules.refusals import (
    HasTimers,
    ListIndexOff,
    TargetNotEnabled,
    TasksPending,
    UnknownBusiness,
    VersionMismatch,
)
from duewheel.rules.tasks import dead_tasks
from duewheel.rules.tasks.dead_tasks import DEATHS, STATUS_CODES
from duewheel.rules.wheel.queue_messages import Lane

_RATE = number(requests.RATE_MIN, requests.RATE_MAX)
_IN_FLIGHT = whole(1, requests.IN_FLIGHT_MAX)
_BURST = whole(1, requests.BURST_MAX)
_STATUSES = [status for status in range(1_000) if outcome.is_status_entry(status)]
_STATUS: Schema = {"oneOf": [whole(_STATUSES[0], _STATUSES[-1]), one_of(outcome.STATUS_CLASSES)]}
_STATUS_LIST = some(_STATUS, 0, outcome.STATUS_ENTRIES_MAX)
_SECRET = {**TEXT, "pattern": f"^{signature._PREFIX}(?:{signature._BASE64.pattern})$"}
_HOSTS = some(text(1), 1, PATTERNS_MAX)
_ORIGINS = some(text(1), 1, trusted_origins.ORIGINS_MAX)

_SET: dict[str, Schema] = {
    "callback": ref("Callback"),
    "retry": ref("Retry"),
    "retention_days": whole(RETENTION_DAYS_MIN, RETENTION_DAYS_MAX),
    "timeout_seconds": {"type": "number", "minimum": requests.TIMEOUT_SECONDS_MIN},
    "allowed_hosts": _HOSTS,
    "trusted_origins": described(
        _ORIGINS, "Where the headers of `callback` go, beside the origin of its own URL."
    ),
    "retry_statuses": _STATUS_LIST,
    "stop_statuses": _STATUS_LIST,
    "on_dead": described(ref("Callback"), "Whole: nothing fills in what it leaves out."),
    "calls_per_second": _RATE,
    "calls_in_flight": _IN_FLIGHT,
    "creates_per_second": _RATE,
    "creates_burst": described(_BURST, "Needs `creates_per_second` beside it."),
    "signing_secrets": described(
        some(_SECRET, 1, SECRETS_MAX),
        f"The newest first; the base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random bytes.",
    ),
    "paused": TRUTH,
    "lane": one_of(Lane),
    "secrets": described(
        names_to(
            nullable(text(1, secret_headers.VALUE_CHARACTERS_MAX)),
            propertyNames=matching(secret_headers.NAME),
            maxProperties=secret_headers.NAMED_SECRETS_MAX,
        ),
        "By names, to which headers refer as `{{secret:NAME}}`; `null` takes one away.",
    ),
}
_SHOWN: dict[str, Schema] = {
    "biz_type": ref("BizType"),
    "version": COUNT,
    "callback": nullable(ref("ShownCallback")),
    "retry": ref("Retry"),
    "retention_days": COUNT,
    "timeout_seconds": {"type": "number"},
    "allowed_hosts": nullable(some(TEXT)),
    "trusted_origins": nullable(some(TEXT)),
    "retry_statuses": some(_STATUS),
    "stop_statuses": some(_STATUS),
    "on_dead": nullable(ref("ShownCallback")),
    "calls_per_second": nullable(_RATE),
    "calls_in_flight": nullable(_IN_FLIGHT),
    "creates_per_second": nullable(_RATE),
    "creates_burst": nullable(_BURST),
    "signing_secrets": nullable(described(some(TEXT), "By their last four characters.")),
    "paused": TRUTH,
    "lane": described(one_of(Lane), "The lane that holds now."),
    "lane_by": one_of(ChosenBy),
    "secrets": nullable(described(some(TEXT), "By their names alone.")),
    "breakers": described(some(ref("Breaker")), "Only the call that reads one business has them."),
    "own": described(some(one_of(Own.__struct_fields__)), "What is set, and no default."),
    "created_at": INSTANT,
    "updated_at": INSTANT,
}
_FILTER: dict[str, Schema] = {
    "since": described(INSTANT, "The instant of death, inclusive."),
    "until": described(INSTANT, "Exclusive."),
    "reason": one_of(DEATHS),
    "status_code": described(whole(*STATUS_CODES), "Of the last attempt."),
    "last_error": described(
        text(1, dead_tasks.TEXT_CHARACTERS_MAX), "A text that the task's contains."
    ),
}
_FATES = ("created", "pending", "delivered", "dead", "expired", "cancelled", "failed_attempts")
_TALLY: dict[str, Schema] = {
    **dict.fromkeys(_FATES, COUNT),
    "lateness": shown(
        {
            "sum_ms": COUNT,
            "max_ms": COUNT,
            "counts": names_to(COUNT, propertyNames=one_of(CLASSES)),
        }
    ),
}

_SCHEMAS: dict[str, Schema] = {
    "BusinessChange": body({name: nullable(schema) for name, schema in _SET.items()}),
    "Business": shown(_SHOWN),
    "Breaker": shown({"host": TEXT, "since": INSTANT, "until": INSTANT}),
    "Businesses": page("businesses", ref("Business")),
    "BusinessDeletion": shown(
        {
            "done": TRUTH,
            "timers": COUNT,
            "cancelled": COUNT,
            "too_late": described(some(TEXT), "The ids of tasks past their cut-off."),
            "cursor": nullable(TEXT),
        }
    ),
    "Changes": shown({"changes": some(ref("Change"), 0, KEPT_MAX)}),
    "Change": shown(
        {
            "version": COUNT,
            "at": INSTANT,
            "by": TEXT,
            "did": one_of(ChangeAction),
            "fields": some(shown({"field": TEXT, "from": ANY, "to": ANY}, ("from", "to"))),
        }
    ),
    "DeadTasksFilter": body({**_FILTER, "cursor": TEXT}),
    "Redriven": shown(
        {
            "redriven": COUNT,
            "refused": some(shown({"task_id": TEXT, "problem": ref("Problem")})),
            "cursor": nullable(TEXT),
        }
    ),
    "Tally": shown(_TALLY),
    "Statistics": shown(
        {
            "biz_type": ref("BizType"),
            "from": INSTANT,
            "to": INSTANT,
            "counted_until": INSTANT,
            "closed_until": INSTANT,
            "total": ref("Tally"),
            "minutes": some(shown({"at": INSTANT, **_TALLY})),
        }
    ),
}

_BUSINESS = {200: ref("Business")}
_ITS = "/v1/businesses/{biz_type}"
_TAG = ("ETag",)

BUSINESSES = Kind(
    "businesses",
    "What holds for all tasks of one name.",
    {
        ("PUT", _ITS): Operation(
            "configure_business",
            {200: ref("Business"), 201: ref("Business")},
            body=ref("BusinessChange"),
            parameters=(MATCH, NONE_MATCH),
            refusals=(TargetNotEnabled, VersionMismatch),
            headers=_TAG,
        ),
        ("GET", _ITS): Operation(
            "read_business", _BUSINESS, refusals=(UnknownBusiness,), headers=_TAG
        ),
        ("DELETE", _ITS): Operation(
            "delete_business",
            {200: ref("BusinessDeletion"), 202: ref("BusinessDeletion")},
            parameters=(
                Parameter("cancel_pending", {"type": "boolean", "default": False}),
                CURSOR,
                MATCH,
            ),
            refusals=(HasTimers, TasksPending, ListIndexOff, UnknownBusiness, VersionMismatch),
        ),
        ("GET", "/v1/businesses"): Operation(
            "list_businesses",
            {200: ref("Businesses")},
            parameters=(CURSOR, limit(requests.LIMIT_DEFAULT, requests.LIMIT_MAX)),
        ),
        ("POST", f"{_ITS}/pause"): Operation(
            "pause_business",
            _BUSINESS,
            parameters=(MATCH, NONE_MATCH),
            refusals=(VersionMismatch,),
            headers=_TAG,
        ),
        ("POST", f"{_ITS}/resume"): Operation(
            "resume_business",
            _BUSINESS,
            parameters=(MATCH, NONE_MATCH),
            refusals=(VersionMismatch,),
            headers=_TAG,
        ),
        ("GET", f"{_ITS}/changes"): Operation(
            "list_business_changes", {200: ref("Changes")}, refusals=(UnknownBusiness,)
        ),
        ("GET", f"{_ITS}/dead"): Operation(
            "list_dead_tasks",
            {200: ref("Tasks")},
            parameters=(
                *(Parameter(name, schema) for name, schema in _FILTER.items()),
                limit(dead_tasks.LIMIT_DEFAULT, dead_tasks.LIMIT_MAX),
                CURSOR,
            ),
        ),
        ("POST", f"{_ITS}/redrive"): Operation(
            "redrive_dead_tasks", {200: ref("Redriven")}, body=ref("DeadTasksFilter")
        ),
        ("GET", f"{_ITS}/stats"): Operation(
            "read_statistics",
            {200: ref("Statistics")},
            parameters=(
                Parameter("from", INSTANT, description="Inclusive."),
                Parameter("to", INSTANT, description="Exclusive."),
            ),
        ),
    },
    _SCHEMAS,
)
