"""When a timer is due: which seconds its definition contains.

Everything is counted in whole seconds since the epoch; an occurrence is known by its second.
"""

from dataclasses import dataclass
from enum import StrEnum


class Dialect(StrEnum):
    """How the fields of a cron expression are read."""

    CRON = "cron"  # 5 fields, or 6 with seconds first
    CRONEXPR = "cronexpr"  # 5 fields; a 6th is the year; of 7 the first are seconds


class DstGap(StrEnum):
    """What becomes of a wall-clock time that a day does not have."""

    SKIP = "skip"
    SHIFT = "shift"  # to the first instant after the gap


class DstOverlap(StrEnum):
    """Which of the two instants of a wall-clock time that a day has twice."""

    FIRST = "first"
    LAST = "last"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Exactly one of `cron` and `every_seconds`. An interval counts from `anchor_second`.
    `start_second` and `end_second` are the first and the last second there may be."""

    cron: str | None = None
    dialect: Dialect = Dialect.CRON
    every_seconds: int | None = None
    anchor_second: int = 0
    timezone: str = "UTC"
    start_second: int | None = None
    end_second: int | None = None
    dst_gap: DstGap = DstGap.SHIFT
    dst_overlap: DstOverlap = DstOverlap.FIRST
    exclude: tuple[str, ...] = ()  # dates (YYYY-MM-DD) in its zone
