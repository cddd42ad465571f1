"""The calls on tasks: by id, by key, in batches and in lists."""

from docs.openapi.operation import (
    BIZ_TYPE,
    CURSOR,
    IDEMPOTENCY_KEY,
    Kind,
    Operation,
    Parameter,
    limit,
)
from docs.openapi.schemas import (
    ANY,
    COUNT,
    INSTANT,
    TEXT,
    TRUTH,
    Schema,
    at_most_one,
    body,
    described,
    each_required,
    matching,
    nullable,
    number,
    one_of,
    page,
    ref,
    shown,
    some,
)
from duewheel.rules.callbacks.outcome import Verdict
from duewheel.rules.fields import SECONDS_MIN
from duewheel.rules.names import AHEAD_SECONDS_MAX
from duewheel.rules.names import BIZ_TYPE as BIZ_TYPE_PATTERN
from duewheel.rules.names import KEY as KEY_PATTERN
from duewheel.rules.refusals import (
    AlreadySettled,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    KeyTaken,
    ListIndexOff,
    MalformedTaskId,
    NotRedrivable,
    OfATimer,
    TargetNotEnabled,
    TooLate,
    TooManyCreates,
    UnknownTask,
)
from duewheel.rules.tasks import listing, requests
from duewheel.rules.tasks.lifecycle import HISTORY_MAX, NOTE_CHARACTERS_MAX
from duewheel.rules.tasks.requests import BATCH_TASKS_MAX, DUE_FIELDS, PAYLOAD_BYTES_MAX
from duewheel.rules.tasks.task import Status
from duewheel.rules.tasks.updates import CHANGE_FIELDS

PAYLOAD = described(ANY, f"Any JSON, of at most {PAYLOAD_BYTES_MAX:,} bytes as it is written.")
EXPIRES_AFTER = number(SECONDS_MIN, AHEAD_SECONDS_MAX)
_DUE: dict[str, Schema] = {
    "due_at": described(INSTANT, "With an offset; up to ten years ahead."),
    "due_ms": described(COUNT, "Milliseconds since 1970; up to ten years ahead."),
    "delay_seconds": number(0, AHEAD_SECONDS_MAX),
}
_SAID: dict[str, Schema] = {
    **_DUE,
    "payload": PAYLOAD,
    "callback": ref("Callback"),
    "retry": ref("Retry"),
    "expires_after_seconds": EXPIRES_AFTER,
}
_SHOWN: dict[str, Schema] = {
    "task_id": TEXT,
    "biz_type": ref("BizType"),
    "key": nullable(TEXT),
    "status": ref("TaskStatus"),
    "reason": nullable(described(TEXT, "Why, where there is more to say than the status.")),
    "parked": TRUTH,
    "due_at": INSTANT,
    "next_at": nullable(described(INSTANT, "When the next attempt is due; null once it ended.")),
    "attempts": COUNT,
    "payload": described(ANY, "As the very text that came in."),
    "callback": nullable(ref("ShownCallback")),
    "retry": ref("Retry"),
    "expires_after_seconds": {"type": "number"},
    "notice_of": described(TEXT, "The dead task that this notice tells of."),
    "timer_id": ref("TimerId"),
    "occurrence_at": INSTANT,
    "number": nullable(COUNT),
    "created_at": INSTANT,
    "updated_at": INSTANT,
    "settled_at": nullable(INSTANT),
    "expires_at": nullable(described(INSTANT, "When the record may be deleted.")),
    "lateness_ms": nullable(COUNT),
    "last_error": nullable(TEXT),
    "history": described(some(ref("Attempt"), 0, HISTORY_MAX), "The last attempts."),
}
_SOMETIMES = (
    "retry",
    "expires_after_seconds",
    "notice_of",
    "timer_id",
    "occurrence_at",
    "number",
)

_SCHEMAS: dict[str, Schema] = {
    "BizType": matching(BIZ_TYPE_PATTERN),
    "TaskKey": matching(KEY_PATTERN),
    "TaskStatus": one_of(Status),
    "NewTask": body(
        {"biz_type": ref("BizType"), **_SAID, "key": ref("TaskKey")},
        ("biz_type",),
        oneOf=each_required(DUE_FIELDS),
    ),
    "NewTasks": body({"tasks": some(ref("NewTask"), 1, BATCH_TASKS_MAX)}, ("tasks",)),
    "TaskByKey": body(
        {**_SAID, "max_due_at": described(INSTANT, "How far it can be pushed out.")},
        oneOf=each_required(DUE_FIELDS),
    ),
    "TaskChange": body(
        {name: _SAID[name] for name in CHANGE_FIELDS},
        minProperties=1,
        oneOf=at_most_one(DUE_FIELDS),
    ),
    "Task": shown(_SHOWN, _SOMETIMES),
    "Attempt": shown(
        {
            "at": INSTANT,
            "lateness_ms": COUNT,
            "outcome": one_of(Verdict),
            "status_code": nullable({"type": "integer"}),
            "duration_ms": {"type": "integer"},
            "note": {**TEXT, "maxLength": NOTE_CHARACTERS_MAX},
        }
    ),
    "Tasks": page("tasks", ref("Task")),
    "BatchResults": shown(
        {
            "results": described(
                some(
                    {
                        "oneOf": [
                            shown({"status": {"enum": [200, 201]}, "task": ref("Task")}),
                            shown({"status": {"type": "integer"}, "problem": ref("Problem")}),
                        ]
                    }
                ),
                "One for each task, in order.",
            )
        }
    ),
    "CancelledKeys": shown(
        {
            "cancelled": COUNT,
            "too_late": described(some(ref("TaskKey")), "The keys past their cut-off."),
            "cursor": nullable(TEXT),
        }
    ),
}

_TASK = {200: ref("Task")}
_MADE = {201: ref("Task"), 200: ref("Task")}
_BY_ID = (MalformedTaskId, UnknownTask)
_BY_KEY = (UnknownTask,)
_CREATING = (TargetNotEnabled, TooManyCreates, KeyTaken)
_ONCE = (IdempotencyKeyInUse, IdempotencyKeyReused)
_STEERING = (TooLate, AlreadySettled)
_PREFIX = Parameter("key_prefix", ref("TaskKey"), required=True)
_LIST = (
    BIZ_TYPE,
    Parameter("status", ref("TaskStatus")),
    Parameter("due_from", INSTANT, description="Inclusive."),
    Parameter("due_to", INSTANT, description="Exclusive."),
    Parameter("order", one_of(listing.Order, default=listing.Order.ASC.value)),
    CURSOR,
    limit(listing.LIMIT_DEFAULT, listing.LIMIT_MAX),
)
_BY_ITS_KEY = "/v1/businesses/{biz_type}/tasks/{key}"
_BY_PREFIX = "/v1/businesses/{biz_type}/tasks"

TASKS = Kind(
    "tasks",
    "Calls owed at an instant.",
    {
        ("POST", "/v1/tasks"): Operation(
            "create_task",
            _MADE,
            body=ref("NewTask"),
            parameters=(IDEMPOTENCY_KEY,),
            refusals=(*_CREATING, *_ONCE),
            headers=("Location",),
        ),
        ("POST", "/v1/tasks/batch"): Operation(
            "create_tasks",
            {200: ref("BatchResults")},
            body=ref("NewTasks"),
            parameters=(IDEMPOTENCY_KEY,),
            refusals=_ONCE,
        ),
        ("GET", "/v1/tasks"): Operation(
            "list_tasks", {200: ref("Tasks")}, parameters=_LIST, refusals=(ListIndexOff,)
        ),
        ("GET", "/v1/tasks/{task_id}"): Operation("read_task", _TASK, refusals=_BY_ID),
        ("PATCH", "/v1/tasks/{task_id}"): Operation(
            "change_task",
            _TASK,
            body=ref("TaskChange"),
            refusals=(*_BY_ID, *_STEERING, OfATimer, TargetNotEnabled),
        ),
        ("POST", "/v1/tasks/{task_id}/run"): Operation(
            "run_task", _TASK, refusals=(*_BY_ID, *_STEERING, OfATimer)
        ),
        ("POST", "/v1/tasks/{task_id}/redrive"): Operation(
            "redrive_task", _TASK, refusals=(*_BY_ID, NotRedrivable)
        ),
        ("DELETE", "/v1/tasks/{task_id}"): Operation(
            "cancel_task", _TASK, refusals=(*_BY_ID, *_STEERING)
        ),
        ("PUT", _BY_ITS_KEY): Operation(
            "put_task_by_key",
            _MADE,
            body=ref("TaskByKey"),
            refusals=(*_CREATING[:2], TooLate),
            headers=("Location",),
        ),
        ("GET", _BY_ITS_KEY): Operation("read_task_by_key", _TASK, refusals=_BY_KEY),
        ("DELETE", _BY_ITS_KEY): Operation(
            "cancel_task_by_key", _TASK, refusals=(*_BY_KEY, *_STEERING)
        ),
        ("GET", _BY_PREFIX): Operation(
            "list_tasks_by_key_prefix",
            {200: ref("Tasks")},
            parameters=(_PREFIX, CURSOR, limit(requests.LIMIT_DEFAULT, requests.LIMIT_MAX)),
        ),
        ("DELETE", _BY_PREFIX): Operation(
            "cancel_tasks_by_key_prefix",
            {200: ref("CancelledKeys")},
            parameters=(
                _PREFIX,
                CURSOR,
                limit(requests.LIMIT_DEFAULT, requests.LIMIT_MAX),
            ),
        ),
    },
    _SCHEMAS,
)
