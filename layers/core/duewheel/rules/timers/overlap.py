"""The line of a timer whose runs do not overlap: which run may be called, and which one waits.

A run may be called only while the line names it as running, and another takes its place only when
it has ended. So at most one run is under way, whichever process looks at the line, and however
often.
"""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from duewheel.rules.tasks.task import PostponedBy, Task
from duewheel.rules.timers.timer import Overlap
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address


class Line(Struct, frozen=True):
    """By their homes: the run that was begun last, and the one that waits for its end. They may
    have ended since."""

    running: Address | None = None
    waiting: Address | None = None

    @property
    def homes(self) -> list[Address]:
        return [home for home in (self.running, self.waiting) if home is not None]


class Place(Enum):
    BEGINS = "it is called now"
    WAITS = "it is called when the running one has ended"
    SKIPPED = "it is not called"
    REPLACES = "it is called as soon as the running one is cancelled"


def placed(
    line: Line, task: Task, overlap: Overlap, live: Mapping[Address, Task], *, cancels: bool = True
) -> tuple[Line, Place]:
    """Where a run that falls due stands, and the line with it. `live`: those of the line that have
    not ended. `cancels`: the running one may be cancelled."""
    mine = task.home
    if line.running == mine:
        return line, Place.BEGINS
    running = line.running if line.running in live else None
    waiting = line.waiting if line.waiting in live else None
    if running is None:
        running, waiting = waiting, None
    if running is None or running == mine:
        return Line(mine, None if waiting == mine else waiting), Place.BEGINS
    if overlap is Overlap.CANCEL_RUNNING:
        if not _is_later(task, live[running]):
            return line, Place.SKIPPED
        if cancels:
            return Line(running, waiting), Place.REPLACES
        is_latest = waiting is None or waiting == mine or _is_later(task, live[waiting])
        return (Line(running, mine), Place.WAITS) if is_latest else (line, Place.SKIPPED)
    if waiting == mine or (waiting is None and overlap is Overlap.BUFFER_ONE):
        return Line(running, mine), Place.WAITS
    return line, Place.SKIPPED


def is_cancellable(task: Task, now_ms: int, lead_ms: int) -> bool:
    """Whether no call of this run can be under way: its receiver works on, or it waits."""
    if task.running is not None or task.parked:
        return True
    return now_ms < timing.cut_off_ms(task.next_ms, lead_ms)


def may_be_woken(
    line: Line, live: Mapping[Address, Task], overlap: Overlap, lead_ms: int, now_ms: int
) -> Task | None:
    """The run that waits, if it may go on now."""
    if line.waiting is None or (waiting := live.get(line.waiting)) is None:
        return None
    running = None if line.running is None else live.get(line.running)
    cancels = overlap is Overlap.CANCEL_RUNNING
    if running is not None and not (cancels and is_cancellable(running, now_ms, lead_ms)):
        return None
    postponement = waiting.postponement
    if postponement is None or postponement.by is not PostponedBy.OVERLAP or waiting.parked:
        return None
    return waiting if postponement.until_ms == waiting.next_ms > now_ms else None


def _is_later(task: Task, other: Task) -> bool:
    return _second(task) > _second(other)


def _second(task: Task) -> int:
    return 0 if task.occurrence is None else task.occurrence.second
