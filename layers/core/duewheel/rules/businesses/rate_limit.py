"""The rate limit: GCRA (virtual scheduling).

A rate gives turns at equal distances. Reserving turns moves the next free one (the theoretical
arrival time) by as many. Invariant: turns that were reserved one after the other are at least an
interval apart, so no second has more than the rate. A turn that was not used in time is lost.
"""

from msgspec import Struct
from msgspec.structs import replace

US_PER_MS = 1_000
US_PER_SECOND = 1_000_000
RATE_MIN = 0.001  # one in a thousand seconds
RATE_MAX = 100_000


class RateLimit(Struct, frozen=True):
    """`version`: the instant its settings were written; newer settings reset the turns.

    It is not the version of the settings, which restarts when a business is deleted.
    """

    per_second: float
    version: int

    @property
    def interval_us(self) -> int:
        return max(1, round(US_PER_SECOND / self.per_second))


class ReservedTurns(Struct, frozen=True):
    """Turns that belong to the process that reserved them."""

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


class RateLimited(Struct, frozen=True):
    """Fewer turns are free: how many, and when the next one is."""

    free: int
    wait_us: int


def shortage(free_us: int, now_us: int, ahead_us: int, interval_us: int) -> RateLimited:
    """When the next free turn is at `free_us`, and the last one taken may end `ahead_us` from
    now at the latest."""
    room_us = now_us + ahead_us - max(free_us, now_us)
    free = max(0, room_us // interval_us)
    return RateLimited(free, max(0, (free + 1) * interval_us - room_us))


class Cursors(Struct, frozen=True):
    """The record of a business's calls. `free_us`: the next free turn. `line_us`: the end of the
    line of tasks that wait for their first turn. `late_us`: the end of the line of tasks that came
    back from a line and found no turn free. Until the settings change, no cursor goes back."""

    interval_us: int
    version: int
    free_us: int = 0
    line_us: int = 0
    late_us: int = 0

    @property
    def last_us(self) -> int:
        return max(self.free_us, self.line_us, self.late_us)

    def moved(self, moves: "Moves") -> "Cursors":
        def after(step: "Step | None", cursor_us: int) -> int:
            return cursor_us if step is None else step.moved(cursor_us)

        return replace(
            self,
            free_us=after(moves.free, self.free_us),
            line_us=after(moves.line, self.line_us),
            late_us=after(moves.late, self.late_us),
        )


class Step(Struct, frozen=True):
    """Move one cursor by `add_us` if it is from `least_us` to `most_us`; or to `to_us` if it is at
    `most_us` or earlier."""

    add_us: int = 0
    to_us: int | None = None
    least_us: int = 0
    most_us: int | None = None

    def moved(self, cursor_us: int) -> int:
        return cursor_us + self.add_us if self.to_us is None else self.to_us


class Moves(Struct, frozen=True):
    """What one write does to the cursors: all of it or nothing. `line_most_us`: the line must end
    there or earlier."""

    free: Step | None = None
    line: Step | None = None
    late: Step | None = None
    line_most_us: int | None = None


def lengthened(end_us: int, from_us: int, cost_us: int) -> Step:
    """More places at the end of a line that may not begin before `from_us`."""
    if end_us >= from_us:
        return Step(add_us=cost_us, least_us=from_us)
    return Step(to_us=from_us + cost_us, most_us=from_us)


def places(end_us: int, count: int, cursors: Cursors) -> ReservedTurns:
    """The last ones of a line that ends at `end_us`."""
    first_us = end_us - count * cursors.interval_us
    return ReservedTurns(first_us, cursors.interval_us, count, cursors.version)
