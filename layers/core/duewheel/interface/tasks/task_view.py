"""Tasks in answers: one, a batch, a page of a list. The payload is in an answer
byte for byte."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duewheel.interface.callbacks.callback_view import (
    CallbackView,
    ShownOnOutcome,
    callback_view,
    on_outcome_view,
)
from duewheel.interface.http import compact, encoded
from duewheel.interface.problems import problem_of
from duewheel.rules.callbacks.outcome import Verdict
from duewheel.rules.callbacks.retry import Retry, number_said, shown_retry
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.delivery.waiting import Reason, Stage, Wait
from duewheel.rules.fields import Count, Cursor, Instant, says
from duewheel.rules.instants import rfc3339, rfc3339_or_none
from duewheel.rules.labels import ShownLabels
from duewheel.rules.names import BizType, FlowKey, TimerId
from duewheel.rules.priority import PriorityField
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.lifecycle import HISTORY_MAX, NOTE_CHARACTERS_MAX
from duewheel.rules.tasks.task import Attempt, Made, Running, Status, Task
from duewheel.workflows.tasks.list_tasks import LookedAt


class AttemptView(Struct, kw_only=True):
    at: Instant
    lateness_ms: Count
    outcome: Annotated[str, says(enum=list(Verdict))]
    status_code: int | None
    duration_ms: int
    note: Annotated[str, Meta(max_length=NOTE_CHARACTERS_MAX)]
    host: (
        Annotated[str, says("That was called: with its port, or the name of the resource.")] | None
    )


class WaitingView(Struct, kw_only=True):
    """Why the task is not called yet. The members that do not belong to the reason are left out."""

    reason: Reason
    expected_at: (
        Annotated[Instant, says("When it is called, or tries again; null if that is not known.")]
        | None
    )
    stage: Annotated[Stage, says("Of `backlog`: what it waits for.")] | UnsetType = UNSET
    host: Annotated[str, says("Of `open-breaker`.")] | UnsetType = UNSET
    until: (
        Annotated[
            Instant,
            says("Of `open-breaker`: when a probe is due; of `running`; of a `paused` task."),
        ]
        | UnsetType
    ) = UNSET
    run: Annotated[str, says("Of `calling`: the run that has it.")] | UnsetType = UNSET
    since: (
        Annotated[
            Instant, says("Of `calling`: when the run took it; of `running`; of a `paused` task.")
        ]
        | UnsetType
    ) = UNSET


class RunningView(Struct, kw_only=True):
    """The receiver has the task, works on, and reports the end."""

    attempt: Count
    since: Instant
    until: Annotated[Instant, says("If nothing is reported by then, the attempt has failed.")]
    note: Annotated[str, says("The latest report of progress.")] | UnsetType = UNSET


class PausedView(Struct, kw_only=True):
    """A caller has put the task aside."""

    since: Instant
    by: str
    until: Annotated[Instant, says("If it is not resumed by then, it is called.")]


class KeptAnswerView(Struct, kw_only=True):
    """The last answer that was kept, by `keep_answers` of its business."""

    at: Instant
    status_code: int
    headers: dict[str, str]
    body: Annotated[str, says("What is not UTF-8 is replaced.")]
    is_whole: Annotated[bool, says("Whether `body` is all of it.")]


class TaskView(Struct, kw_only=True):
    """`retry`, `expires_after_seconds`, `tolerance_seconds`, `priority`, `flow_key`, `labels` and
    `on_outcome` are there only if the request or the timer set them."""

    task_id: str
    biz_type: BizType
    key: str | None
    status: Status
    reason: Annotated[str, says("Why, where there is more to say than the status.")] | None
    parked: bool
    due_at: Instant
    next_at: Annotated[Instant, says("When the next attempt is due; null once it ended.")] | None
    attempts: Count
    payload: Annotated[Raw, says("The text as it was sent.")]
    callback: CallbackView
    effective_callback: (
        Annotated[
            CallbackView,
            says(
                "As a call would be made now, with all that its business and its timer fill in. "
                "Only the calls that read one task have it, unless it cannot be read."
            ),
        ]
        | UnsetType
    ) = UNSET
    retry: Retry | UnsetType = UNSET
    expires_after_seconds: float | UnsetType = UNSET
    tolerance_seconds: Count | UnsetType = UNSET
    priority: PriorityField | UnsetType = UNSET
    flow_key: FlowKey | UnsetType = UNSET
    labels: ShownLabels | UnsetType = UNSET
    on_outcome: ShownOnOutcome | UnsetType = UNSET
    notice_of: (
        Annotated[str, says("The task, or the timer, that this notice tells of.")] | UnsetType
    ) = UNSET
    notice_id: Annotated[str, says("The notice that tells of its outcome.")] | UnsetType = UNSET
    timer_id: TimerId | UnsetType = UNSET
    occurrence_at: Instant | UnsetType = UNSET
    number: Count | UnsetType | None = UNSET
    redrives: Annotated[Count, says("How often it was redriven.")] | UnsetType = UNSET
    redriven_from: Annotated[Status, says("How it had ended before that.")] | UnsetType = UNSET
    changed_by: (
        Annotated[str, says("Who last changed, ran, paused, resumed, cancelled or redrove it.")]
        | UnsetType
    ) = UNSET
    created_at: Instant
    updated_at: Instant
    settled_at: Instant | None
    expires_at: Annotated[Instant, says("When the record may be deleted.")] | None
    lateness_ms: Count | None
    last_error: str | None
    waiting: (
        Annotated[
            WaitingView,
            says("While it waits, in answers of the calls that read one task, run or redrive it."),
        ]
        | UnsetType
    ) = UNSET
    answer: (
        Annotated[KeptAnswerView, says("Only answers with one task have it, where one was kept.")]
        | UnsetType
    ) = UNSET
    running: RunningView | UnsetType = UNSET
    paused: PausedView | UnsetType = UNSET
    result: Annotated[str, says("As the receiver reported it.")] | UnsetType = UNSET
    history: Annotated[
        list[AttemptView], Meta(max_length=HISTORY_MAX, description="The last attempts.")
    ]


class LookedAtView(Struct):
    """How much a page was looked for in. One that has little goes on behind its cursor."""

    records: Count
    businesses: Count
    reached: Annotated[Instant, says("The instant of the last one.")] | UnsetType = UNSET


class TasksView(Struct):
    tasks: list[TaskView]
    cursor: Cursor
    looked_at: Annotated[LookedAtView, says("Of lists with filters.")] | UnsetType = UNSET


Problem = Annotated[Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Problem"})]


class BatchCreatedView(Struct):
    status: Annotated[int, says(enum=[200, 201])]
    task: TaskView


class BatchRefusedView(Struct):
    status: int
    problem: Problem


_EITHER = {
    "oneOf": [{"$ref": f"#/components/schemas/Batch{name}"} for name in ("Created", "Refused")]
}


class BatchResultsView(Struct):
    results: Annotated[
        list[Annotated[Any, Meta(extra_json_schema=_EITHER)]],
        says("One for each task, in order."),
    ]


def task_text(
    task: Task,
    waiting: Wait | None = None,
    effective_callback: Callback | UnsetType | None = UNSET,
) -> str:
    view = _task_view(task)
    if not isinstance(effective_callback, UnsetType):
        view.effective_callback = callback_view(effective_callback)
    if waiting is not None:
        view.waiting = _waiting_view(waiting)
    if (answer := task.answer) is not None:
        view.answer = KeptAnswerView(
            at=rfc3339(answer.at_ms),
            status_code=answer.status_code,
            headers=dict(answer.headers),
            body=answer.body,
            is_whole=answer.is_whole,
        )
    return encoded(view)


def page_text(tasks: Iterable[Task], cursor: str | None, looked_at: LookedAt | None = None) -> str:
    shown = UNSET if looked_at is None else looked_at_view(looked_at)
    return encoded(TasksView([_task_view(task) for task in tasks], cursor, shown))


def looked_at_view(looked_at: LookedAt) -> LookedAtView:
    view = LookedAtView(looked_at.records, looked_at.businesses)
    if looked_at.reached_ms is not None:
        view.reached = rfc3339(looked_at.reached_ms)
    return view


def batch_text(results: Sequence[Made | Refusal]) -> str:
    return encoded(BatchResultsView([_result_view(result) for result in results]))


def shown_payload(payload: str | None) -> Raw:
    return Raw("null" if payload is None else payload)


def _result_view(result: Made | Refusal) -> BatchCreatedView | BatchRefusedView:
    if isinstance(result, Made):
        return BatchCreatedView(201 if result.is_new else 200, _task_view(result.task))
    return BatchRefusedView(result.status, _problem(result))


def _problem(refusal: Refusal) -> Raw:
    """It may repeat any text of a caller."""
    return Raw(compact(problem_of(refusal)))


def _task_view(task: Task) -> TaskView:
    view = TaskView(
        task_id=task.task_id,
        biz_type=task.biz_type,
        key=task.key,
        status=task.status,
        reason=task.reason,
        parked=task.parked,
        due_at=rfc3339(task.due_at_ms),
        next_at=rfc3339(task.next_ms) if task.is_live else None,
        attempts=task.attempts,
        payload=shown_payload(task.payload),
        callback=callback_view(task.callback),
        created_at=rfc3339(task.created_ms),
        updated_at=rfc3339(task.updated_ms),
        settled_at=rfc3339_or_none(task.settled_ms),
        expires_at=None if task.expires_at is None else rfc3339(task.expires_at * 1000),
        lateness_ms=task.lateness_ms,
        last_error=task.last_error,
        history=[_attempt(attempt) for attempt in task.history],
    )
    if task.retry is not None:
        view.retry = shown_retry(task.retry)
    if task.expires_after_seconds is not None:
        view.expires_after_seconds = number_said(task.expires_after_seconds)
    if task.tolerance_seconds is not None:
        view.tolerance_seconds = task.tolerance_seconds
    if task.priority is not None:
        view.priority = task.priority
    if task.flow_key is not None:
        view.flow_key = task.flow_key
    if task.labels:
        view.labels = dict(task.labels)
    _add_work(view, task)
    _add_notices(view, task)
    if task.changed_by is not None:
        view.changed_by = task.changed_by
    if task.revivals:
        view.redrives = task.redrives
        view.redriven_from = task.revivals[-1].status
    if (occurrence := task.occurrence) is not None:
        view.timer_id = occurrence.timer_id
        view.occurrence_at = rfc3339(occurrence.second * 1000)
        view.number = None if occurrence.manual else occurrence.number
    return view


def _waiting_view(waiting: Wait) -> WaitingView:
    view = WaitingView(reason=waiting.reason, expected_at=rfc3339_or_none(waiting.expected_ms))
    if waiting.stage is not None:
        view.stage = waiting.stage
    if waiting.host is not None:
        view.host = waiting.host
    if waiting.until_ms is not None:
        view.until = rfc3339(waiting.until_ms)
    if waiting.run is not None:
        view.run = waiting.run
    if waiting.since_ms is not None:
        view.since = rfc3339(waiting.since_ms)
    return view


def _add_notices(view: TaskView, task: Task) -> None:
    if task.notice_of is not None:
        view.notice_of = task.notice_of
    if task.notice_id is not None:
        view.notice_id = task.notice_id
    if (on_outcome := on_outcome_view(task.on_outcome)) is not None:
        view.on_outcome = on_outcome


def _add_work(view: TaskView, task: Task) -> None:
    if task.running is not None:
        view.running = _running_view(task, task.running)
    if (paused := task.paused) is not None:
        view.paused = PausedView(
            since=rfc3339(paused.since_ms), by=paused.by, until=rfc3339(paused.until_ms)
        )
    if task.result is not None:
        view.result = task.result


def _running_view(task: Task, running: Running) -> RunningView:
    return RunningView(
        attempt=task.attempts + 1,
        since=rfc3339(running.call.at_ms),
        until=rfc3339(running.until_ms),
        note=UNSET if running.note is None else running.note,
    )


def _attempt(attempt: Attempt) -> AttemptView:
    return AttemptView(
        at=rfc3339(attempt.at_ms),
        lateness_ms=attempt.lateness_ms,
        outcome=attempt.outcome,
        status_code=attempt.status_code,
        duration_ms=attempt.duration_ms,
        note=attempt.note,
        host=attempt.host,
    )
