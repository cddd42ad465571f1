"""The service's answers, as values.

Fields that may hold secrets (payloads, headers and addresses of callbacks, keys) are left out of
every repr.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from duewheel.instants import instant_from
from duewheel.members import INSTANT, Value, many, read_by


@dataclass(frozen=True, kw_only=True)
class Attempt(Value):
    at: datetime = field(metadata=INSTANT)
    outcome: str
    status_code: int | None = None
    lateness_ms: int | None = None
    duration_ms: int | None = None
    note: str = ""
    host: str | None = None


@dataclass(frozen=True, kw_only=True)
class Waiting(Value):
    """Why a task is not called yet; members that do not belong to the reason are None."""

    reason: str
    expected_at: datetime | None = field(default=None, metadata=INSTANT)
    stage: str | None = None
    host: str | None = None
    until: datetime | None = field(default=None, metadata=INSTANT)
    run: str | None = None
    since: datetime | None = field(default=None, metadata=INSTANT)


@dataclass(frozen=True, kw_only=True)
class KeptAnswer(Value):
    """The last answer to a task that was kept. `is_whole`: `body` is all of it."""

    at: datetime = field(metadata=INSTANT)
    status_code: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: str = field(default="", repr=False)
    is_whole: bool = True


@dataclass(frozen=True, kw_only=True)
class Running(Value):
    """The receiver works on, and reports the end until `until`."""

    attempt: int
    since: datetime = field(metadata=INSTANT)
    until: datetime = field(metadata=INSTANT)
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Paused(Value):
    """Put aside by a caller. If it is not resumed by `until`, it is called then."""

    since: datetime = field(metadata=INSTANT)
    by: str
    until: datetime = field(metadata=INSTANT)


@dataclass(frozen=True, kw_only=True)
class WorkState(Value):
    """What a receiver learns of a task that it reported on."""

    task_id: str
    status: str
    until: datetime | None = field(default=None, metadata=INSTANT)
    next_at: datetime | None = field(default=None, metadata=INSTANT)


@dataclass(frozen=True, kw_only=True)
class Task(Value):
    task_id: str
    biz_type: str
    key: str | None = None
    status: str
    reason: str | None = None
    parked: bool = False
    due_at: datetime = field(metadata=INSTANT)
    next_at: datetime | None = field(default=None, metadata=INSTANT)
    attempts: int = 0
    payload: Any = field(default=None, repr=False)
    callback: Mapping[str, Any] | None = field(default=None, repr=False)
    effective_callback: Mapping[str, Any] | None = field(default=None, repr=False)
    retry: Mapping[str, Any] | None = field(default=None, repr=False)
    expires_after_seconds: float | None = field(default=None, repr=False)
    tolerance_seconds: int | None = field(default=None, repr=False)
    priority: str | None = field(default=None, repr=False)
    flow_key: str | None = field(default=None, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    created_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    updated_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    settled_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    expires_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    lateness_ms: int | None = None
    last_error: str | None = field(default=None, repr=False)
    waiting: Waiting | None = field(default=None, repr=False, metadata=read_by(Waiting.read))
    history: tuple[Attempt, ...] = field(
        default=(), repr=False, metadata=read_by(many(Attempt.read))
    )
    timer_id: str | None = field(default=None, repr=False)
    occurrence_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    number: int | None = field(default=None, repr=False)
    notice_of: str | None = field(default=None, repr=False)
    redrives: int = field(default=0, repr=False)
    redriven_from: str | None = field(default=None, repr=False)
    answer: KeptAnswer | None = field(default=None, repr=False, metadata=read_by(KeptAnswer.read))
    running: Running | None = field(default=None, repr=False, metadata=read_by(Running.read))
    paused: Paused | None = field(default=None, repr=False, metadata=read_by(Paused.read))
    result: str | None = field(default=None, repr=False)
    notice_id: str | None = field(default=None, repr=False)
    changed_by: str | None = field(default=None, repr=False)
    on_outcome: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class MissedRuns(Value):
    count: int
    first_at: datetime = field(metadata=INSTANT)
    last_at: datetime = field(metadata=INSTANT)


@dataclass(frozen=True, kw_only=True)
class OutcomeNotice(Value):
    """What a notice tells (`on_outcome`). `task_id` is None and `runs` is set if it is
    of several missed runs of a timer."""

    outcome: str
    task_id: str | None = None
    biz_type: str
    key: str | None = None
    timer_id: str | None = None
    reason: str | None = None
    due_at: datetime = field(metadata=INSTANT)
    settled_at: datetime | None = field(default=None, metadata=INSTANT)
    attempts: int = 0
    last_error: str | None = field(default=None, repr=False)
    last_status_code: int | None = None
    runs: MissedRuns | None = field(default=None, metadata=read_by(MissedRuns.read))
    payload: Any = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class LookedAt(Value):
    """What a request for a list has looked at: the more, the fewer match. `reached`: the instant of
    the last one, if the list goes on."""

    records: int
    businesses: int = 1
    reached: datetime | None = field(default=None, metadata=INSTANT)


@dataclass(frozen=True, kw_only=True)
class PrefixCancelled(Value):
    cancelled: int
    too_late: tuple[str, ...] = field(metadata=read_by(tuple))


@dataclass(frozen=True, kw_only=True)
class Operation(Value):
    """A change of many tasks. `total` is the number of ids, and None for a filter; `position` the
    due instant that it has reached; `refused` counts the tasks that could not be changed."""

    operation_id: str
    biz_type: str
    action: str
    state: str
    dry_run: bool = False
    looked_at: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: int = 0
    total: int | None = None
    position: datetime | None = field(default=None, metadata=INSTANT)
    last_problem: str | None = None
    due_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    shift_seconds: int | None = field(default=None, repr=False)
    filter: Mapping[str, Any] | None = field(default=None, repr=False)
    per_second: int | None = field(default=None, repr=False)
    created_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    created_by: str | None = field(default=None, repr=False)
    updated_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    ended_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)

    @property
    def has_ended(self) -> bool:
        return self.state not in ("running", "stopping")


@dataclass(frozen=True, kw_only=True)
class RefusedTask(Value):
    """A task that an operation could not change, with the service's problem."""

    task_id: str
    problem: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Breaker(Value):
    """The open circuit breaker of a host that keeps failing."""

    host: str
    since: datetime = field(metadata=INSTANT)
    until: datetime = field(metadata=INSTANT)


@dataclass(frozen=True, kw_only=True)
class CallRate(Value):
    free_in_ms: int
    waiting: int


@dataclass(frozen=True, kw_only=True)
class CreateRate(Value):
    taken: int
    all_free_in_ms: int


@dataclass(frozen=True, kw_only=True)
class Permits(Value):
    used: int
    waiting: int


@dataclass(frozen=True, kw_only=True)
class Usage(Value):
    """How much of its limits a business uses; None where it has no limit."""

    calls: CallRate | None = field(default=None, metadata=read_by(CallRate.read))
    creates: CreateRate | None = field(default=None, metadata=read_by(CreateRate.read))
    calls_in_flight: Permits | None = field(default=None, metadata=read_by(Permits.read))
    dispatch_lag_seconds: int = 0
    oldest_open_seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Business(Value):
    """`version` 0: it has no settings. Only a read and a list have `last_task_at`, and only a read
    `usage`."""

    biz_type: str
    version: int
    paused: bool = False
    lane: str = "main"
    own: tuple[str, ...] = field(default=(), metadata=read_by(tuple))
    callback: Mapping[str, Any] | None = field(default=None, repr=False)
    retry: Mapping[str, Any] | None = field(default=None, repr=False)
    retention_days: int | None = field(default=None, repr=False)
    timeout_seconds: float | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] | None = field(default=None, repr=False, metadata=read_by(tuple))
    trusted_origins: tuple[str, ...] | None = field(
        default=None, repr=False, metadata=read_by(tuple)
    )
    retry_statuses: tuple[int | str, ...] = field(default=(), repr=False, metadata=read_by(tuple))
    stop_statuses: tuple[int | str, ...] = field(default=(), repr=False, metadata=read_by(tuple))
    calls_per_second: float | None = field(default=None, repr=False)
    calls_in_flight: int | None = field(default=None, repr=False)
    creates_per_second: float | None = field(default=None, repr=False)
    signing_secrets: tuple[str, ...] | None = field(
        default=None, repr=False, metadata=read_by(tuple)
    )
    secrets: tuple[str, ...] | None = field(default=None, repr=False, metadata=read_by(tuple))
    tolerance_seconds: int = field(default=0, repr=False)
    priority: str = field(default="normal", repr=False)
    flow: Mapping[str, Any] | None = field(default=None, repr=False)
    paused_flow_keys: tuple[str, ...] = field(default=(), repr=False, metadata=read_by(tuple))
    keep_answers: Mapping[str, Any] | None = field(default=None, repr=False)
    on_outcome: Mapping[str, Any] | None = field(default=None, repr=False)
    breakers: tuple[Breaker, ...] = field(
        default=(), repr=False, metadata=read_by(many(Breaker.read))
    )
    created_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    updated_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    last_task_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    usage: Usage | None = field(default=None, repr=False, metadata=read_by(Usage.read))


@dataclass(frozen=True, kw_only=True)
class Change(Value):
    """A change of a definition. `fields` are its fields with old and new value; of callbacks,
    payloads and secrets only the name is shown."""

    version: int
    at: datetime = field(metadata=INSTANT)
    by: str
    did: str
    fields: tuple[Mapping[str, Any], ...] = field(default=(), metadata=read_by(tuple))


def read_changes(answer: Any) -> tuple[Change, ...]:
    return tuple(Change.read(change) for change in answer["changes"])


@dataclass(frozen=True, kw_only=True)
class BusinessDeleted(Value):
    """`too_late`: the ids of tasks whose calls could no longer be stopped."""

    done: bool
    timers: int = 0
    cancelled: int = 0
    too_late: tuple[str, ...] = field(default=(), metadata=read_by(tuple))
    cursor: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Lateness(Value):
    sum_ms: int
    max_ms: int
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Counts(Value):
    """The sums of one minute, which `at` names, or of all."""

    at: datetime | None = field(default=None, metadata=INSTANT)
    created: int
    pending: int
    delivered: int
    dead: int
    expired: int
    cancelled: int
    failed_attempts: int
    lateness: Lateness = field(metadata=read_by(Lateness.read))


@dataclass(frozen=True, kw_only=True)
class Statistics(Value):
    biz_type: str
    begin: datetime = field(metadata=read_by(instant_from, "from"))
    end: datetime = field(metadata=read_by(instant_from, "to"))
    counted_until: datetime = field(metadata=INSTANT)
    closed_until: datetime = field(metadata=INSTANT)
    total: Counts = field(metadata=read_by(Counts.read))
    minutes: tuple[Counts, ...] = field(repr=False, metadata=read_by(many(Counts.read)))


@dataclass(frozen=True, kw_only=True)
class Timer(Value):
    timer_id: str
    name: str
    biz_type: str
    cron: str | None = None
    every_seconds: int | None = None
    timezone: str = "UTC"
    state: str
    next_at: datetime | None = field(default=None, metadata=INSTANT)
    version: int
    enabled: bool = True
    disabled_reason: str | None = field(default=None, repr=False)
    dialect: str | None = field(default=None, repr=False)
    start_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    end_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    max_runs: int | None = field(default=None, repr=False)
    jitter_seconds: int = field(default=0, repr=False)
    payload: Any = field(default=None, repr=False)
    callback: Mapping[str, Any] | None = field(default=None, repr=False)
    retry: Mapping[str, Any] | None = field(default=None, repr=False)
    expires_after_seconds: float | None = field(default=None, repr=False)
    dst_gap: str = field(default="shift", repr=False)
    dst_overlap: str = field(default="first", repr=False)
    misfire: str = field(default="latest", repr=False)
    grace_seconds: int = field(default=60, repr=False)
    overlap: str = field(default="allow", repr=False)
    exclude: tuple[str, ...] = field(default=(), repr=False, metadata=read_by(tuple))
    disable_on_stop: bool = field(default=False, repr=False)
    pause_on_failures: int | None = field(default=None, repr=False)
    tolerance_seconds: int = field(default=0, repr=False)
    priority: str | None = field(default=None, repr=False)
    flow_key: str | None = field(default=None, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    managed_by: str | None = field(default=None, repr=False)
    on_outcome: Mapping[str, Any] | None = field(default=None, repr=False)
    counters: Mapping[str, int] | None = field(default=None, repr=False)
    created_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    updated_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)


@dataclass(frozen=True, kw_only=True)
class Grant(Value):
    """A right on businesses: `*` for all, a name, or a prefix such as `orders-*`."""

    right: str
    businesses: str


@dataclass(frozen=True, kw_only=True)
class ApiKey(Value):
    """`key` is the bearer's text, present only in the answers of `create` and `rotate`."""

    key_id: str
    name: str
    grants: tuple[Grant, ...] = field(metadata=read_by(many(Grant.read)))
    state: str
    key: str | None = field(default=None, repr=False)
    version: int | None = field(default=None, repr=False)
    created_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    created_by: str | None = field(default=None, repr=False)
    expires_at: datetime | None = field(default=None, metadata=INSTANT)
    previous_until: datetime | None = field(default=None, repr=False, metadata=INSTANT)
    last_used_on: date | None = field(default=None, metadata=read_by(date.fromisoformat))
    revoked_at: datetime | None = field(default=None, repr=False, metadata=INSTANT)


@dataclass(frozen=True, kw_only=True)
class Pointer(Value):
    at: datetime = field(metadata=INSTANT)
    second: int
    lag_seconds: float


@dataclass(frozen=True, kw_only=True)
class OpenPlace(Value):
    """A place behind the sweep pointer that the sweep has not finished. `page` is None if the whole
    slice is open."""

    at: datetime = field(metadata=INSTANT)
    second: int
    shard: int
    page: str | None = None
    since: datetime = field(metadata=INSTANT)
    why: str


@dataclass(frozen=True, kw_only=True)
class OpenPlaces(Value):
    """The number of open places, and their list, the oldest first; `places` may have fewer than
    `count`."""

    count: int = 0
    oldest_age_seconds: float | None = None
    places: tuple[OpenPlace, ...] = field(default=(), metadata=read_by(many(OpenPlace.read)))


@dataclass(frozen=True, kw_only=True)
class Wheel(Value):
    now: datetime = field(metadata=INSTANT)
    buckets: int
    origin: datetime = field(metadata=INSTANT)
    time_pointer: Pointer = field(metadata=read_by(Pointer.read))
    sweep_pointer: Pointer = field(metadata=read_by(Pointer.read))
    open_places: OpenPlaces = field(default=OpenPlaces(), metadata=read_by(OpenPlaces.read))
    leader: Any = None
    forecast: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Finding(Value):
    """An inconsistent item."""

    wrong: str
    detail: str
    task_id: str | None = None
    biz_type: str | None = None
    at: str | None = None
    attribute: str | None = None


@dataclass(frozen=True, kw_only=True)
class Health(Value):
    status: str
    version: str
