"""Emulates the execution environments of one function: threads, kept between invocations.

Invariant: an environment does one thing at a time. One that only waits for the clock is busy, but
not awake.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Protocol

from local.control.clock import MovableClock

Work = Callable[[], None]


class Caller(Protocol):
    """Makes an environment's callbacks; it belongs to that environment's thread."""

    @property
    def calls_in_flight(self) -> int: ...

    @property
    def is_idle(self) -> bool:
        """Whether it certainly does nothing until the clock is moved."""


def no_caller() -> Caller | None:
    return None


class Environments:
    """`caller_here` is called once in each environment, by its own thread. `changed` guards all of
    it, and signals every end of work; it may be held around several calls."""

    def __init__(self, clock: MovableClock, caller_here: Callable[[], Caller | None]) -> None:
        self.changed = Condition()
        self.caller_here = caller_here
        self._clock = clock
        self._busy: set[_Environment] = set()
        self._idle: list[_Environment] = []

    def begin(self, work: Work) -> None:
        """`work` raises nothing."""
        with self.changed:
            environment = self._idle.pop() if self._idle else _Environment(self)
            self._busy.add(environment)
            environment.work.put(work)

    def awake(self) -> int:
        """The number of environments that do not only wait for the clock."""
        with self.changed:
            return len({e.thread for e in self._busy} - self._clock.threads_asleep())

    def is_at_work(self) -> bool:
        with self.changed:
            return any(e.is_calling for e in self._busy) or self.awake() > 0

    def has_restless(self) -> bool:
        """Whether one waits for the clock that may do something before."""
        with self.changed:
            return any(not e.is_idle for e in self._busy)

    def stop(self, timeout_seconds: float) -> None:
        with self.changed:
            self.changed.wait_for(lambda: not self.awake(), timeout_seconds)
            for environment in self._idle:
                environment.end()

    def now_idle(self, environment: "_Environment") -> None:
        with self.changed:
            self._busy.discard(environment)
            self._idle.append(environment)
            self.changed.notify_all()


class _Environment:
    """A thread that is kept from one invocation to the next, as Lambda keeps a sandbox."""

    def __init__(self, environments: Environments) -> None:
        self.work: SimpleQueue[Work | None] = SimpleQueue()
        self._environments = environments
        self._caller: Caller | None = None
        worker = Thread(target=self._run, name="execution environment", daemon=True)
        worker.start()
        self.thread = worker.ident

    @property
    def is_calling(self) -> bool:
        return self._caller is not None and self._caller.calls_in_flight > 0

    @property
    def is_idle(self) -> bool:
        return self._caller is not None and self._caller.is_idle

    def end(self) -> None:
        self.work.put(None)

    def _run(self) -> None:
        self._caller = self._environments.caller_here()
        while (work := self.work.get()) is not None:
            work()
            self._environments.now_idle(self)
