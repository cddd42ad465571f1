"""Callers' arguments, and the request bodies made of them.

The fields are those of docs/api.md under the same names; instants may be datetimes and spans
timedeltas. A payload is encoded once, here, and the service passes that text on unchanged.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Any, Final, Literal, Required, TypedDict

from duewheel.instants import Seconds, plain, seconds_of

Priority = Literal["high", "normal", "low"]
Outcome = Literal["delivered", "dead", "expired", "cancelled", "missed", "disabled"]
Status = Literal["pending", "delivered", "dead", "cancelled", "expired"]
Action = Literal["cancel", "reschedule", "run", "redrive", "pause", "resume"]
OperationState = Literal["running", "stopping", "stopped", "done", "failed"]


class Unset(Enum):
    """Marks an argument that is left out, since None is a valid value."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


class Retry(TypedDict, total=False):
    attempts: int
    first_delay_seconds: Seconds
    factor: float
    max_delay_seconds: Seconds
    delays_seconds: Sequence[Seconds]
    max_age_seconds: Seconds


class OnOutcome(TypedDict, total=False):
    """Which outcomes make a notice, and where it goes. A `callback` may be just a URL."""

    outcomes: Required[Sequence[Outcome]]
    callback: Required[str | Mapping[str, Any]]
    with_payload: bool


class BusinessSettings(TypedDict, total=False):
    """None restores the default of a setting."""

    callback: str | Mapping[str, Any] | None
    retry: Retry | None
    retention_days: int | None
    timeout_seconds: Seconds | None
    allowed_hosts: Sequence[str] | None
    trusted_origins: Sequence[str] | None
    retry_statuses: Sequence[int | str] | None
    stop_statuses: Sequence[int | str] | None
    calls_per_second: float | None
    calls_in_flight: int | None
    creates_per_second: float | None
    signing_secrets: Sequence[str] | None
    secrets: Mapping[str, str | None] | None
    tolerance_seconds: Seconds | None
    priority: Priority | None
    flow: Mapping[str, Any] | None
    paused_flow_keys: Mapping[str, Literal[True] | None] | None
    keep_answers: Mapping[str, Any] | None
    on_outcome: OnOutcome | None


class TaskFilter(TypedDict, total=False):
    """Which tasks of a business: those that match all that is given, `due_to` excluded."""

    status: Status | None
    due_from: datetime | None
    due_to: datetime | None
    key_prefix: str | None
    flow_key: str | None
    timer_id: str | None
    labels: Mapping[str, str] | None


class OperationFilter(TaskFilter, total=False):
    """`since` to `last_error` are of dead tasks alone: when they died (`until` excluded), and
    why."""

    since: datetime | None
    until: datetime | None
    reason: str | None
    status_code: int | None
    last_error: str | None


class Schedule(TypedDict, total=False):
    cron: str | None
    every_seconds: Seconds | None
    timezone: str | None
    start_at: datetime | str | None
    end_at: datetime | str | None
    max_runs: int | None
    dst_gap: Literal["shift", "skip"] | None
    dst_overlap: Literal["first", "last", "both"] | None
    exclude: Sequence[date | str] | None


class TimerFields(Schedule, total=False):
    jitter_seconds: Seconds | None
    payload: Any
    callback: str | Mapping[str, Any] | None
    retry: Retry | None
    expires_after_seconds: Seconds | None
    misfire: Literal["all", "latest", "skip"] | None
    grace_seconds: Seconds | None
    overlap: Literal["allow", "skip", "buffer_one", "cancel_running"] | None
    disable_on_stop: bool | None
    pause_on_failures: int | None
    tolerance_seconds: Seconds | None
    priority: Priority | None
    flow_key: str | None
    labels: Mapping[str, str] | None
    managed_by: str | None
    on_outcome: OnOutcome | None
    enabled: bool


class TimerChange(TimerFields, total=False):
    name: str


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """A task to create. Exactly one of `due_at`, `due_ms` and `delay` is needed; a delay,
    `expires_after` and `tolerance` are a timedelta or seconds. A `callback` that is a text is its
    URL."""

    biz_type: str
    due_at: datetime | None = None
    due_ms: int | None = None
    delay: Seconds | None = None
    payload: Any = field(default=UNSET, repr=False)
    callback: str | Mapping[str, Any] | None = field(default=None, repr=False)
    key: str | None = None
    retry: Retry | None = None
    expires_after: Seconds | None = None
    tolerance: Seconds | None = None
    priority: Priority | None = None
    flow_key: str | None = None
    labels: Mapping[str, str] | None = None
    on_outcome: OnOutcome | None = field(default=None, repr=False)

    def body(self) -> dict[str, Any]:
        given = {
            "biz_type": self.biz_type,
            **due(self.due_at, self.due_ms, self.delay),
            "callback": callback_body(self.callback),
            "key": self.key,
            "retry": self.retry,
            "expires_after_seconds": self.expires_after,
            "tolerance_seconds": self.tolerance,
            "priority": self.priority,
            "flow_key": self.flow_key,
            "labels": self.labels,
            "on_outcome": on_outcome_body(self.on_outcome),
        }
        body = {name: plain(value) for name, value in given.items() if value is not None}
        return body if self.payload is UNSET else {**body, "payload": self.payload}

    def due_in_seconds(self, now: float) -> float:
        """The shortest possible time between a request that is sent now and the due instant."""
        if self.delay is not None:
            return seconds_of(self.delay)
        if self.due_at is not None:
            return self.due_at.timestamp() - now
        return (self.due_ms or 0) / 1000 - now


def due(
    due_at: datetime | None, due_ms: int | None, delay: Seconds | None, *, needed: bool = True
) -> dict[str, Any]:
    """Refuses none of them, and more than one."""
    given = {"due_at": due_at, "due_ms": due_ms, "delay_seconds": delay}
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) > 1 or (needed and not named):
        raise ValueError("exactly one of due_at, due_ms and delay is needed")
    return {name: plain(value) for name, value in named.items()}


def callback_body(callback: str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return {"url": callback} if isinstance(callback, str) else callback


def label_texts(labels: Mapping[str, str] | None) -> Sequence[str]:
    """As a filter has them."""
    return [f"{name}:{value}" for name, value in (labels or {}).items()]


def on_outcome_body(on_outcome: OnOutcome | None) -> Mapping[str, Any] | None:
    if on_outcome is None:
        return None
    return {**on_outcome, "callback": callback_body(on_outcome["callback"])}


def settings_body(settings: Mapping[str, Any], *callbacks: str) -> dict[str, Any]:
    """`callbacks` are the members that may be a URL alone; a payload is not changed."""
    body = {name: value for name, value in settings.items() if name != "payload"}
    for name in callbacks:
        if name in body:
            body[name] = callback_body(body[name])
    if "on_outcome" in body:
        body["on_outcome"] = on_outcome_body(body["on_outcome"])
    plain_body: dict[str, Any] = plain(body)
    return {**plain_body, "payload": settings["payload"]} if "payload" in settings else plain_body


def json_bytes(body: Mapping[str, Any]) -> bytes:
    """Refuse values that JSON lacks (NaN, unpaired surrogates) before anything is sent."""
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()
