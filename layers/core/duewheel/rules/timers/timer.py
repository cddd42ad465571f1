"""The timer and its parts.

A timer's id is a whole number, so that a client that reads JSON into doubles keeps it.
"""

import re
from enum import StrEnum

from msgspec import Struct

from duewheel.rules.callbacks.types import Callback, OnOutcome, RetryPolicy
from duewheel.rules.labels import NO_LABELS, Labels
from duewheel.rules.priority import Priority
from duewheel.rules.refusals import UnknownTimer
from duewheel.rules.tasks.task import UNSIZED, Sizes
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.wheel.addresses import Address, Second

NAME_CHARACTERS_MAX = 128


class Misfire(StrEnum):
    """What happens to occurrences that could not be called within `grace_seconds`."""

    ALL = "all"
    LATEST = "latest"  # the last one that is due is called, those before it are superseded
    SKIP = "skip"


class Overlap(StrEnum):
    """Of an occurrence with an earlier one that is still being delivered or retried."""

    ALLOW = "allow"
    SKIP = "skip"
    BUFFER_ONE = "buffer_one"  # one waits, and is called when the earlier one has ended
    CANCEL_RUNNING = "cancel_running"  # the earlier one is cancelled

    @property
    def lets_wait(self) -> bool:
        return self in (Overlap.BUFFER_ONE, Overlap.CANCEL_RUNNING)


class DisabledReason(StrEnum):
    """Why the service disabled a timer by itself; stable words, part of the interface."""

    STOPPED = "receiver answered stop"
    FAILURES = "runs failed in a row"


class Rules(Struct, frozen=True):
    """The owner's settings of a timer."""

    name: str
    schedule: Schedule
    max_runs: int | None = None
    jitter_seconds: int = 0
    payload: str | None = None  # the exact source text of the JSON value, with placeholders
    callback: Callback | None = None  # None: its business's
    retry: RetryPolicy | None = None  # None: its business's
    expires_after_seconds: float | None = None
    misfire: Misfire = Misfire.LATEST
    grace_seconds: int = 60
    overlap: Overlap = Overlap.ALLOW
    disable_on_stop: bool = False
    pause_on_failures: int | None = None  # runs in a row
    tolerance_seconds: int = 0
    priority: Priority | None = None  # None: its business's
    flow_key: str | None = None  # of its occurrences
    labels: Labels = NO_LABELS
    managed_by: str | None = None  # the set of definitions to which the timer belongs
    on_outcome: OnOutcome | None = None  # of its occurrences

    @property
    def may_be_disabled(self) -> bool:
        """Whether the end of a run can disable the timer."""
        return self.disable_on_stop or self.pause_on_failures is not None

    @property
    def late_seconds_max(self) -> int:
        """How much later than its second of the schedule an occurrence may be due."""
        return self.jitter_seconds + self.tolerance_seconds


class Gap(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Seconds in which a timer was disabled: those behind `behind`, up to `until` and with it.
    None: it still is."""

    behind: Second
    until: Second | None = None


class Timer(Struct, frozen=True, kw_only=True):
    """The stored record. `chain` is the home of the planning entry that plans it, as long as it is
    enabled; `numbered` is the number of occurrences before those that this chain plans. `sizes` are
    the shard counts of occurrences that an earlier chain may have written. `last_second`: of the
    last one that `max_runs` permits, if it is among these. `ended`: enabled, but its definition
    contains nothing more. `gaps`: the latest ones. `disabled_reason`: None if it is enabled, or was
    disabled by a caller."""

    timer_id: str
    biz_type: str
    rules: Rules
    enabled: bool
    version: int
    created_ms: int
    updated_ms: int
    chain: Address | None = None
    numbered: int = 0
    sizes: Sizes = UNSIZED
    last_second: Second | None = None
    ended: bool = False
    gaps: tuple[Gap, ...] = ()
    disabled_reason: DisabledReason | None = None

    @property
    def enabled_behind(self) -> Second:
        """It has been enabled since this second, or since its creation."""
        return self.gaps[-1].until or 0 if self.gaps else 0

    def gap_of(self, second: int) -> int | None:
        """The last second of the ended gap in which this second lies."""
        for gap in self.gaps:
            if gap.until is not None and gap.behind < second <= gap.until:
                return gap.until
        return None


_SMALLEST = 2**40
_BEYOND = 2**53
ID_RANGE = _BEYOND - _SMALLEST

_DECIMAL = re.compile("[1-9][0-9]{12,15}")


def timer_id_of(random_number: int) -> str:
    """`random_number`: from 0, below `ID_RANGE`."""
    return str(_SMALLEST + random_number)


def checked_timer_id(text: str) -> str:
    """A malformed id gets the same answer as an unknown one."""
    if not _DECIMAL.fullmatch(text) or not _SMALLEST <= int(text) < _BEYOND:
        raise no_such_timer()
    return text


def no_such_timer() -> UnknownTimer:
    return UnknownTimer("There is no timer with this id.", "timer_id")
