"""Gates: each decides which tasks of a business may be called, and sets the others aside.

They stand in one list (`wiring/notifier.py`): pause, occurrence, pause of flow keys, order, circuit
breaker, concurrency limit and rate limit; order and circuit breaker have modules of their own. A
task passes them in this order twice: with all tasks of its business before the first instant of the
page (`admit`), and alone right before its call, which may have waited (`confirm`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.businesses.flow import IN_FLIGHT_MAX
from duewheel.rules.businesses.rate_limit import US_PER_MS, RateLimit, ReservedTurns
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery import permits
from duewheel.rules.delivery.circuit_breaker import Probe
from duewheel.rules.delivery.permits import Permits
from duewheel.rules.delivery.priority import Rank, order_ms, rank
from duewheel.rules.delivery.reservations import not_before, slack_us
from duewheel.rules.names import scope_of
from duewheel.rules.tasks.task import Reservation, Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.permits import PermitStore
from duewheel.workflows.delivery.call_rate import LimitCallRate, Turns
from duewheel.workflows.delivery.hold import Hold
from duewheel.workflows.delivery.park_tasks import Park
from duewheel.workflows.delivery.permits import CallSlots
from duewheel.workflows.delivery.settle_batch import Settler
from duewheel.workflows.gather_all import gather_all, in_thread
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.timers.check_occurrences import Checked, CheckOccurrences, Firing

Secrets = tuple[bytes, ...]
X = TypeVar("X")
AHEAD_MS = 150  # long enough for the request, so that a turn is not late for it
WAITED_MS = 250  # less is no wait, and reads nothing


class Call(Struct, frozen=True):
    """A call to make. `from_ms`: the instant of the task, or the turn that its rate limit gave it.
    `probe`: it probes its host; the other tasks of the host wait for its outcome."""

    task: Task
    from_ms: int
    probe: Probe | None = None

    @property
    def tasks(self) -> list[Task]:
        """Its task, and those that wait for its outcome."""
        return [self.task, *(self.probe.rest if self.probe else ())]


class PageRun(Struct, frozen=True, kw_only=True):
    """State that all calls of a page share. Its businesses were read before `begun_ms`. One check
    reads the timers of all `occurrences`, before `earliest_ms`, the first instant of the businesses
    that have some."""

    deadline_ms: int
    begun_ms: int
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
    call_slots: CallSlots
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    failures: list[Exception] = field(default_factory=list)  # raised when the calls have ended
    # By flow key in order, while one of its tasks is called: this one, and those that follow it.
    lines: dict[str | None, list[Task]] = field(default_factory=dict)
    # By the home of the task, and its flow key.
    lines_read_ms: dict[tuple[Address, str | None], int] = field(default_factory=dict)
    # Calls that have permits and wait for turns; turns that one of them took, by home.
    without_turns: list[Call] = field(default_factory=list)
    turns_ms: dict[Address, int] = field(default_factory=dict)
    taking_turns: asyncio.Lock = field(default_factory=asyncio.Lock)
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
    """A gate overrides the methods that it needs. Tasks that may not be called now it passes to
    `put_aside` of the run."""

    __slots__ = ()

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        """Calls of one business, in the order of their instants; returns those that may be made."""
        return calls

    async def confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        """The call as it is to be made at this instant, or None."""
        return call

    async def ended(self, call: Call, run: BusinessRun) -> list[Call]:
        """Calls that waited for the end of this one; they pass the gates that follow."""
        return []

    def not_admitted(self, homes: set[Address], run: BusinessRun) -> None:
        """A gate has set these tasks aside. What waits for their end here is put aside as well."""
        return

    def over(self, run: BusinessRun) -> None:
        """All calls of the run have ended. What still waits is put aside."""
        return


class PauseGate(Gate, Struct, frozen=True, kw_only=True):
    """The tasks of a paused business are parked when they fall due.

    A page reads the settings of its businesses before its tasks are due. A task that is called at
    its instant is called by these. For a task that waited for a turn or a slot, the settings are at
    most KEPT_MS old. If its business is paused then, the task is parked; if the business was
    deleted, the task falls due again.
    """

    clock: Clock
    known: BusinessCache
    park: Park
    reschedule: Reschedule
    retry_throttled: RetryThrottled

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        if not run.business.paused:
            return calls
        for call in calls:
            run.put_aside(call.task, self._park)
        return []

    async def confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        if instant_ms - max(call.task.next_ms, run.page.begun_ms) < WAITED_MS:
            return call
        await self.clock.sleep_until_ms(instant_ms - AHEAD_MS)
        business = await self._read(run)
        if business.paused:
            run.put_aside(call.task, self._park)
        elif business.pauses(call.task.flow_key):
            run.put_aside(call.task, self.park_by_key)
        elif run.business.version and not business.version:  # deleted
            run.put_aside(call.task, self._postpone)
        else:
            return call
        return None

    async def _read(self, run: BusinessRun) -> Business:
        """One task reads the settings; the others of the page use what it read."""
        biz_type = run.business.biz_type
        async with run.reading:
            kept = self.known.kept(biz_type)
            return await in_thread(self.known.one, biz_type) if kept is None else kept

    async def _park(self, tasks: list[Task], run: BusinessRun) -> None:
        await self.retry_throttled(self.park(tasks), run.page.deadline_ms)

    async def park_by_key(self, tasks: list[Task], run: BusinessRun) -> None:
        await self.retry_throttled(self.park(tasks, by_key=True), run.page.deadline_ms)

    async def _postpone(self, tasks: list[Task], run: BusinessRun) -> None:
        await self.retry_throttled(self.reschedule.postponed(tasks), run.page.deadline_ms)


class OccurrenceGate(Gate, Struct, frozen=True):
    """An occurrence is called only if its timer, as it is now, permits it.

    The timers of a whole page are read in one request. If they cannot be read, the tasks without a
    timer are called, and the page fails when these calls have ended.
    """

    check: CheckOccurrences

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        others = [call for call in calls if call.task.occurrence is None]
        if len(others) == len(calls):
            return calls
        try:
            checked = (await self._checked(run.page)).of_business(run.business.biz_type)
        except Exception as error:  # noqa: BLE001 - raised when the calls have ended
            run.failures.append(error)
            return others
        run.put_aside(checked, self._set_aside)
        fire = [Call(task, task.next_ms) for task in checked.fire]
        return sorted([*others, *fire], key=lambda call: call.from_ms)

    async def confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        task, firing = call.task, run.page.firing
        if task.occurrence is None or firing.is_fresh(task, instant_ms):
            return call
        checked = await self.check.again(task, instant_ms, firing)
        if not checked.fire:
            run.put_aside(checked, self._set_aside)
            return None
        return Call(checked.fire[0], call.from_ms, probe=call.probe)

    async def ended(self, call: Call, run: BusinessRun) -> list[Call]:
        """Another run of the timer may wait for the end of this one."""
        timer = run.page.firing.timer_of(call.task)
        if timer is not None and timer.rules.overlap.lets_wait:
            await run.page.settler.until_tried(call.task.home)
            await in_thread(self.check.keep_apart.wake, timer)
        return []

    async def _checked(self, page: PageRun) -> Checked:
        """The first business reads the timers of the page, and the others use these."""
        async with page.checking:
            if not page.checked:
                check = self.check.of_page(page.occurrences, page.firing, page.earliest_ms)
                page.checked.append(await check)
        return page.checked[0]

    async def _set_aside(self, checked: list[Checked], run: BusinessRun) -> None:
        for some in checked:
            await self.check.set_aside(some, run.business, run.page.firing)


class ConcurrencyLimitGate(Gate, Struct, frozen=True, kw_only=True):
    """The limits of calls in flight, of a business and of its flow keys, over all notifiers. A task
    that has not been in a line, of permits or of turns, lines up behind it; any other takes a
    permit when it is due (`permits.py`). It stands before the rate limit, so a task takes no turn
    that it cannot use. Before a task gets a place, permits that ended work has kept are given
    back."""

    clock: Clock
    store: PermitStore
    give_back_over: Callable[[str, Permits], Permits]
    reschedule: Reschedule
    retry_throttled: RetryThrottled

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        newcomers = [call for call in calls if self._stands_behind(call, run.business)]
        scopes_of = {call.task.home: _scopes(call, run.business) for call in newcomers}
        scopes = list(dict.fromkeys(chain.from_iterable(scopes_of.values())))
        if not scopes:
            return calls
        reads = [
            self.retry_throttled(partial(self.store.read, scope), run.page.deadline_ms)
            for scope in scopes
        ]
        records = dict(zip(scopes, await gather_all(reads), strict=True))
        behind: list[Call] = []
        for call in newcomers:
            of_call = scopes_of[call.task.home]
            lines = [scope for scope in of_call if records[scope].has_line(call.from_ms)]
            if lines:
                behind.append(call)
                run.put_aside((call, lines[0]), self.line_up)
        return [call for call in calls if call not in behind]

    def _stands_behind(self, call: Call, business: Business) -> bool:
        is_high = rank(call.task, business, self.clock.now_ms()) is Rank.HIGH
        return call.probe is None and not is_high and not permits.is_in_a_line(call.task)

    async def line_up(self, waiting: list[tuple[Call, str]], run: BusinessRun) -> None:
        """Reschedule tasks, without an attempt, to places in the lines of these scopes."""
        by_scope: dict[str, list[Call]] = {}
        for call, scope in waiting:
            by_scope.setdefault(scope, []).append(call)
        deadline_ms, order = run.page.deadline_ms, partial(order_ms, business=run.business)
        for scope, calls in by_scope.items():
            for some in permits.by_line([call.task for call in calls], order):
                places = partial(self._places, some, scope, run.business)
                reserved = permits.placed(some, await self.retry_throttled(places, deadline_ms))
                await self.retry_throttled(self.reschedule.reserved(reserved), deadline_ms)

    def _places(self, tasks: list[Task], scope: str, business: Business) -> ReservedTurns:
        limit = business.in_flight_limits(tasks[0].flow_key).get(scope, IN_FLIGHT_MAX)
        record = self.store.read(scope)
        if permits.work_in(record):
            record = self.give_back_over(scope, record)
        interval_us = record.interval_us(limit)
        from_ms = record.line_from_ms(limit, tasks[0], self.clock.now_ms())
        is_late = permits.is_placed(tasks[0])
        return self.store.line_up(scope, len(tasks), from_ms, interval_us, is_late=is_late)


def _scopes(call: Call, business: Business) -> list[str]:
    return list(business.in_flight_limits(call.task.flow_key))


class KeyPauseGate(Gate, Struct, frozen=True):
    """The tasks of a paused flow key are parked when they fall due. It stands behind the gate from
    which an occurrence has its key. `pause` looks at those that waited."""

    pause: PauseGate

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        if not run.business.paused_flow_keys:
            return calls
        paused = [call for call in calls if run.business.pauses(call.task.flow_key)]
        for call in paused:
            run.put_aside(call.task, self.pause.park_by_key)
        return [call for call in calls if call not in paused]


class RateLimitGate(Gate, Struct, frozen=True):
    """A task takes a turn of its flow key, then one of its business, as far as these have a rate.
    If its key has none, it takes none of its business, so no other key waits for it. If only its
    business has none, the turn of its key is lost. A turn of the business that is much later than
    that of the key costs another turn of the key. A probe is called without turns.

    A task that needs permits as well takes its turns when it has these, so no turn passes while it
    waits for them. In the page it only looks for turns: if it finds none it gets a place in a line.
    """

    limit: LimitCallRate
    reschedule: Reschedule
    retry_throttled: RetryThrottled

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        limited = [call for call in calls if run.business.in_flight_limits(call.task.flow_key)]
        if not limited:
            return await self._passed(calls, run)
        others = await self._passed([call for call in calls if call not in limited], run)
        looked = await self._passed(limited, run, Turns.LOOKED_FOR)
        return sorted([*others, *looked], key=lambda call: call.from_ms)

    async def with_permits(self, call: Call, run: BusinessRun) -> Call | None:
        """The call with turns, now that it has permits; None if it was put aside. One write takes
        the turns of all calls that came during the write before. If it fails, the page fails."""
        if run.business.call_rate is None and run.business.own.flow is None:
            return call
        run.without_turns.append(call)
        async with run.taking_turns:
            if call in run.without_turns:
                calls = list(run.without_turns)
                run.without_turns.clear()
                taken = await self._passed(calls, run, Turns.TAKEN_WITH_PERMITS)
                run.turns_ms.update({one.task.home: one.from_ms for one in taken})
        from_ms = run.turns_ms.pop(call.task.home, None)
        return None if from_ms is None else replace(call, from_ms=from_ms)

    async def _passed(
        self, calls: list[Call], run: BusinessRun, how: Turns = Turns.TAKEN
    ) -> list[Call]:
        probes = [call for call in calls if call.probe is not None]
        others = [call for call in calls if call.probe is None]
        by_key = await self._take_of_keys(others, run, how)
        rate = run.business.call_rate
        if rate is None and by_key is others:
            return calls
        if rate is None or not by_key:
            return [*probes, *by_key]
        taken = await self._take(by_key, run, run.business.biz_type, rate, how)
        turn_ms = {call.task.home: call.from_ms for call in by_key}
        late = [call for call in taken if self._is_late(call, turn_ms[call.task.home], run)]
        again = await self._take_of_keys(late, run, how) if late else []
        return [*probes, *(call for call in taken if call not in late), *again]

    def _is_late(self, call: Call, turn_ms: int, run: BusinessRun) -> bool:
        """Whether the turn of its key is so long past that calls of the key could crowd."""
        rate = run.business.key_rate(call.task.flow_key)
        if rate is None:
            return False
        return (call.from_ms - turn_ms) * US_PER_MS > slack_us(rate.interval_us)

    async def _take_of_keys(self, calls: list[Call], run: BusinessRun, how: Turns) -> list[Call]:
        """One write for each key that has a rate."""
        free: list[Call] = []
        by_key: dict[str, list[Call]] = {}
        rates: dict[str, RateLimit] = {}
        for call in calls:
            key, rate = call.task.flow_key, run.business.key_rate(call.task.flow_key)
            if key is None or rate is None:
                free.append(call)
                continue
            rates[key] = rate
            by_key.setdefault(key, []).append(call)
        if not by_key:
            return calls
        biz_type = run.business.biz_type
        taken = await gather_all(
            self._take(some, run, scope_of(biz_type, key), rates[key], how)
            for key, some in by_key.items()
        )
        return sorted([*free, *chain.from_iterable(taken)], key=lambda call: call.from_ms)

    async def _take(
        self, calls: list[Call], run: BusinessRun, scope: str, rate: RateLimit, how: Turns
    ) -> list[Call]:
        """The calls with their turns; the others are put aside."""
        by_home = {call.task.home: call for call in calls}
        shifted = [not_before(call.task, call.from_ms) for call in calls]
        limit = partial(self.limit.within, shifted, run.business, scope, rate, how=how)
        soon, later = await self.retry_throttled(limit, run.page.deadline_ms)
        for task, place in later:
            run.put_aside((by_home[task.home].task, place), self._reschedule)
        return [replace(by_home[task.home], from_ms=from_ms) for task, from_ms in soon]

    async def _reschedule(self, reserved: list[tuple[Task, Reservation]], run: BusinessRun) -> None:
        await self.retry_throttled(self.reschedule.reserved(reserved), run.page.deadline_ms)
