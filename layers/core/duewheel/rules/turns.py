"""A rate as turns at equal distances: who takes some moves the next free one on by as many.

Invariant: turns that were taken one after the other lie at least an interval apart, so no second
holds more of them than the rate. What was not used in time is gone; it is never saved up.
"""

from msgspec import Struct

US_PER_MS = 1_000
US_PER_SECOND = 1_000_000
NO_LIMIT_AHEAD_US = 10**15  # some thirty years


class Rate(Struct, frozen=True):
    """`version`: the instant its settings were written; a newer one begins its turns anew.

    Not the settings' own number, which starts again when a business is deleted.
    """

    per_second: float
    version: int

    @property
    def interval_us(self) -> int:
        return max(1, round(US_PER_SECOND / self.per_second))


class Turns(Struct, frozen=True):
    """Some turns that belong to whoever took them."""

    first_us: int
    interval_us: int
    count: int
    version: int

    def instants_ms(self) -> list[int]:
        """Rounded up: no call is made before its turn."""
        return [
            -(-(self.first_us + number * self.interval_us) // US_PER_MS)
            for number in range(self.count)
        ]


class NoTurn(Struct, frozen=True):
    """So many could not be had: how many are free within what was allowed, and when there will
    be one more."""

    free: int
    wait_us: int


def shortage(free_us: int, now_us: int, ahead_us: int, interval_us: int) -> NoTurn:
    """When the next free turn is at `free_us`, and the last one taken may end `ahead_us` from
    now at the latest."""
    room_us = now_us + ahead_us - max(free_us, now_us)
    free = max(0, room_us // interval_us)
    return NoTurn(free, max(0, (free + 1) * interval_us - room_us))
