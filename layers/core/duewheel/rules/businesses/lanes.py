"""Lanes: a business whose calls were observed to be slow has them made in the slow lane.

A page with slow calls keeps its notifier busy, and other pages wait. So each notifier measures how
long the recent calls of a business took.
"""

from enum import StrEnum

from msgspec import Struct

WINDOW_MS = 60_000
CALLS_MIN = 5  # fewer calls decide nothing
MEAN_MS_MAX = 2_000
SLOW_FOR_MS = 300_000  # after the latest time it was found slow
PUBLISH_EVERY_MS = 60_000


class BusinessLane(StrEnum):
    MAIN = "main"
    SLOW = "slow"


class Pace(Struct, frozen=True):
    """Of calls that ended within a window that began with the first of them."""

    since_ms: int
    calls: int = 0
    total_ms: int = 0

    @property
    def is_slow(self) -> bool:
        return self.calls >= CALLS_MIN and self.total_ms > self.calls * MEAN_MS_MAX


def with_call(pace: Pace | None, duration_ms: int, ended_ms: int) -> Pace:
    if pace is None or not 0 <= ended_ms - pace.since_ms < WINDOW_MS:
        pace = Pace(ended_ms)
    return Pace(pace.since_ms, pace.calls + 1, pace.total_ms + max(0, duration_ms))


def should_publish(slow_until_ms: int, now_ms: int) -> bool:
    """For a slow business: whether it was not published within the last minute."""
    return slow_until_ms < now_ms + SLOW_FOR_MS - PUBLISH_EVERY_MS
