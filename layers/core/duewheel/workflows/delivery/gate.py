"""A gate decides which tasks of a business may be called, and sets the others aside.

They are in one list (`wiring/notifier.py`): pause, occurrence, circuit breaker, rate limit. A task
passes them in this order twice: with all tasks of its business before the first instant of the page
(`admit`), and alone right before its call, which may have waited (`confirm`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from msgspec import Struct, field

from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.circuit_breaker import Probe
from duewheel.rules.tasks.task import Task
from duewheel.workflows.delivery.hold import Hold
from duewheel.workflows.delivery.settle_batch import Settler
from duewheel.workflows.gather_all import gather_all
from duewheel.workflows.timers.check_occurrences import Checked, Firing

Secrets = tuple[bytes, ...]
X = TypeVar("X")


class Call(Struct, frozen=True):
    """A call to make. `from_ms`: the instant of the task, or the turn that its rate limit gave it.
    `probe`: it probes its host; the other tasks of the host wait for its outcome."""

    task: Task
    from_ms: int
    probe: Probe | None = None

    @property
    def tasks(self) -> list[Task]:
        """The task, and those that wait for its outcome."""
        return [self.task, *(self.probe.rest if self.probe else ())]


class PageRun(Struct, frozen=True, kw_only=True):
    """State that all calls of a page share. One check reads the timers of all `occurrences`, before
    `earliest_ms`, the first instant of the businesses that have some."""

    deadline_ms: int
    settler: Settler
    hold: Hold | None
    occurrences: list[Task]
    earliest_ms: int
    firing: Firing = field(default_factory=Firing)
    checked: list[Checked] = field(default_factory=list)
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_sure(self) -> bool:
        return self.hold is None or self.hold.is_sure

    async def is_sure_before(self, latest_ms: int) -> bool:
        return self.hold is None or await self.hold.is_sure_before(latest_ms)


class BusinessRun(Struct, frozen=True, kw_only=True):
    """State that the calls of one business in a page share. `reading`: one task at a time reads the
    settings again."""

    page: PageRun
    business: Business
    secrets: Secrets | None
    call_slots: asyncio.Semaphore
    begun_ms: int
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    failures: list[Exception] = field(default_factory=list)  # raised when the calls have ended
    _aside: dict["SetAside[Any]", list[Any]] = field(default_factory=dict)

    def put_aside(self, what: X, set_aside: "SetAside[X]") -> None:
        """Collected, so that one write sets many tasks aside."""
        self._aside.setdefault(set_aside, []).append(what)

    async def set_aside(self) -> None:
        groups = list(self._aside.items())
        self._aside.clear()
        await gather_all([set_aside(collected, self) for set_aside, collected in groups])


SetAside = Callable[[list[X], BusinessRun], Coroutine[None, None, None]]


class Gate:
    """A gate overrides what it needs. What it does not let through it puts aside in the run."""

    __slots__ = ()

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        """Calls of one business, in the order of their instants; returns those let through."""
        return calls

    async def confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        """The call as it is to be made at this instant, or None."""
        return call

    async def ended(self, call: Call, run: BusinessRun) -> list[Call]:
        """Calls that waited for the end of this one; they pass the gates that follow."""
        return []
