"""The timer and the small values it is made of."""

from enum import StrEnum

from msgspec import Struct

from duewheel.rules.addresses import Address
from duewheel.rules.schedule import Schedule
from duewheel.rules.task import UNSIZED, Callback, RetryPolicy, Sizes

NAME_CHARACTERS_MAX = 128


class Misfire(StrEnum):
    """What becomes of occurrences that could not be called within `grace_seconds`."""

    ALL = "all"
    LATEST = "latest"  # the last one that is due is called, those before it are superseded
    SKIP = "skip"


class Overlap(StrEnum):
    """Of an occurrence with an earlier one that is still being delivered or retried."""

    ALLOW = "allow"
    SKIP = "skip"


class Rules(Struct, frozen=True):
    """What its owner has said of a timer."""

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


class Gap(Struct, frozen=True):
    """Seconds in which a timer was disabled: those behind `behind`, up to `until` and with it.
    None: it still is."""

    behind: int
    until: int | None = None


class Timer(Struct, frozen=True):
    """The stored record. `chain` is the home of the planning entry that plans it, as long as it
    is enabled; `numbered` says how many occurrences came before those that this chain plans, and
    `sizes` by which of them are placed that an earlier chain may have written.
    `ended`: enabled, but its definition contains nothing more. `gaps`: the latest ones."""

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
    ended: bool = False
    gaps: tuple[Gap, ...] = ()

    def gap_of(self, second: int) -> int | None:
        """The last second of the gap in which this one lies, and which is over."""
        for gap in self.gaps:
            if gap.until is not None and gap.behind < second <= gap.until:
                return gap.until
        return None
