"""What statistics count: the fates of tasks and how late they were called.

A tally is a sum, so tallies of seconds make a minute's, and those of minutes an hour's.
"""

from bisect import bisect_left
from itertools import starmap
from operator import add

from msgspec import Struct

# Up to and including each bound; the last class is what is later still.
LATENESS_BOUNDS_MS = (10, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 60_000, 600_000)
_NO_LATENESS = (0,) * (len(LATENESS_BOUNDS_MS) + 1)


class Tally(Struct, frozen=True):
    """`dead` are those that are dead now: a redrive takes its task out again."""

    created: int = 0
    delivered: int = 0
    dead: int = 0
    expired: int = 0
    cancelled: int = 0
    failed_attempts: int = 0
    lateness_sum_ms: int = 0
    lateness_max_ms: int = 0
    lateness_classes: tuple[int, ...] = _NO_LATENESS  # how many were delivered so late

    @property
    def settled(self) -> int:
        return self.delivered + self.dead + self.expired + self.cancelled

    @property
    def pending(self) -> int:
        return self.created - self.settled

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            created=self.created + other.created,
            delivered=self.delivered + other.delivered,
            dead=self.dead + other.dead,
            expired=self.expired + other.expired,
            cancelled=self.cancelled + other.cancelled,
            failed_attempts=self.failed_attempts + other.failed_attempts,
            lateness_sum_ms=self.lateness_sum_ms + other.lateness_sum_ms,
            lateness_max_ms=max(self.lateness_max_ms, other.lateness_max_ms),
            lateness_classes=tuple(
                starmap(add, zip(self.lateness_classes, other.lateness_classes, strict=True))
            ),
        )


NOTHING = Tally()


def delivered_so_late(lateness_ms: int) -> Tally:
    classes = list(_NO_LATENESS)
    classes[bisect_left(LATENESS_BOUNDS_MS, lateness_ms)] = 1
    return Tally(
        delivered=1,
        lateness_sum_ms=lateness_ms,
        lateness_max_ms=lateness_ms,
        lateness_classes=tuple(classes),
    )
