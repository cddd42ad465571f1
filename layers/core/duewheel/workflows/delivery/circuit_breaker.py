"""Apply the circuit breaker: block the tasks of hosts that keep failing, and allow probes.

Each notifier counts calls for itself. Open breakers are shared through the health record of the
business. If the Registry does not answer, no page is delayed: a breaker opens, moves or closes
later, or not at all.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.metrics import BREAKERS_OPENED, counts
from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.callbacks.url import host_of
from duewheel.rules.delivery import circuit_breaker as rules
from duewheel.rules.delivery.circuit_breaker import (
    HostSignal,
    Probe,
    RecentCalls,
    signal_of,
)
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.effective_callback import callback_to_make, timeout_ms
from duewheel.rules.tasks.lifecycle import is_expired
from duewheel.rules.tasks.task import PostponedBy, Task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.health import HealthStore, HealthUnavailable
from duewheel.workflows.delivery.gates import BusinessRun, Call, Gate
from duewheel.workflows.gather_all import in_thread
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule

HOSTS_COUNTED_MAX = 500  # in a process: some megabytes at most


class CircuitBreaker(Gate):
    """Belongs to one event loop, which alone touches the counts."""

    def __init__(
        self,
        clock: Clock,
        known: BusinessCache,
        health_store: HealthStore,
        reschedule: Reschedule,
        retry_throttled: RetryThrottled,
        random_unit: Callable[[], float],
        random_bytes: Callable[[], bytes],
    ) -> None:
        self._clock = clock
        self._known = known
        self._health_store = health_store
        self._reschedule = reschedule
        self._retry_throttled = retry_throttled
        self._random_unit = random_unit
        self._random_bytes = random_bytes
        self._recent: OrderedDict[tuple[str, str], RecentCalls] = OrderedDict()

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        if not self._known.health_of(run.business.biz_type).breakers:
            return calls
        waiting: dict[str, list[Call]] = {}
        allowed: list[Call] = []
        for call in calls:
            host = self._open_host(call.task, run.business)
            (allowed if host is None else waiting.setdefault(host, [])).append(call)
        for host, of_host in waiting.items():
            allowed += await self._allowed(host, of_host, run)
        return sorted(allowed, key=lambda call: call.from_ms)

    async def confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        """The breaker may have opened while the task waited."""
        is_free = call.probe is not None or is_expired(call.task, self._clock.now_ms())
        if is_free or self._open_host(call.task, run.business) is None:
            return call
        run.put_aside(call.task, self._postpone)
        return None

    async def ended(self, call: Call, run: BusinessRun) -> list[Call]:
        """Close the breaker or keep it open, by the probe."""
        probe = call.probe
        if probe is None:
            return []
        if probe.sign is not None:
            await in_thread(self._conclude, probe)
        if self._breaker(probe.biz_type, probe.breaker.host) is None:
            return [Call(task, task.next_ms) for task in probe.rest]
        for task in probe.rest:
            run.put_aside(task, self._postpone)
        return []

    async def record_outcome(
        self,
        business: Business,
        callback: Callback,
        outcome: Outcome,
        started_ms: int,
        probe: Probe | None,
    ) -> None:
        """Count the outcome of a call; open the breaker if the host keeps failing."""
        host, sign = host_of(callback), signal_of(outcome)
        if host is None or sign is None:
            return
        if probe is not None:
            probe.sign = sign
            return
        key, now_ms = (business.biz_type, host), self._clock.now_ms()
        recent = self._recent.pop(key, RecentCalls()).with_call(sign, started_ms, now_ms)
        opens = sign is HostSignal.FAILING and recent.should_open
        self._keep(key, RecentCalls(from_ms=now_ms) if opens else recent)
        if opens:
            await in_thread(self._open, business.biz_type, host)

    def _open_host(self, task: Task, business: Business) -> str | None:
        """The host of this call if its breaker is open, as far as this process knows."""
        health = self._known.health_of(business.biz_type)
        if not health.breakers or not rules.may_be_postponed(task, self._clock.now_ms()):
            return None
        host = host_of(callback_to_make(task, business))
        return host if host is not None and health.breaker_of(host) else None

    async def _allowed(self, host: str, calls: list[Call], run: BusinessRun) -> list[Call]:
        """The calls to make of a host whose breaker was open: a probe if one is due; all if it has
        closed."""
        business, now_ms = run.business, self._clock.now_ms()
        self._keep((business.biz_type, host), RecentCalls(from_ms=now_ms))
        breaker = self._breaker(business.biz_type, host)
        ready = _ready(breaker, calls, now_ms)
        if breaker is not None and ready is None:  # what is cached may be some seconds old
            biz_type = business.biz_type
            await in_thread(self._keep_health, biz_type, partial(self._health_store.read, biz_type))
            breaker = self._breaker(biz_type, host)
            ready = _ready(breaker, calls, now_ms)
        if breaker is not None and ready is not None:
            call_ms = timeout_ms(ready.task, business)
            mine = rules.claimed(breaker, ready.task, call_ms, now_ms, self._mark())
            await in_thread(self._move, business.biz_type, breaker, mine)
            breaker = self._breaker(business.biz_type, host)
            if breaker == mine:
                rest = [call.task for call in calls if call is not ready]
                probe = Probe(business.biz_type, mine, rest)
                return [Call(ready.task, ready.from_ms, probe=probe)]
        if breaker is None:
            return calls
        for call in calls:
            run.put_aside(call.task, self._postpone)
        return []

    async def _postpone(self, tasks: list[Task], run: BusinessRun) -> None:
        """Reschedule blocked tasks, without an attempt, to after the wait of their breaker."""
        business, now_ms = run.business, self._clock.now_ms()
        of_hosts: dict[str | None, list[Task]] = {}
        for task in tasks:
            of_hosts.setdefault(host_of(callback_to_make(task, business)), []).append(task)
        changes: list[tuple[Task, Task]] = []
        for host, of_host in of_hosts.items():
            breaker = self._breaker(business.biz_type, host)
            instants = rules.postponed_instants_ms(breaker, of_host, now_ms, self._random_unit())
            for task, instant_ms in zip(of_host, instants, strict=True):
                after = lifecycle.postponed(task, instant_ms, now_ms, PostponedBy.OPEN_BREAKER)
                changes.append((task, after))
        logger.info(
            "calls blocked by open breaker",
            action="spare",
            biz_type=business.biz_type,
            count=len(changes),
        )
        await self._retry_throttled(self._reschedule.tries(changes), run.page.deadline_ms)

    # Writes to the health record, on threads

    def _open(self, biz_type: str, host: str) -> None:
        now_ms = self._clock.now_ms()
        breaker = rules.opened(host, now_ms, self._random_unit(), self._mark())
        known = self._known.health_of(biz_type)
        opening = partial(self._health_store.open, biz_type, breaker, known, now_ms)
        self._keep_health(biz_type, opening)
        if self._breaker(biz_type, host) == breaker:
            counts.add(BREAKERS_OPENED)
            _log("circuit breaker opened", "breaker-opened", biz_type, breaker)

    def _conclude(self, probe: Probe) -> None:
        biz_type, seen = probe.biz_type, probe.breaker
        if probe.sign is HostSignal.HEALTHY:
            self._keep_health(biz_type, lambda: self._health_store.close(biz_type, seen))
            if self._breaker(biz_type, seen.host) is None:
                _log("circuit breaker closed", "breaker-closed", biz_type, seen)
            return
        now_ms = self._clock.now_ms()
        after = rules.reopened(seen, now_ms, self._random_unit(), self._mark())
        self._move(biz_type, seen, after)
        if self._breaker(biz_type, seen.host) == after:
            counts.add(BREAKERS_OPENED)
            _log("circuit breaker reopened", "breaker-reopened", biz_type, after)

    def _move(self, biz_type: str, seen: Breaker, after: Breaker) -> None:
        self._keep_health(biz_type, lambda: self._health_store.move(biz_type, seen, after))

    def _keep_health(self, biz_type: str, of_registry: Callable[[], BusinessHealth]) -> None:
        """Cache the health that the Registry holds after this write, or this read."""
        try:
            self._known.put_health(biz_type, of_registry())
        except HealthUnavailable as error:
            logger.error(
                "health neither read nor written",
                action="standing-unknown",
                biz_type=biz_type,
                error=str(error),
            )

    def _breaker(self, biz_type: str, host: str | None) -> Breaker | None:
        return None if host is None else self._known.health_of(biz_type).breaker_of(host)

    def _keep(self, key: tuple[str, str], recent: RecentCalls) -> None:
        self._recent.pop(key, None)  # moves it to the end, as the most recent
        self._recent[key] = recent
        while len(self._recent) > HOSTS_COUNTED_MAX:
            self._recent.popitem(last=False)

    def _mark(self) -> str:
        return self._random_bytes().hex()


def _ready(breaker: Breaker | None, calls: Iterable[Call], now_ms: int) -> Call | None:
    """The first call that may probe the host now."""
    if breaker is None:
        return None
    due = (call for call in calls if rules.is_probe_due(breaker, max(now_ms, call.from_ms)))
    return next(due, None)


def _log(message: str, action: str, biz_type: str, breaker: Breaker) -> None:
    logger.warning(
        message,
        action=action,
        biz_type=biz_type,
        host=breaker.host,
        since_ms=breaker.since_ms,
        until_ms=breaker.until_ms,
        probes_failed=breaker.probes_failed,
    )
