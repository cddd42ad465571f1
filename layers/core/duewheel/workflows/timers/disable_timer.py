"""Disable a timer whose receiver answers stop, or whose runs fail in a row.

Whether runs fail in a row is looked up in their records when one has failed, so successes cost
nothing and no count is kept. The change is conditional on the timer as it was read, so it is made
once, however many runs end at the same time. If a process dies between the end of a run and this,
the next run that fails makes up for it, or the next planning.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.metrics import TIMERS_DISABLED, counts
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.history.changes import THE_SERVICE
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.outcome_notice import asked_for_disabled
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers import updates
from duewheel.rules.timers.occurrence_policy import should_disable_timer
from duewheel.rules.timers.outcome_counts import FailuresInARow
from duewheel.rules.timers.timer import DisabledReason, Timer
from duewheel.rules.wheel.addresses import Address, second_range
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import is_of_aws
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.occurrences import OccurrenceIndex
from duewheel.workflows.tasks.tell_outcome import TellOutcome
from duewheel.workflows.timers.change_timer import ChangeTimer
from duewheel.workflows.timers.planning_chain import Chained

MORE_THAN_NEEDED = 5  # read at once: some may have been skipped, or be under way
LOOKED_AT_MAX = 300  # runs, once among the latest and once before the one that failed

# The run that decides it, or None: the timer goes on. By the timer as it is now.
Decide = Callable[[Timer], Task | None]


class DisableTimer(Struct, frozen=True, kw_only=True):
    clock: Clock
    known: BusinessCache
    tasks: TaskStore
    run_list: OccurrenceIndex
    change_timer: ChangeTimer
    tell_outcome: TellOutcome

    def after(self, timer: Timer, run: Task, outcome: Outcome | None = None) -> None:
        """A run of this timer has ended undelivered; `outcome`: of its last call, if that ended
        it."""
        if outcome is not None and should_disable_timer(timer, outcome):
            self.stopped(timer, run)
        elif timer.rules.pause_on_failures is not None:
            self.if_failing(timer.timer_id, run.home)

    def stopped(self, timer: Timer, run: Task) -> None:
        """Only that version which was called: a later change may have corrected the cause."""

        def decide(_: Timer) -> Task:
            return self.tasks.get(run.home) or run

        as_called = Precondition(version=timer.version)
        self._disable(timer.timer_id, DisabledReason.STOPPED, decide, as_called)

    def if_failing(self, timer_id: str, home: Address | None = None) -> None:
        """`home`: of a run that has just failed."""

        def decide(timer: Timer) -> Task | None:
            failures_max = timer.rules.pause_on_failures
            return None if failures_max is None else self._last_failed(timer, failures_max, home)

        self._disable(timer_id, DisabledReason.FAILURES, decide)

    def _disable(
        self,
        timer_id: str,
        reason: DisabledReason,
        decide: Decide,
        precondition: Precondition = Precondition(),  # noqa: B008 - immutable
    ) -> None:
        decided: list[Task] = []  # by the latest try

        def altered(timer: Timer, now_ms: int) -> Timer:
            run = decide(timer) if timer.enabled else None
            decided[:] = [] if run is None else [run]
            if run is None:
                return timer
            return updates.changed(timer, timer.rules, enabled=False, now_ms=now_ms, reason=reason)

        def along(timer: Timer) -> Chained:
            return self._notice(timer, decided[0], reason)

        try:
            self.change_timer.alter(timer_id, altered, precondition, THE_SERVICE, along)
        except Exception as error:
            if not isinstance(error, Refusal) and not is_of_aws(error):
                raise
            logger.warning(
                "timer not disabled, though it should be",
                action="timer-not-stopped",
                timer_id=timer_id,
                cause=reason.value,
                reason=error.detail if isinstance(error, Refusal) else str(error),
            )
            return
        if decided:
            counts.add(TIMERS_DISABLED)
            logger.warning(
                "timer disabled",
                action="timer-stopped",
                timer_id=timer_id,
                biz_type=decided[0].biz_type,
                reason=reason.value,
            )

    def _notice(self, timer: Timer, run: Task, reason: DisabledReason) -> Chained:
        business = self.known.one(timer.biz_type)
        asked = asked_for_disabled(timer.rules.on_outcome, business)
        if asked is None:
            return Chained(timer)
        notice = self.tell_outcome.of_disabled(
            run, timer.timer_id, timer.version, reason.value, asked
        )
        return Chained(timer, (self.tell_outcome.put(notice),), (notice.home,))

    def _last_failed(self, timer: Timer, failures_max: int, home: Address | None) -> Task | None:
        """The latest run of enough failed ones in a row."""
        found = FailuresInARow(timer.enabled_behind)
        for task in self._latest_first(timer, failures_max + MORE_THAN_NEEDED, home):
            found = found.before(task)
            if found.count >= failures_max:
                return found.last
            if found.is_over:
                break
        return None

    def _latest_first(self, timer: Timer, limit: int, home: Address | None) -> Iterator[Task]:
        """Its runs up to now. Where too many are behind the one that failed, of a timer that fires
        each second and whose runs are tried again for long, it goes on with that one."""
        behind = second_range(self.clock.now_ms() // 1000)[1]
        looked_at, goes_on = 0, True
        while goes_on and looked_at < LOOKED_AT_MAX:
            homes, goes_on = self.run_list.page(
                timer.timer_id, newest_first=True, behind=behind, limit=limit
            )
            if not homes:
                break
            behind, looked_at = homes[-1].place, looked_at + len(homes)
            found = self.tasks.get_many(homes)
            yield from (found[one] for one in homes if one in found)
            if looked_at >= LOOKED_AT_MAX and home is not None and home.place < behind:
                yield from self.tasks.get_many([home]).values()
                behind, looked_at, home = home.place, 0, None
