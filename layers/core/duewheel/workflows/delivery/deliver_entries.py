"""Deliver the entries of one page: call each task at its millisecond, side by side, and settle.

The tasks of each business pass the gates (`gates.py`), then each is attempted by itself
(`attempt_call.py`). Chains of timers that fall due are planned meanwhile.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.businesses.settings import Business
from duewheel.rules.tasks.lifecycle import Decision, decide
from duewheel.rules.tasks.task import Plan, Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import Throttled
from duewheel.workflows.delivery.attempt_call import AttemptCall
from duewheel.workflows.delivery.call_secrets import CallSecrets
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.delivery.gates import BusinessRun, Call, Gate, PageRun, Secrets
from duewheel.workflows.delivery.hold import Hold
from duewheel.workflows.delivery.permits import TakePermits
from duewheel.workflows.delivery.settle_batch import Called, Left, NotWritten, Settler
from duewheel.workflows.gather_all import gather_all, in_thread
from duewheel.workflows.retry_throttled import TRY_MS_MAX, RetryThrottled
from duewheel.workflows.timers.check_occurrences import CheckOccurrences
from duewheel.workflows.timers.plan_occurrences import PlanTimers

CALLS_IN_FLIGHT_MAX = 100

DueTasks = dict[str, list[Task]]  # by business
Chains = list[tuple[Task, Plan]]
Work = list[Coroutine[None, None, list[Task]]]  # returns the tasks that are left


class DeliverEntries(Struct, frozen=True, kw_only=True):
    clock: Clock
    known: BusinessCache
    gates: Sequence[Gate]
    attempt_call: AttemptCall
    begin_settling: Callable[[int, Called], Settler]  # until a deadline
    secrets: CallSecrets
    take_permits: TakePermits
    fail_attempt: FailAttempt
    plan_timers: PlanTimers
    check: CheckOccurrences
    lapse: Callable[[Address, Task], None]  # of work that is not reported as ended
    retry_throttled: RetryThrottled

    async def __call__(
        self,
        pairs: Sequence[tuple[Address, Task | None]],
        deadline_ms: int,
        called: Called,
        hold: Hold | None,
    ) -> Left:
        """`called`: by home, the tasks that another run has called. `hold`: None if no other run
        can have these entries. Returns what could not be done in time; raises NotWritten if a write
        of another outcome was throttled to the end."""
        # Time is left to record, or to send, what cannot be settled.
        settler = self.begin_settling(deadline_ms - TRY_MS_MAX, called)
        live = [
            (entry, task)
            for entry, task in pairs
            if task is not None and not settler.takes_over(task)
        ]
        live.sort(key=lambda pair: pair[1].next_ms)
        settler.is_alone = len(live) <= 1
        settler.hold = hold

        async def deliver() -> list[Task]:
            # Read before the first instant: no request delays a call.
            businesses = await in_thread(self.known.many, {task.biz_type for _, task in live})
            due, chains, work = self._decided(live, businesses, deadline_ms)
            timed = [
                tasks for biz_type, tasks in due.items() if _is_timed(tasks, businesses[biz_type])
            ]
            page = PageRun(
                deadline_ms=deadline_ms,
                begun_ms=self.clock.now_ms(),
                settler=settler,
                hold=hold,
                occurrences=[task for tasks in timed for task in tasks if task.occurrence],
                earliest_ms=min((tasks[0].next_ms for tasks in timed), default=0),
            )
            work.append(self._call_due(due, businesses, page))
            if chains:
                work.append(in_thread(self.plan_timers, chains, deadline_ms))
            return _joined(await gather_all(work))

        try:
            uncalled, _ = await gather_all([settler.until_end_of(deliver()), settler.run()])
        except Throttled as throttled:
            raise NotWritten(settler.unsettled) from throttled
        return Left(uncalled or [], settler.unsettled, settler.settled)

    def _decided(
        self,
        live: Iterable[tuple[Address, Task]],
        businesses: Mapping[str, Business],
        deadline_ms: int,
    ) -> tuple[DueTasks, Chains, Work]:
        """Due tasks, due chains, and the work for the others."""
        due: DueTasks = {}
        chains: Chains = []
        work: Work = []
        now_ms = self.clock.now_ms()
        for entry, task in live:
            match decide(entry, task, now_ms):
                case Decision.PLACE_LATER:
                    place_later = partial(self.fail_attempt.place_later, task)
                    work.append(self._write(place_later, deadline_ms))
                case Decision.EXPIRE:
                    expire = partial(self.fail_attempt.expire, task, businesses[task.biz_type])
                    work.append(self._write(expire, deadline_ms))
                case Decision.LAPSE:
                    work.append(self._lapse(entry, task, deadline_ms))
                case Decision.DELIVER if task.plan is not None:
                    chains.append((task, task.plan))
                case Decision.DELIVER:
                    due.setdefault(task.biz_type, []).append(task)
        return due, chains, work

    async def _lapse(self, entry: Address, task: Task, deadline_ms: int) -> list[Task]:
        await self.clock.sleep_until_ms(task.next_ms)
        return await self._write(partial(self.lapse, entry, task), deadline_ms)

    async def _write(self, write: Callable[[], object], deadline_ms: int) -> list[Task]:
        await self.retry_throttled(write, deadline_ms)
        return []

    async def _call_due(
        self, due: DueTasks, businesses: Mapping[str, Business], page: PageRun
    ) -> list[Task]:
        """Returns those left uncalled."""
        try:
            return _joined(
                await gather_all(
                    self._call_business(tasks, businesses[biz_type], page)
                    for biz_type, tasks in due.items()
                )
            )
        finally:
            if page.firing.counts:
                await in_thread(self.check.write_counts, page.firing)

    async def _call_business(
        self, tasks: Sequence[Task], business: Business, page: PageRun
    ) -> list[Task]:
        """A limit or a host of one business delays no other business. Returns the tasks left
        uncalled."""
        secrets: Secrets | None = ()
        if business.own.signing_secrets:
            secrets = await in_thread(self.secrets.signing, business)
        run = BusinessRun(
            page=page,
            business=business,
            secrets=secrets,
            call_slots=self.take_permits.call_slots(business),
        )
        try:
            calls = await self._admit([Call(task, task.next_ms) for task in tasks], self.gates, run)
            left, _ = await gather_all([self._call_all(calls, run), run.set_aside()])
        finally:
            for gate in self.gates:
                gate.over(run)
            await gather_all([run.call_slots.close(), run.set_aside()])
        for failure in run.failures:
            raise failure
        return left or []

    async def _admit(
        self, calls: list[Call], gates: Sequence[Gate], run: BusinessRun
    ) -> list[Call]:
        admitted = calls
        for gate in gates:
            if admitted:
                admitted = await gate.admit(admitted, run)
        if gone := _homes(calls) - _homes(admitted):
            for gate in self.gates:
                gate.not_admitted(gone, run)
        return admitted

    async def _call_all(self, calls: Iterable[Call], run: BusinessRun) -> list[Task]:
        return _joined(await gather_all(self._call(call, run) for call in calls))

    async def _call(self, call: Call, run: BusinessRun) -> list[Task]:
        if not await self.attempt_call(call, run):
            return call.tasks
        freed: list[Call] = []
        # The last gate first: the outcome of a probe holds for what an earlier gate frees.
        for number, gate in reversed([*enumerate(self.gates, start=1)]):
            by_gate = await gate.ended(call, run)
            freed += await self._admit(by_gate, self.gates[number:], run)
        if not run.business.keeps_order(call.task.flow_key):
            return await self._call_all(freed, run)
        # What follows it is in line while other calls go on, so whatever ends wakes it.
        left, _ = await gather_all([self._call_all(freed, run), run.set_aside()])
        return left or []


def _is_timed(tasks: Sequence[Task], business: Business) -> bool:
    return not business.paused and any(task.occurrence for task in tasks)


def _homes(calls: Iterable[Call]) -> set[Address]:
    return {task.home for call in calls for task in call.tasks}


def _joined(lists: Iterable[list[Task]]) -> list[Task]:
    return [task for some in lists for task in some]
