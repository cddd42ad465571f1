"""A simulation of a business with a rate limit whose pages are delivered late, by the production
rules.

The cursors are moved as by the store, and entries fall due as on the wheel: by the second, or, if
they are near, in messages of 25.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count, groupby

from msgspec.structs import replace

from duewheel.rules.businesses.rate_limit import US_PER_MS, Cursors, RateLimit
from duewheel.rules.businesses.settings import Business, Defaults
from duewheel.rules.delivery.priority import rank
from duewheel.rules.delivery.reservations import (
    allocate,
    planned,
    slack_us,
)
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Reservation, Task
from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.timing import NEAR_MARGIN_MS
from tests.support.clock import NOON_MS

LEAD_MS = 500
PAGE, MESSAGE = 100, 25
HOME = Address(second=NOON_MS // 1000, ms=0, token="r")
BEFORE_MS = 60_000  # noon, tasks are created
BUSINESS = Business("limited", Defaults(30, 10.0, 30.0))

LateMs = Callable[[int], int]  # the delay of a message that is sent so many milliseconds after noon


class LimitedBusiness:
    """`calls`: instant and task of each call, in order. `rescheduled`: how often each task was
    rescheduled. `twice`: whether a second notifier processes the same page at the same time."""

    def __init__(
        self, per_second: float, late_ms: LateMs, twice: Callable[[], bool] = lambda: False
    ) -> None:
        self.rate = RateLimit(per_second, 1)
        self.cursors = Cursors(self.rate.interval_us, self.rate.version)
        self.calls: list[tuple[int, int]] = []
        self.rescheduled: list[int] = []
        self.lined_up: list[int] = []
        self._late_ms = late_ms
        self._twice = twice
        self._coming: list[tuple[int, int, list[Task]]] = []
        self._numbers = count()
        self._at: dict[int, list[Task]] = {}

    def owes(self, due_ms: Sequence[int], priority: Priority | None = None) -> None:
        """Create tasks for these instants, in this order, each in the slice of its second."""
        tasks = []
        for ms in due_ms:
            task = a_task(len(self.rescheduled), NOON_MS + ms)
            tasks.append(replace(task, priority=priority))
            self.rescheduled.append(0)
        self._enter(tasks, NOON_MS - BEFORE_MS)

    def works_off(self) -> None:
        while self._coming:
            now_ms, _, tasks = heappop(self._coming)
            if not tasks:  # a slice opens
                self._open(now_ms)
                continue
            if self._twice():
                self._serve(tasks, now_ms)  # this notifier loses the race for each rescheduled task
            self._reschedule(self._serve(tasks, now_ms), now_ms)
        self.calls.sort()

    def _serve(self, tasks: list[Task], now_ms: int) -> list[tuple[Task, Reservation]]:
        seen = self.cursors
        plan = planned(tasks, seen, now_ms, lambda task: rank(task, BUSINESS, now_ms))
        moves = plan.moves
        self.cursors = after = replace(
            seen,
            free_us=moves.free.moved(seen.free_us) if moves.free else seen.free_us,
            line_us=moves.line.moved(seen.line_us) if moves.line else seen.line_us,
            late_us=moves.late.moved(seen.late_us) if moves.late else seen.late_us,
        )
        soon, later = allocate(plan, seen, after)
        self.calls += [(max(now_ms, from_ms) - NOON_MS, task.created_ms) for task, from_ms in soon]
        return later

    def _reschedule(self, later: list[tuple[Task, Reservation]], now_ms: int) -> None:
        for task, reservation in later:
            self.rescheduled[task.created_ms] += 1
            if not reservation.is_late:
                self.lined_up.append(task.created_ms)
        entered = [replace(task, next_ms=held.at_ms, reservation=held) for task, held in later]
        self._enter(sorted(entered, key=lambda task: task.next_ms), now_ms)

    def _enter(self, tasks: Sequence[Task], now_ms: int) -> None:
        for second, group in groupby(tasks, key=lambda task: task.next_ms // 1000):
            entries = list(group)
            opens_ms = second * 1000 - LEAD_MS
            if opens_ms > now_ms + NEAR_MARGIN_MS:
                if second not in self._at:
                    heappush(self._coming, (opens_ms, next(self._numbers), []))
                self._at.setdefault(second, []).extend(entries)
                continue
            for start in range(0, len(entries), MESSAGE):
                part = entries[start : start + MESSAGE]
                self._send(part, max(now_ms, part[0].next_ms - LEAD_MS))

    def _open(self, now_ms: int) -> None:
        entries = self._at.pop((now_ms + LEAD_MS) // 1000)
        entries.sort(key=lambda task: task.next_ms)
        for start in range(0, len(entries), PAGE):
            self._send(entries[start : start + PAGE], now_ms)

    def _send(self, tasks: list[Task], now_ms: int) -> None:
        heappush(
            self._coming, (now_ms + self._late_ms(now_ms - NOON_MS), next(self._numbers), tasks)
        )

    # Results

    def most_ahead(self) -> float:
        """The most calls by which any window exceeds its length times the rate."""
        least, most = float("inf"), 0.0
        for number, (at_ms, _) in enumerate(self.calls):
            surplus = number - at_ms * US_PER_MS / self.rate.interval_us
            least = min(least, surplus)
            most = max(most, surplus - least + 1)
        return most

    def allowed_ahead(self) -> float:
        interval_us = self.rate.interval_us
        return (slack_us(interval_us) + 2 * US_PER_MS) / interval_us + 1  # rounded at either end

    def share_of_rate(self, from_ms: int) -> float:
        """The used share of the rate, from this instant to the last twentieth of the tasks."""
        until_ms = self.calls[len(self.calls) * 19 // 20][0]
        calls = sum(from_ms <= at_ms < until_ms for at_ms, _ in self.calls)
        return calls * self.rate.interval_us / ((until_ms - from_ms) * US_PER_MS)

    def overtaken_seconds(self) -> float:
        """The largest number of tasks that overtook one task of the line, in seconds of the
        rate."""
        place = {number: at for at, number in enumerate(self.lined_up)}
        in_order = [place[number] for _, number in self.calls if number in place]
        most, called = 0, [0] * (len(place) + 1)
        for done, at in enumerate(in_order):
            most = max(most, done - _sum_up_to(called, at))
            _add(called, at)
        return most * self.rate.interval_us / 1_000_000


def a_task(number: int, due_ms: int) -> Task:
    return Task(
        home=HOME,
        entry=HOME,
        biz_type="limited",
        due_ms=due_ms,
        next_ms=due_ms,
        callback=None,
        created_ms=number,
        updated_ms=0,
    )


# A Fenwick tree: how many tasks before a place have been called.


def _add(tree: list[int], at: int) -> None:
    at += 1
    while at < len(tree):
        tree[at] += 1
        at += at & -at


def _sum_up_to(tree: list[int], at: int) -> int:
    total, at = 0, at + 1
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total
