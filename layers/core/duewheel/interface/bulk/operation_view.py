"""Bulk operations in answers: one, a page of a list, a page of refused items."""

from typing import Annotated

from msgspec import UNSET, Raw, Struct, UnsetType

from duewheel.interface.http import compact, encoded
from duewheel.interface.problems import problem_of
from duewheel.interface.tasks.task_view import LookedAtView, Problem, looked_at_view
from duewheel.rules.bulk.operation import (
    Action,
    Filter,
    Operation,
    RefusedItem,
    State,
    reached_ms,
)
from duewheel.rules.bulk.requests import PerSecond, ShiftSeconds
from duewheel.rules.fields import Count, Cursor, Instant, says
from duewheel.rules.instants import rfc3339, rfc3339_or_none
from duewheel.rules.labels import ShownLabels
from duewheel.rules.names import BizType, FlowKey, TaskKey, TimerId
from duewheel.rules.refusals import Refusal, recalled
from duewheel.rules.tasks.dead_tasks import DeadFilter, ErrorText, Reason, StatusCode
from duewheel.rules.tasks.task import Status
from duewheel.workflows.bulk.operations import OperationPage, RefusedPage


class FilterView(Struct, kw_only=True):
    status: Status | UnsetType = UNSET
    due_from: Instant | UnsetType = UNSET
    due_to: Instant | UnsetType = UNSET
    key_prefix: TaskKey | UnsetType = UNSET
    flow_key: FlowKey | UnsetType = UNSET
    timer_id: TimerId | UnsetType = UNSET
    labels: ShownLabels | UnsetType = UNSET
    since: Instant | UnsetType = UNSET
    until: Instant | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET
    status_code: StatusCode | UnsetType = UNSET
    last_error: ErrorText | UnsetType = UNSET


class OperationView(Struct, kw_only=True):
    """The members of the request are there if it had them; not `ids`, but their number, `total`."""

    operation_id: str
    biz_type: BizType
    action: Action
    due_at: Instant | UnsetType = UNSET
    shift_seconds: ShiftSeconds | UnsetType = UNSET
    filter: FilterView | UnsetType = UNSET
    per_second: PerSecond | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET
    state: State
    created_at: Instant
    created_by: Annotated[str, says("The caller.")]
    updated_at: Instant
    ended_at: Instant | None
    looked_at: Annotated[Count, says("Records, also of tasks that do not match.")]
    changed: Annotated[Count, says("Of a dry run: tasks that it would try.")]
    unchanged: Annotated[Count, says("Tasks that were so already.")]
    refused: Count
    total: Annotated[Count, says("The number of ids; null where a filter says which.")] | None
    position: (
        Annotated[Instant, says("The due instant that it has reached; of dead tasks the death.")]
        | None
    )
    last_problem: Annotated[str, says("Why it failed, or did not go on at the last try.")] | None


class OperationsView(Struct):
    operations: list[OperationView]
    cursor: Cursor
    looked_at: LookedAtView


class RefusedItemView(Struct):
    task_id: str
    problem: Problem


class RefusedItemsView(Struct):
    refused: list[RefusedItemView]
    cursor: Cursor


def operation_text(operation: Operation) -> str:
    return encoded(operation_view(operation))


def operations_text(page: OperationPage) -> str:
    views = [operation_view(one) for one in page.operations]
    return encoded(OperationsView(views, page.cursor, looked_at_view(page.looked_at)))


def refused_text(page: RefusedPage) -> str:
    views = [
        RefusedItemView(one.item_id, Raw(compact(problem_of(_refusal(one)))))
        for one in page.refused
    ]
    return encoded(RefusedItemsView(views, page.cursor))


def operation_view(operation: Operation) -> OperationView:
    wish, counts = operation.wish, operation.counts
    view = OperationView(
        operation_id=operation.operation_id,
        biz_type=operation.biz_type,
        action=wish.action,
        state=operation.state,
        created_at=rfc3339(operation.created_ms),
        created_by=operation.created_by,
        updated_at=rfc3339(operation.updated_ms),
        ended_at=rfc3339_or_none(operation.ended_ms),
        looked_at=counts.looked_at,
        changed=counts.changed,
        unchanged=counts.unchanged,
        refused=counts.refused,
        total=wish.total,
        position=rfc3339_or_none(reached_ms(operation)),
        last_problem=operation.last_problem,
    )
    if wish.due_ms is not None:
        view.due_at = rfc3339(wish.due_ms)
    if wish.shift_seconds is not None:
        view.shift_seconds = wish.shift_seconds
    if wish.filter is not None:
        view.filter = _filter_view(wish.filter)
    if wish.per_second is not None:
        view.per_second = wish.per_second
    if wish.dry_run:
        view.dry_run = True
    return view


def _filter_view(chosen: Filter) -> FilterView:
    view = FilterView()
    for name in ("status", "key_prefix", "flow_key", "timer_id"):
        if (value := getattr(chosen, name)) is not None:
            setattr(view, name, value)
    if chosen.due_from_ms is not None:
        view.due_from = rfc3339(chosen.due_from_ms)
    if chosen.due_to_ms is not None:
        view.due_to = rfc3339(chosen.due_to_ms)
    if chosen.labels:
        view.labels = dict(chosen.labels)
    if chosen.death is not None:
        _add_death(view, chosen.death)
    return view


def _add_death(view: FilterView, death: DeadFilter) -> None:
    for name in ("reason", "status_code", "last_error"):
        if (value := getattr(death, name)) is not None:
            setattr(view, name, value)
    if death.since_ms is not None:
        view.since = rfc3339(death.since_ms)
    if death.until_ms is not None:
        view.until = rfc3339(death.until_ms)


def _refusal(one: RefusedItem) -> Refusal:
    refusal = recalled(one.type, one.detail, one.field)
    refusal.title, refusal.status = one.title, one.status
    return refusal
