"""The task and its parts."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.rules.callbacks.types import Callback, KeptAnswer, OnOutcome, RetryPolicy
from duewheel.rules.labels import NO_LABELS, Labels
from duewheel.rules.names import scope_of
from duewheel.rules.priority import Priority
from duewheel.rules.tolerance import Window
from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.sharding import Placement


class Status(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Attempt(Struct, frozen=True, kw_only=True):
    """One try at one callback. `outcome` is `delivered`, `retry` or `stop`; `note` says why."""

    at_ms: int
    lateness_ms: int
    duration_ms: int
    outcome: str
    entry_second: int  # of the entry it was made on
    status_code: int | None = None
    note: str = ""
    host: str | None = None
    answer: KeptAnswer | None = None  # goes to the task


class Reservation(Struct, frozen=True):
    """A place in the line of a rate limit, by settings of this version: the task tries again then.
    `is_late`: it has tried with another place before, and found no turn free."""

    at_ms: int
    version: int
    is_late: bool = False


class PostponedBy(StrEnum):
    """Why a task got a later instant without an attempt. Stored."""

    OPEN_BREAKER = "open-breaker"
    SLOW_LANE = "slow-lane"
    RELEASE = "release"  # it has a place among tasks that were parked
    FLOW_KEY = "flow-key"
    OVERLAP = "overlap"  # an earlier run of its timer is pending


class Postponement(Struct, frozen=True):
    """Why a task waits for this instant. Another instant is not explained by it."""

    by: PostponedBy
    until_ms: int


class InLine(Struct, frozen=True):
    """Put aside by the order of its flow key: it falls due `until_ms`, unless it is woken, which it
    may be `from_ms`. Good only while `until_ms` is its next instant."""

    until_ms: int
    from_ms: int


class Revival(Struct, frozen=True, kw_only=True):
    """One redrive: the seconds of the entry on which the task had ended, and of the one that
    brings it back; and how it had ended, after how many attempts."""

    ended: int
    revived: int
    status: Status = Status.DEAD
    lateness_ms: int | None = None
    reason: str | None = None
    attempts: int = 1

    @property
    def is_seen(self) -> bool:
        """Whether the sweep finds the end. It does not find that of a task which was brought back
        before the second of its end."""
        return self.ended < self.revived


class Running(Struct, frozen=True, kw_only=True):
    """The receiver works on after its call, and reports the end until `until_ms`; good only while
    that is the next instant of the task. `call`: the attempt, as the call ended. `scopes`: of those
    whose permits the work holds. `note`: the latest report of progress."""

    call: Attempt
    until_ms: int
    within_seconds: int
    scopes: tuple[str, ...] = ()
    note: str | None = None


class Paused(Struct, frozen=True, kw_only=True):
    """Put aside by a caller until `until_ms`, unless it is resumed: then it is due `from_ms`, or at
    once. Good only while `until_ms` is the next instant of the task."""

    since_ms: int
    by: str
    until_ms: int
    from_ms: int


class Occurrence(Struct, frozen=True):
    """The second of a schedule that this task is for, which jitter may postpone, and its number. An
    occurrence that was run by hand has no number."""

    timer_id: str
    second: int
    number: int = 0
    manual: bool = False


class Sizes(Struct, frozen=True):
    """Among how many shards the occurrences of a timer are placed. It holds for all seconds of the
    schedule before `until_second`; `shards` has those with more than one, each with the second in
    which it is due: with another jitter or tolerance it is due in another one, of other shards."""

    until_second: int = 0
    shards: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def of(self, second: int, due_second: int) -> int:
        return self.shards.get((second, due_second), 1)

    def kept_from(self, first_second: int) -> "Sizes":
        """Without the sizes of earlier seconds, which are not planned again."""
        kept = {key: n for key, n in self.shards.items() if key[0] >= first_second}
        return Sizes(self.until_second, kept)


UNSIZED = Sizes()


class Plan(Struct, frozen=True):
    """Makes a task the internal one that plans a timer: up to which second its occurrences are
    written, how many there were, and the sizes by which they are placed."""

    timer_id: str
    planned_until_second: int
    numbered: int
    sizes: Sizes = UNSIZED


class Task(Struct, frozen=True, kw_only=True):
    """The stored record. `home` is its address for life; `entry` is the one entry that may fire.
    `due_ms` is what lateness, grace and age count from: the due instant, or the second that its
    tolerance gave it; then `requested_ms` is the due instant."""

    home: Address
    entry: Address
    biz_type: str
    due_ms: int
    next_ms: int
    callback: Callback | None  # None: its business's
    created_ms: int
    updated_ms: int
    payload: str | None = None
    retry: RetryPolicy | None = None
    expires_after_seconds: float | None = None
    tolerance_seconds: int | None = None  # None: its business's
    requested_ms: int | None = None
    status: Status = Status.PENDING
    reason: str | None = None
    attempts: int = 0
    history: tuple[Attempt, ...] = ()
    settled_ms: int | None = None
    expires_at: int | None = None  # seconds since the epoch; set only when settled
    lateness_ms: int | None = None
    last_error: str | None = None
    key: str | None = None
    digest: str | None = None
    max_due_ms: int | None = None
    reservation: Reservation | None = None  # good only while `next_ms` is its instant
    postponement: Postponement | None = None  # good only while `next_ms` is its instant
    parked: bool = False  # it fell due while its business or its flow key was paused
    parked_key: str | None = None  # the flow key, if its pause parked it
    notice_of: str | None = None  # the task whose outcome this one reports
    redrives: int = 0
    revivals: tuple[Revival, ...] = ()
    occurrence: Occurrence | None = None
    plan: Plan | None = None
    first_second: int | None = None  # in which it first falls due, if not its home's
    priority: Priority | None = None  # None: its business's
    flow_key: str | None = None
    ordered_ms: int | None = None  # its place in the order of its key, if not its due instant
    in_line: InLine | None = None
    labels: Labels = NO_LABELS
    answer: KeptAnswer | None = None  # the last one that was kept
    running: Running | None = None
    paused: Paused | None = None
    result: str | None = None  # as it was reported
    on_outcome: OnOutcome | None = None
    notice_id: str | None = None  # of the notice that reports its outcome
    changed_by: str | None = None  # the caller of the last change, run, pause, cancel or redrive
    marks: str | None = None  # of the latest bulk operations that changed it (`bulk/marks.py`)
    version: int = 1

    @classmethod
    def at(
        cls,
        home: Address,
        biz_type: str,
        due_ms: int,
        now_ms: int,
        callback: Callback | None = None,
    ) -> Self:
        """A new task whose home is its entry."""
        return cls(
            home=home,
            entry=home,
            biz_type=biz_type,
            due_ms=due_ms,
            next_ms=due_ms,
            callback=callback,
            created_ms=now_ms,
            updated_ms=now_ms,
        )

    @property
    def task_id(self) -> str:
        return self.home.task_id

    @property
    def due_at_ms(self) -> int:
        """The due instant, as it was requested."""
        return self.due_ms if self.requested_ms is None else self.requested_ms

    @property
    def call_ms(self) -> int:
        """When its next attempt is due, if it is not paused, or is resumed."""
        return self.next_ms if self.paused is None else self.paused.from_ms

    @property
    def completion_token(self) -> str | None:
        """Only a task that is sent has one (`completion.py`)."""
        return None

    @property
    def is_live(self) -> bool:
        return self.status is Status.PENDING

    @property
    def is_internal(self) -> bool:
        """A task of the service itself; no caller sees it."""
        return self.plan is not None

    @property
    def parked_scope(self) -> str:
        """The business or the flow key whose pause parked it."""
        return scope_of(self.biz_type, self.parked_key)

    @property
    def names_its_home(self) -> bool:
        return self.entry == self.home


class NewTask(Struct, frozen=True, kw_only=True):
    """A validated create request, before the task has a place on the wheel. `due_ms` is its due
    instant."""

    biz_type: str
    due_ms: int
    callback: Callback | None  # None: its business's
    payload: str | None = None  # the exact source text of the JSON value
    retry: RetryPolicy | None = None  # None: its business's
    expires_after_seconds: float | None = None
    tolerance_seconds: int | None = None  # None: its business's
    key: str | None = None
    digest: str | None = None  # of all members but `biz_type` and `key`; with a key only
    max_due_ms: int | None = None  # how far a watchdog may be pushed out
    priority: Priority | None = None  # None: its business's
    flow_key: str | None = None
    labels: Labels = NO_LABELS
    on_outcome: OnOutcome | None = None

    @property
    def window(self) -> Window:
        return Window(self.due_ms, self.biz_type, self.tolerance_seconds)

    def placed(self, placement: Placement, random_bytes: bytes) -> Task:
        """The task as it is to be stored."""
        due_ms = placement.due_ms(self.window, random_bytes)
        home = placement.address(due_ms, random_bytes)
        return replace(
            Task.at(home, self.biz_type, due_ms, placement.now_ms, self.callback),
            payload=self.payload,
            key=self.key,
            digest=self.digest,
            max_due_ms=self.max_due_ms,
            retry=self.retry,
            expires_after_seconds=self.expires_after_seconds,
            tolerance_seconds=self.tolerance_seconds,
            flow_key=self.flow_key,
            requested_ms=None if due_ms == self.due_ms else self.due_ms,
            priority=self.priority,
            labels=self.labels,
            on_outcome=self.on_outcome,
        )


class Made(Struct, frozen=True):
    """The result of a create: a new task, or the live one that its key names already."""

    task: Task
    is_new: bool = True
