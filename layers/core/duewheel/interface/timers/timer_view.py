"""A timer in an answer. The payload is in it byte for byte, with its placeholders."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import UNSET, Raw, Struct, UnsetType

from duewheel.interface.callbacks.callback_view import (
    CallbackView,
    ShownOnOutcome,
    callback_view,
    on_outcome_view,
)
from duewheel.interface.http import Answer, encoded
from duewheel.interface.tasks.task_view import LookedAtView, looked_at_view, shown_payload
from duewheel.rules.callbacks.retry import Retry, number_said, shown_retry
from duewheel.rules.fields import Count, Cursor, Date, Instant, says
from duewheel.rules.instants import rfc3339
from duewheel.rules.labels import ShownLabels
from duewheel.rules.names import BizType, FlowKey, TimerId
from duewheel.rules.priority import PriorityField
from duewheel.rules.timers.requests import State
from duewheel.rules.timers.schedule import Dialect, DstGap, DstOverlap
from duewheel.rules.timers.timer import DisabledReason, Misfire, Overlap
from duewheel.workflows.timers.read_timers import ShownTimer, TimerPage


class CountersView(Struct, kw_only=True):
    fired: Count
    delivered: Count
    dead: Count
    expired: Count
    missed: Count
    superseded: Count
    skipped: Count
    replaced: Count


class TimerView(Struct, kw_only=True):
    timer_id: TimerId
    name: str
    biz_type: BizType
    cron: str | None
    dialect: Dialect | None
    every_seconds: Count | None
    timezone: str
    start_at: Instant | None
    end_at: Instant | None
    max_runs: Count | None
    jitter_seconds: Count
    payload: Annotated[Raw, says("The text as it was sent.")]
    callback: CallbackView
    retry: Retry | None
    expires_after_seconds: float | None
    dst_gap: DstGap
    dst_overlap: DstOverlap
    misfire: Misfire
    grace_seconds: Count
    overlap: Overlap
    exclude: tuple[Date, ...]
    disable_on_stop: bool
    pause_on_failures: Count | None
    tolerance_seconds: Count
    priority: Annotated[PriorityField, says("null: that of its business.")] | None
    flow_key: FlowKey | None
    labels: ShownLabels
    managed_by: str | None
    on_outcome: ShownOnOutcome | None
    enabled: bool
    state: State
    disabled_reason: (
        Annotated[
            DisabledReason,
            says("Why the service disabled it; null if a caller did, or it is enabled."),
        ]
        | None
    )
    next_at: Instant | None
    version: Count
    created_at: Instant
    updated_at: Instant
    counters: CountersView | UnsetType = UNSET  # only when one timer is read


class TimersView(Struct):
    timers: list[TimerView]
    cursor: Cursor
    looked_at: LookedAtView


class UpcomingView(Struct):
    upcoming: list[Instant]


class TimerDeletionView(Struct):
    timer_id: TimerId
    deleted: Annotated[bool, says(const=True)] = True


def timer_answer(shown: ShownTimer, status: int = 200, **headers: str) -> Answer:
    tag = f'"{shown.timer.version}"'
    return Answer(status, encoded(_timer_view(shown)), headers={"etag": tag, **headers})


def timers_view(page: TimerPage) -> TimersView:
    timers = [_timer_view(shown) for shown in page.timers]
    return TimersView(timers, page.cursor, looked_at_view(page.looked_at))


def upcoming_view(seconds: Iterable[int]) -> UpcomingView:
    return UpcomingView([rfc3339(second * 1000) for second in seconds])


def _timer_view(shown: ShownTimer) -> TimerView:
    timer, rules, schedule = shown.timer, shown.timer.rules, shown.timer.rules.schedule
    expires_after = rules.expires_after_seconds
    return TimerView(
        timer_id=timer.timer_id,
        name=rules.name,
        biz_type=timer.biz_type,
        cron=schedule.cron,
        dialect=None if schedule.cron is None else schedule.dialect,
        every_seconds=schedule.every_seconds,
        timezone=schedule.timezone,
        start_at=_instant(schedule.start_second),
        end_at=_instant(schedule.end_second),
        max_runs=rules.max_runs,
        jitter_seconds=rules.jitter_seconds,
        payload=shown_payload(rules.payload),
        callback=callback_view(rules.callback),
        retry=None if rules.retry is None else shown_retry(rules.retry),
        expires_after_seconds=None if expires_after is None else number_said(expires_after),
        dst_gap=schedule.dst_gap,
        dst_overlap=schedule.dst_overlap,
        misfire=rules.misfire,
        grace_seconds=rules.grace_seconds,
        overlap=rules.overlap,
        exclude=schedule.exclude,
        disable_on_stop=rules.disable_on_stop,
        pause_on_failures=rules.pause_on_failures,
        tolerance_seconds=rules.tolerance_seconds,
        priority=rules.priority,
        flow_key=rules.flow_key,
        labels=dict(rules.labels),
        managed_by=rules.managed_by,
        on_outcome=on_outcome_view(rules.on_outcome),
        enabled=timer.enabled,
        state=shown.state,
        disabled_reason=timer.disabled_reason,
        next_at=_instant(shown.next_second),
        version=timer.version,
        created_at=rfc3339(timer.created_ms),
        updated_at=rfc3339(timer.updated_ms),
        counters=UNSET if shown.counters is None else CountersView(**shown.counters),
    )


def _instant(second: int | None) -> str | None:
    return None if second is None else rfc3339(second * 1000)
