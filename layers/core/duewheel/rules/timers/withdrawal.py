"""Withdrawal: which planned occurrences are deleted instead of being cancelled one by one.

An occurrence is withdrawn only if the rule that judges one that falls due would cancel it, now and
at any later moment, while its timer is as it was read.
"""

from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.tasks.task import Plan, Task
from duewheel.rules.timers.occurrence_policy import Reason, skip_reason
from duewheel.rules.timers.planning import MISFIRES_WRITTEN, TAKEN_BACK_MIN
from duewheel.rules.timers.schedule import seconds_from
from duewheel.rules.timers.timer import Timer

MISFIRES = (Reason.MISSED, Reason.SUPERSEDED)
_LOOKED_AT_MAX = 4_000  # as many as a chain plans ahead, twice over
_TIMERS_MAX = 1_000


class SecondRange(Struct, frozen=True):
    """Due seconds to read, both included. Missed ones are withdrawn up to the nominal second
    `last_missed`."""

    first: int
    last: int
    last_missed: int = 0

    @property
    def is_long(self) -> bool:
        """Whether a span of this length may contain enough occurrences of the timer to withdraw
        them."""
        return self.last - self.first >= TAKEN_BACK_MIN


def missed_range(timer: Timer, plan: Plan, missed: Task, now: int) -> SecondRange | None:
    """The seconds behind a missed occurrence. The latest missed ones stay, to be listed. So do all
    that the chain may write again, since the chain counts what it writes."""
    rules = timer.rules
    if missed.occurrence is None:
        return None
    late = now - rules.grace_seconds - rules.late_seconds_max - 1
    last = min(late, plan.planned_until_second - 1)
    seconds = seconds_from(rules.schedule, missed.occurrence.second + 1, _LOOKED_AT_MAX, last)
    seconds = seconds[:-MISFIRES_WRITTEN]
    if not seconds:
        return None
    return SecondRange(missed.home.second, seconds[-1] + rules.late_seconds_max, seconds[-1])


def reason_to_take_back(
    task: Task, timer: Timer | None, now_ms: int, last_missed: int
) -> Reason | None:
    """None: it is left. Only an occurrence that is as it was planned is withdrawn."""
    occurrence = task.occurrence
    is_as_planned = task.is_live and task.version == 1 and task.names_its_home
    if occurrence is None or occurrence.manual or not is_as_planned:
        return None
    reason = skip_reason(task, occurrence, timer, now_ms)
    return None if reason in MISFIRES and occurrence.second > last_missed else reason


class Claims:
    """The spans that this process has searched, by timer: of many missed occurrences that fall due
    together, only one leads to a search."""

    def __init__(self) -> None:
        self._claimed: dict[str, SecondRange] = {}
        self._lock = Lock()

    def claim(self, timer_id: str, wanted: SecondRange) -> SecondRange | None:
        """The part of it that has not been claimed; None if that part is short."""
        with self._lock:
            claimed = self._claimed.get(timer_id)
            mine = wanted if claimed is None else _outside(wanted, claimed)
            if not mine.is_long:
                return None
            if len(self._claimed) >= _TIMERS_MAX:
                self._claimed.clear()
            both = (mine, claimed or mine)
            first, last = min(one.first for one in both), max(one.last for one in both)
            self._claimed[timer_id] = SecondRange(first, last)
            return mine


def _outside(wanted: SecondRange, claimed: SecondRange) -> SecondRange:
    """What lies before it, else what lies behind it: nothing, where that ends before it begins."""
    if wanted.first < claimed.first:
        return replace(wanted, last=min(wanted.last, claimed.first - 1))
    return replace(wanted, first=max(wanted.first, claimed.last + 1))
