"""Check occurrences that fall due: their timers decide, as they are right before the calls.

The timers of a page are read strongly consistent, in one request, a moment before the first call. A
call that begins more than FRESH_MS later reads its timer again. So every call that begins FRESH_MS
after the answer to a change obeys it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.log import logger
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.types import Told
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Occurrence, Status, Task
from duewheel.rules.timers import occurrence_policy
from duewheel.rules.timers.occurrence_policy import Reason
from duewheel.rules.timers.outcome_counts import (
    COUNTED_AS,
    OUTCOMES,
    Counted,
    has_counted,
)
from duewheel.rules.timers.timer import Overlap, Timer
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.gather_all import in_thread
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.tasks.tell_outcome import TellOutcome
from duewheel.workflows.timers.keep_apart import Entrant, Fate, KeepApart

AHEAD_MS = 150  # long enough for the requests of a check
FRESH_MS = 250
WRITERS = 16
_LATE = (Reason.MISSED, Reason.SUPERSEDED)

Ended = tuple[Task, Reason]
Waiting = tuple[Task, Timer, Task | None]  # behind that one


class Firing(Struct):
    """The occurrences of one page: the timer by which each may be called, when it was read, and the
    counts of their outcomes."""

    _timers: dict[Address, tuple[Timer, int]] = field(default_factory=dict)  # by home
    counts: dict[str, Counter[Counted]] = field(default_factory=dict)

    def may_be_called(self, task: Task, timer: Timer, read_ms: int) -> None:
        self._timers[task.home] = (timer, read_ms)

    def is_fresh(self, task: Task, instant_ms: int) -> bool:
        return instant_ms <= self._timers[task.home][1] + FRESH_MS

    def timer_of(self, task: Task) -> Timer | None:
        return self._timers[task.home][0] if task.home in self._timers else None

    def count(self, task: Task, status: Status | None, *, was_called: bool = True) -> None:
        """Count an outcome. None: another writer has changed the task meanwhile."""
        if was_called and not task.attempts:
            self.note(task, Counted.FIRED)
        if status in OUTCOMES:
            self.note(task, OUTCOMES[status])

    def note(self, task: Task, what: Counted) -> None:
        is_new = task.occurrence is not None and not has_counted(task, what)
        if task.occurrence is not None and is_new:
            self.counts.setdefault(task.occurrence.timer_id, Counter())[what] += 1


class Checked(Struct, frozen=True):
    fire: list[Task] = field(default_factory=list)  # with the values of their timers
    ended: list[Ended] = field(default_factory=list)
    unreadable: list[Task] = field(default_factory=list)  # their timers cannot be read now
    waiting: list[Waiting] = field(default_factory=list)
    timers: dict[str, Timer] = field(default_factory=dict)  # of those that are ended, as read

    def of_business(self, biz_type: str) -> "Checked":
        return Checked(
            fire=[task for task in self.fire if task.biz_type == biz_type],
            ended=[(task, reason) for task, reason in self.ended if task.biz_type == biz_type],
            unreadable=[task for task in self.unreadable if task.biz_type == biz_type],
            waiting=[one for one in self.waiting if one[0].biz_type == biz_type],
            timers=self.timers,
        )


class CheckOccurrences(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    timers: TimerStore
    keep_apart: KeepApart
    counters: CounterStore
    reschedule: Reschedule
    keep_order: KeepOrder
    tell_outcome: TellOutcome
    writers: ThreadPoolExecutor

    async def of_page(self, tasks: Sequence[Task], page: Firing, earliest_ms: int) -> Checked:
        """In the order of their instants; as late as is safe for a page whose first call, of an
        occurrence or not, is due at `earliest_ms`."""
        await self.clock.sleep_until_ms(earliest_ms - AHEAD_MS)
        return await in_thread(self._checked, tasks, page)

    async def again(self, task: Task, instant_ms: int, page: Firing) -> Checked:
        """Right before a task that waited is called at this instant."""
        await self.clock.sleep_until_ms(instant_ms - AHEAD_MS)
        return await in_thread(self._checked, [task], page)

    async def set_aside(self, checked: Checked, business: Business, page: Firing) -> None:
        """End the tasks of a business that are not called. A task whose timer is unreadable falls
        due again."""
        for task, reason in await in_thread(self._ended, checked, business):
            if reason in COUNTED_AS:
                page.note(task, COUNTED_AS[reason])

    def _ended(self, checked: Checked, business: Business) -> list[Ended]:
        """Those that no other writer has changed meanwhile."""
        now_ms = self.clock.now_ms()
        if checked.unreadable:
            self.reschedule.postponed(checked.unreadable)()
        if checked.waiting:
            self._put_aside(checked.waiting)
        if not checked.ended:
            return []

        def end(ended: Ended) -> bool:
            task, reason = ended
            told = Told.MISSED if reason in COUNTED_AS else None
            timer = checked.timers.get(_of(task).timer_id)
            if told is not None and timer is not None:
                task = occurrence_policy.with_timer_fields(task, _of(task), timer)
            after = lifecycle.cancelled(task, reason, now_ms, business.retention_seconds)
            return self.tell_outcome.end(task, after, told, business) is not None

        done = fan_out(self.writers, end, checked.ended)
        self.keep_order.left(
            replace(task, flow_key=checked.timers[_of(task).timer_id].rules.flow_key)
            for (task, _), is_done in zip(checked.ended, done, strict=True)
            if is_done and _of(task).timer_id in checked.timers
        )
        reasons = Counter(reason.value for _, reason in checked.ended)
        logger.info(
            "occurrences not called",
            action="not-called",
            timer_ids=sorted({_of(task).timer_id for task, _ in checked.ended}),
            reasons=dict(reasons),
        )
        ended = [one for one, is_done in zip(checked.ended, done, strict=True) if is_done]
        left = [
            checked.timers.get(_of(task).timer_id)
            for task, reason in ended
            if reason not in COUNTED_AS
        ]
        self._wake(timer for timer in left if timer is not None)
        return ended

    def _put_aside(self, waiting: Sequence[Waiting]) -> None:
        """The one that they wait for may have ended meanwhile."""
        self.reschedule.each([self.keep_apart.put_aside(*one) for one in waiting])
        self._wake(timer for _, timer, _ in waiting)

    def _wake(self, timers: Iterable[Timer]) -> None:
        for timer in {timer.timer_id: timer for timer in timers}.values():
            self.keep_apart.wake(timer)

    def write_counts(self, page: Firing) -> None:
        fan_out(self.writers, self.counters.add, page.counts, page.counts.values())

    def _checked(self, tasks: Sequence[Task], page: Firing) -> Checked:
        read_ms = self.clock.now_ms()
        timers = self.timers.read_many(_of(task).timer_id for task in tasks)
        checked = Checked()
        entrants: list[Entrant] = []
        for task in tasks:
            occurrence = _of(task)
            timer = timers.get(occurrence.timer_id)
            if isinstance(timer, UnreadableItem):
                checked.unreadable.append(task)
                continue
            reason = occurrence_policy.skip_reason(
                task, occurrence, timer, max(read_ms, task.next_ms)
            )
            if timer is not None:
                checked.timers[timer.timer_id] = timer
            if timer is not None and reason in _LATE and _may_have_waited(task, timer):
                entrants.append(Entrant(task, timer, reason))
                page.may_be_called(task, timer, read_ms)
                continue
            if reason is not None or timer is None:
                checked.ended.append((task, reason or Reason.DELETED))
                continue
            # A run by hand is called even while an earlier one is pending.
            if timer.rules.overlap is not Overlap.ALLOW and not occurrence.manual:
                entrants.append(Entrant(task, timer))
            else:
                checked.fire.append(occurrence_policy.with_timer_fields(task, occurrence, timer))
            page.may_be_called(task, timer, read_ms)
        self._apart(entrants, checked, page)
        return checked

    def _apart(self, entrants: Sequence[Entrant], checked: Checked, page: Firing) -> None:
        """For timers whose runs must not overlap."""
        for one, entered in zip(entrants, self.keep_apart.enter(entrants), strict=True):
            task, timer = one.task, one.timer
            for replaced in entered.replaced:
                page.note(replaced, Counted.REPLACED)
            match entered.fate:
                case Fate.CALLED:
                    filled = occurrence_policy.with_timer_fields(task, _of(task), timer)
                    checked.fire.append(filled)
                case Fate.WAITS:
                    checked.waiting.append((task, timer, entered.behind))
                case Fate.SKIPPED:
                    checked.ended.append((task, Reason.SKIPPED))
                case Fate.LATE:
                    checked.ended.append((task, one.late or Reason.MISSED))
                case Fate.CONTENDED:
                    checked.unreadable.append(task)


def _may_have_waited(task: Task, timer: Timer) -> bool:
    """Whether it may be late since it was put aside for an earlier run."""
    return timer.rules.overlap.lets_wait and task.version > 1


def _of(task: Task) -> Occurrence:
    if task.occurrence is None:
        raise ValueError("no occurrence of a timer")
    return task.occurrence
