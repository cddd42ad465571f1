"""The calls of one notifier: each at its millisecond, if its processor and a call slot are free.

All pages of a run share both. Each page settles its own calls.
"""

import heapq
from dataclasses import dataclass, field
from itertools import count
from random import Random

from bench.cloud.assumed import CALL_CPU_MS, CALLBACK, Knobs
from bench.cloud.functions import Environment
from bench.cloud.loop import Loop, Signal
from bench.cloud.wheel_state import Entry
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX


@dataclass(eq=False)
class PageCalls:
    """The outcomes of one page's calls. `ended`: heap of those that were begun."""

    ended: list[tuple[float, int, Entry]] = field(default_factory=list)
    begun: Signal = field(default_factory=Signal)
    is_cut: bool = False  # Lambda stopped the process


@dataclass
class Record:
    """The results of a run of the model."""

    lateness_ms: list[float] = field(default_factory=list)  # of first calls
    retries_late_ms: list[float] = field(default_factory=list)
    high_late_ms: list[float] = field(default_factory=list)  # of these, of high priority
    repeated: int = 0  # calls repeated because the first was not recorded
    settled: int = 0
    settled_ms: float = 0
    calls: int = 0


class Calls:
    def __init__(self, loop: Loop, random: Random, knobs: Knobs, record: Record) -> None:
        self._loop = loop
        self._random = random
        self._timeout_ms = knobs.notifier_timeout_ms
        self._has_priorities = knobs.has_priorities
        self._record = record
        self._numbers = count()

    def begin(self, environment: Environment, owed: list[Entry]) -> PageCalls:
        page = PageCalls()
        for entry in owed:
            call = (entry.due_ms, next(self._numbers), entry, page)
            heapq.heappush(environment.waiting, call)
        self._go_on(environment)
        return page

    def settled(self, environment: Environment, number: int) -> None:
        """Their slots are free again."""
        environment.lines = max(0, environment.lines - number)
        self._go_on(environment)

    def _go_on(self, environment: Environment) -> None:
        now_ms, processor = self._loop.now_ms, environment.processor
        while environment.waiting or environment.due:
            if now_ms > environment.begun_ms + self._timeout_ms:
                self._cut(environment)
                return
            while environment.waiting and environment.waiting[0][0] <= now_ms:
                call = heapq.heappop(environment.waiting)
                below = call[2].below if self._has_priorities else 0
                heapq.heappush(environment.due, (below, *call))
            if environment.lines == CALLS_IN_FLIGHT_MAX:
                return  # wait until some are settled
            next_ms = now_ms if environment.due else environment.waiting[0][0]
            from_ms = max(next_ms, processor.free_ms)
            if from_ms > now_ms:
                self._look_again(environment, from_ms)
                return
            _, _, number, entry, page = heapq.heappop(environment.due)
            leaves_ms = processor.done_ms(now_ms, CALL_CPU_MS)
            ended_ms = leaves_ms + CALLBACK.drawn(self._random)
            environment.lines += 1
            self._note(entry, leaves_ms)
            heapq.heappush(page.ended, (ended_ms, number, entry))
            if not page.begun.is_fired:
                self._loop.fire(page.begun)

    def _look_again(self, environment: Environment, when_ms: float) -> None:
        pending_ms = environment.next_ms
        if pending_ms is None or when_ms < pending_ms:
            environment.next_ms = when_ms
            self._loop.at(when_ms, self._looked, environment, when_ms)

    def _looked(self, environment: Environment, when_ms: float) -> None:
        if environment.next_ms == when_ms:  # else an earlier check has replaced this one
            environment.next_ms = None
            self._go_on(environment)

    def _cut(self, environment: Environment) -> None:
        for page in {call[-1] for call in (*environment.waiting, *environment.due)}:
            page.is_cut = True
            self._loop.fire(page.begun)
        environment.waiting.clear()
        environment.due.clear()

    def _note(self, entry: Entry, leaves_ms: float) -> None:
        self._record.calls += 1
        if entry.is_called:
            self._record.repeated += 1
            return
        entry.is_called = True
        late = self._record.retries_late_ms if entry.attempts else self._record.lateness_ms
        late.append(leaves_ms - entry.due_ms)
        if not entry.below:
            self._record.high_late_ms.append(leaves_ms - entry.due_ms)
