"""Withdraw occurrences: delete planned ones that would be cancelled one by one when they fall due.

Each transaction deletes a page of occurrences, each if it is as it was planned, on condition that
the timer is as it was read. So no occurrence that the timer still contains is deleted. The same
transaction counts the missed ones. An occurrence that is left is cancelled when it falls due.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.types import OnOutcome
from duewheel.rules.tasks.outcome_notice import asked_for_runs
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers.occurrence_policy import Reason
from duewheel.rules.timers.outcome_counts import COUNTED_AS
from duewheel.rules.timers.planning import TAKEN_BACK_MIN
from duewheel.rules.timers.timer import Timer
from duewheel.rules.timers.withdrawal import (
    MISFIRES,
    Claims,
    SecondRange,
    missed_range,
    reason_to_take_back,
)
from duewheel.rules.wheel.addresses import Address, header_place
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.dynamodb import Conflict, Throttled
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.occurrences import OccurrenceList, PlannedOccurrences
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.tasks.tell_outcome import TellOutcome
from duewheel.workflows.tasks.write_entries import EntryWriter

# A transaction takes a hundred parts: the check, a count and a notice.
PAGE = TAKEN_BACK_MIN - 3
Tell = Callable[[Reason, Sequence[Address]], list[Task]]  # the notices of missed runs
MISSED_WITHIN_MS = 5_000  # of a run that has more to do


class WithdrawOccurrences(Struct, frozen=True, kw_only=True):
    clock: Clock
    planned: PlannedOccurrences
    pages: PageLeaseStore
    timers: TimerStore
    counters: CounterStore
    run_list: OccurrenceList
    entry_writer: EntryWriter
    tell_outcome: TellOutcome
    claims: Claims

    def ahead(self, timer_id: str, timer: Timer | None, until_ms: int) -> bool:
        """Withdraw the future occurrences of a timer, as it was read, that was stopped or changed.
        Returns whether there may be more."""
        placement = self.entry_writer.placement()
        second = placement.now_ms // 1000
        while placement.is_near(second):
            second += 1
        taken: int | None = 0
        total = 0
        for homes in self._pages(timer_id, header_place(second), until_ms):
            taken = self._taken(homes, timer_id, timer, 0)
            if taken is None:
                break
            total += taken
        _log(timer_id, total)
        return taken is None or total > 0

    def missed(self, met: Task, timer: Timer | None, reason: Reason, business: Business) -> None:
        """Withdraw the occurrences behind one that fell due late and was cancelled. Each page of
        them has one notice, if somebody asks for it."""
        if met.occurrence is None:
            return
        timer_id, now_ms = met.occurrence.timer_id, self.clock.now_ms()
        seconds = self._range(met, timer, reason, now_ms // 1000)
        if seconds is None or not seconds.is_long:
            return
        if (mine := self.claims.claim(timer_id, seconds)) is None:
            return
        total = 0
        asked = None if timer is None else asked_for_runs(timer.rules.on_outcome, business)
        tell = partial(self._notice, met, timer_id, asked)
        try:
            for taken in self._missed(timer_id, timer, mine, now_ms + MISSED_WITHIN_MS, tell):
                total += taken
        except Throttled as throttled:
            logger.warning(
                "planned runs left to fall due",
                action="not-taken-back",
                timer_id=timer_id,
                error=str(throttled),
            )
        _log(timer_id, total)

    def _range(
        self, met: Task, timer: Timer | None, reason: Reason, now: int
    ) -> SecondRange | None:
        if timer is None or reason not in MISFIRES:
            return SecondRange(met.home.second, now)
        if timer.chain is None:
            return None
        chain = self.planned.tasks.get_many([timer.chain]).get(timer.chain)
        if chain is None or chain.plan is None:
            return None
        return missed_range(timer, chain.plan, met, now)

    def _missed(
        self,
        timer_id: str,
        timer: Timer | None,
        seconds: SecondRange,
        until_ms: int,
        tell: Tell,
    ) -> Iterator[int]:
        """A page that a run has begun may have a call in flight, so it is left. Less than a page is
        left, too."""
        behind, is_first = header_place(seconds.first), True
        for homes in self._pages(timer_id, behind, until_ms):
            within = [home for home in homes if home.second <= seconds.last]
            if is_first and len(within) < PAGE:
                return
            is_first = False
            taken = self._taken(within, timer_id, timer, seconds.last_missed, tell)
            if taken is None:
                return
            yield taken
            if len(within) < len(homes):
                return

    def _pages(self, timer_id: str, behind: str, until_ms: int) -> Iterator[list[Address]]:
        goes_on = True
        while goes_on and self.clock.now_ms() < until_ms:
            homes, goes_on = self.run_list.page(
                timer_id, newest_first=False, behind=behind, limit=PAGE
            )
            if not homes:
                return
            yield homes
            behind = homes[-1].place

    def _taken(
        self,
        homes: Sequence[Address],
        timer_id: str,
        timer: Timer | None,
        last_missed: int,
        tell: Tell | None = None,
    ) -> int | None:
        """None: the timer has been changed, or is being changed. `tell`: of missed ones, which are
        those in slices that no run has begun."""
        now_ms = self.clock.now_ms()
        reasons: dict[Address, Reason] = {}
        for home, task in self.planned.tasks.get_many(homes).items():
            reason = reason_to_take_back(task, timer, now_ms, last_missed)
            if reason is not None:
                reasons[home] = reason
        if tell is not None and reasons:
            begun = self.pages.begun((home.second, home.shard) for home in reasons)
            reasons = {
                home: reason
                for home, reason in reasons.items()
                if (home.second, home.shard) not in begun
            }
        notices: list[Task] = []

        def counted(homes: Sequence[Address]) -> list[Any]:
            missed = [home for home in homes if reasons[home] in COUNTED_AS]
            if not missed:
                return []
            counts = Counter(COUNTED_AS[reasons[home]] for home in missed)
            notices[:] = [] if tell is None else tell(reasons[missed[0]], missed)
            count = {"Update": self.counters.add_request(timer_id, counts)}
            return [count, *map(self.tell_outcome.put, notices)]

        try:
            taken = self.planned.take_back(
                list(reasons), self.timers.unchanged(timer_id, timer), counted
            )
        except Conflict:
            return None
        if taken:
            self.tell_outcome.announce(notices)
        return taken

    def _notice(
        self,
        met: Task,
        timer_id: str,
        asked: OnOutcome | None,
        reason: Reason,
        missed: Sequence[Address],
    ) -> list[Task]:
        """At most one."""
        if asked is None:
            return []
        seconds = sorted(home.second for home in missed)
        return [self.tell_outcome.of_runs(met, timer_id, reason, seconds, asked)]


def _log(timer_id: str, count: int) -> None:
    logger.info("planned runs withdrawn", action="taken-back", timer_id=timer_id, count=count)
