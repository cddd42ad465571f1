"""Requests of bulk operations, and the ids by which they are found."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from duewheel.rules.bulk.operation import IDS_MAX, Action, Filter, State, Wish
from duewheel.rules.fields import (
    From,
    Instant,
    RequestBody,
    To,
    decode,
    given,
    invalid,
    period,
    says,
)
from duewheel.rules.labels import LabelsField, labels_from
from duewheel.rules.names import (
    AHEAD_SECONDS_MAX,
    BIZ_TYPE,
    BizType,
    FlowKey,
    TaskKey,
    WantedTimerId,
)
from duewheel.rules.query_string import PageQuery, read_query
from duewheel.rules.refusals import MalformedTaskId, TooLarge, UnknownOperation
from duewheel.rules.tasks.dead_tasks import (
    DeadFilter,
    DeadQuery,
    ErrorText,
    Reason,
    Since,
    StatusCode,
    dead_filter,
)
from duewheel.rules.tasks.requests import due_instant_ms
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import address_of_task

PER_SECOND_MAX = 1_000
BODY_BYTES_MAX = 131_072

_MARK = re.compile(r"[0-9a-f]{20}")
RANDOM_BYTES = 4  # of an id

ShiftSeconds = Annotated[
    int,
    Meta(
        ge=-AHEAD_SECONDS_MAX,
        le=AHEAD_SECONDS_MAX,
        description="How much later a task is due than before; less than 0: earlier.",
    ),
]
PerSecond = Annotated[
    int, Meta(ge=1, le=PER_SECOND_MAX, description="The most tasks that it tries in a second.")
]


class FilterBody(RequestBody):
    """Those of the tasks that match, as in `GET /v1/tasks`; without a member all that the action
    can apply to. `since` to `last_error` are of dead tasks alone."""

    status: Status | UnsetType = UNSET
    due_from: From | UnsetType = UNSET
    due_to: To | UnsetType = UNSET
    key_prefix: Annotated[TaskKey, says("What the key begins with.")] | UnsetType = UNSET
    flow_key: FlowKey | UnsetType = UNSET
    timer_id: WantedTimerId | UnsetType = UNSET
    labels: LabelsField | UnsetType = UNSET
    since: Since | UnsetType = UNSET
    until: To | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET
    status_code: StatusCode | UnsetType = UNSET
    last_error: ErrorText | UnsetType = UNSET


OF_DEATH = ("since", "until", "reason", "status_code", "last_error")


class NewOperationBody(RequestBody, kw_only=True):
    """Exactly one of `ids` and `filter` says which tasks are meant. `due_at` or `shift_seconds`,
    one of them, belongs to `reschedule` alone."""

    biz_type: BizType
    action: Literal["cancel", "reschedule", "run", "redrive", "pause", "resume"]
    due_at: Annotated[Instant, says("Up to ten years ahead.")] | UnsetType = UNSET
    shift_seconds: ShiftSeconds | UnsetType = UNSET
    ids: (
        Annotated[list[str], says("Of tasks, each once.", minItems=1, maxItems=IDS_MAX)] | UnsetType
    ) = UNSET
    filter: FilterBody | UnsetType = UNSET
    per_second: PerSecond | UnsetType = UNSET
    dry_run: Annotated[bool, says("Count what would be tried, and change nothing.")] = False


class NewOperation(Struct, frozen=True):
    """`ids`: of tasks; empty where a filter says which are meant."""

    biz_type: str
    wish: Wish
    ids: tuple[str, ...] = ()


def operation_request(body: str, now_ms: int) -> NewOperation:
    read = decode(body, NewOperationBody)
    action = Action(read.action)
    due_ms, shift_seconds = _when(read, action, now_ms)
    if (read.ids is UNSET) == (read.filter is UNSET):
        raise invalid("ids", "exactly one of ids and filter is needed.")
    ids = () if isinstance(read.ids, UnsetType) else _checked_ids(read.ids)
    chosen = None if isinstance(read.filter, UnsetType) else _filter(read.filter, action)
    wish = Wish(
        action=action,
        due_ms=due_ms,
        shift_seconds=shift_seconds,
        filter=chosen,
        total=len(ids) if ids else None,
        per_second=given(read.per_second, None),
        dry_run=read.dry_run,
    )
    return NewOperation(read.biz_type, wish, ids)


def _when(read: NewOperationBody, action: Action, now_ms: int) -> tuple[int | None, int | None]:
    said = [name for name in ("due_at", "shift_seconds") if getattr(read, name) is not UNSET]
    if action is not Action.RESCHEDULE:
        if said:
            raise invalid(said[0], f"belongs to reschedule, and not to {action}.")
        return None, None
    if len(said) != 1:
        raise invalid(
            said[1] if said else "due_at",
            f"exactly one of due_at and shift_seconds is needed; {len(said)} are given.",
        )
    if not isinstance(read.due_at, UnsetType):
        return due_instant_ms(read.due_at, "due_at", now_ms), None
    shift_seconds = given(read.shift_seconds, 0)
    if not shift_seconds:
        raise invalid("shift_seconds", "must not be 0.")
    return None, shift_seconds


def _checked_ids(ids: Sequence[str]) -> tuple[str, ...]:
    if not ids:
        raise invalid("ids", "is empty.")
    if len(ids) > IDS_MAX:
        raise TooLarge(f"An operation has at most {IDS_MAX} ids; others take a filter.", "ids")
    seen: set[str] = set()
    for number, task_id in enumerate(ids):
        try:
            address_of_task(task_id)
        except MalformedTaskId as error:
            raise invalid(f"ids[{number}]", "is no task id of this service.") from error
        if task_id in seen:
            raise invalid(f"ids[{number}]", "is given twice.")
        seen.add(task_id)
    return tuple(ids)


def _filter(read: FilterBody, action: Action) -> Filter:
    due_from_ms, due_to_ms = period(
        ("filter.due_from", given(read.due_from, None)), ("filter.due_to", given(read.due_to, None))
    )
    status = _status(read, action)
    return Filter(
        status=status,
        due_from_ms=due_from_ms,
        due_to_ms=due_to_ms,
        key_prefix=given(read.key_prefix, None),
        flow_key=given(read.flow_key, None),
        timer_id=given(read.timer_id, None),
        labels=()
        if isinstance(read.labels, UnsetType)
        else labels_from(read.labels, "filter.labels"),
        death=_death(read, status),
    )


def _death(read: FilterBody, status: Status) -> DeadFilter | None:
    said = {name: value for name in OF_DEATH if (value := getattr(read, name)) is not UNSET}
    if not said:
        return None
    if status is not Status.DEAD:
        raise invalid(f"filter.{next(iter(said))}", f"does not belong to tasks that are {status}.")
    return dead_filter(DeadQuery(**said), within="filter.")


def _status(read: FilterBody, action: Action) -> Status:
    """Of tasks to which the action can apply. A redrive of others than dead ones needs both bounds,
    since a status left over from years can be meant by mistake."""
    status = given(read.status, None)
    if action is not Action.REDRIVE:
        if status not in (None, Status.PENDING):
            raise invalid("filter.status", f"must be pending for {action}.")
        return Status.PENDING
    if status is None:
        raise invalid("filter.status", "is needed for redrive.")
    if status is Status.PENDING:
        raise invalid("filter.status", "must be dead, delivered, expired or cancelled for redrive.")
    if status is not Status.DEAD:
        for name in ("due_from", "due_to"):
            if getattr(read, name) is UNSET:
                raise invalid(f"filter.{name}", f"is needed for tasks that are {status}.")
    return status


class OperationsQuery(PageQuery):
    biz_type: Annotated[BizType, says("All that the caller reaches, if it is left out.")] | None = (
        None
    )
    state: State | None = None

    @property
    def question(self) -> tuple[str | None, ...]:
        return "operations", self.biz_type, self.state


class RefusedQuery(PageQuery):
    pass


def operations_query(query_string: str) -> OperationsQuery:
    return read_query(query_string, OperationsQuery)


def mark_at(now_ms: int, random_bytes: bytes) -> str:
    """Marks sort by the instants at which their operations were made."""
    return f"{now_ms:012x}{random_bytes.hex()}"


def named_operation(operation_id: str) -> tuple[str, str]:
    """Business and mark; refuses an id that this service did not make."""
    biz_type, _, mark = operation_id.rpartition("~")
    if not BIZ_TYPE.fullmatch(biz_type) or not _MARK.fullmatch(mark):
        raise no_such_operation()
    return biz_type, mark


def no_such_operation() -> UnknownOperation:
    return UnknownOperation("There is no operation with this id.", "operation_id")
