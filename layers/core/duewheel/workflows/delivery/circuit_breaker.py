"""Spare the hosts that keep failing: their tasks wait on the wheel, one at a time is let through.

Each notifier counts by itself, and all share what follows from it through the standing of the
business. A Registry that does not answer never stands in the way of a page: then a breaker opens,
moves or closes a little later, or not at all.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.metrics import counts
from duewheel.rules.businesses.health import Breaker, Standing
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.delivery import circuit_breaker as rules
from duewheel.rules.delivery.circuit_breaker import Recent, Sign, host_of, sign_of
from duewheel.rules.embedded_metrics import BREAKERS_OPENED
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.effective_callback import callback_to_make
from duewheel.rules.tasks.task import Task
from duewheel.stores.businesses.cache import KnownBusinesses
from duewheel.stores.businesses.health import StandingStore, StandingUnknown
from duewheel.workflows.batch_tries import Tries
from duewheel.workflows.gather_all import in_thread
from duewheel.workflows.tasks.reschedule import Change, PutOff

HOSTS_COUNTED_MAX = 500  # in a process: some megabytes at most
MARK_BYTES = 4


class Probe(Struct):
    """The one call that is made while a breaker is open, and what it said of the host."""

    biz_type: str
    breaker: Breaker
    task: Task
    rest: list[Task]  # those that wait for it in the same page
    sign: Sign | None = None


class SortedOut(Struct, frozen=True):
    free: list[Task]
    probes: list[Probe]
    held: list[Task]


class SpareHosts:
    """Belongs to one event loop, which alone touches the counts."""

    def __init__(
        self,
        clock: Clock,
        known: KnownBusinesses,
        standings: StandingStore,
        put_off: PutOff,
        random_unit: Callable[[], float],
        random_bytes: Callable[[], bytes],
    ) -> None:
        self._clock = clock
        self._known = known
        self._standings = standings
        self._put_off = put_off
        self._random_unit = random_unit
        self._random_bytes = random_bytes
        self._recent: OrderedDict[tuple[str, str], Recent] = OrderedDict()

    async def sorted_out(self, tasks: list[Task], business: Business) -> SortedOut:
        """Of one business, in the order of their instants: whose host is called as ever, who
        probes one that is spared, and who waits."""
        if not self._known.standing_of(business.biz_type).breakers:
            return SortedOut(tasks, [], [])
        waiting: dict[str, list[Task]] = {}
        free: list[Task] = []
        for task in tasks:
            host = self.spared_host(task, business, callback_to_make(task, business))
            (free if host is None else waiting.setdefault(host, [])).append(task)
        sorted_out = SortedOut(free, [], [])
        for host, of_host in waiting.items():
            await self._sort_out(business, host, of_host, sorted_out)
        free.sort(key=lambda task: task.next_ms)
        return sorted_out

    def spared_host(
        self, task: Task, business: Business, callback: Callback | Outcome
    ) -> str | None:
        """The host that this call has to wait for: its breaker is open as far as is known here."""
        standing = self._known.standing_of(business.biz_type)
        if not standing.breakers or not rules.may_wait(task, self._clock.now_ms()):
            return None
        host = host_of(callback)
        return host if host is not None and standing.breaker_of(host) else None

    async def heard(
        self,
        business: Business,
        callback: Callback,
        outcome: Outcome,
        started_ms: int,
        probe: Probe | None,
    ) -> None:
        """What came of a call."""
        host, sign = host_of(callback), sign_of(outcome)
        if host is None or sign is None:
            return
        if probe is not None:
            probe.sign = sign
            return
        key, now_ms = (business.biz_type, host), self._clock.now_ms()
        recent = self._recent.pop(key, Recent()).heard(sign, started_ms, now_ms)
        opens = sign is Sign.UNWELL and recent.is_clear_failure
        self._keep(key, Recent(from_ms=now_ms) if opens else recent)
        if opens:
            await in_thread(self._open, business.biz_type, host)

    async def ended(self, probe: Probe) -> bool:
        """Whether its host is called again."""
        if probe.sign is not None:
            await in_thread(self._conclude, probe)
        return self._breaker(probe.biz_type, probe.breaker.host) is None

    def hold(self, tasks: Sequence[Task], business: Business) -> Tries[Change]:
        """Put them off, without an attempt: in the order of their instants, behind the breaker of
        their host."""
        of_hosts: dict[str | None, list[Task]] = {}
        for task in tasks:
            of_hosts.setdefault(host_of(callback_to_make(task, business)), []).append(task)
        now_ms = self._clock.now_ms()
        changes: list[tuple[Task, Task]] = []
        for host, of_host in of_hosts.items():
            breaker = self._breaker(business.biz_type, host)
            instants = rules.put_off_instants_ms(breaker, of_host, now_ms, self._random_unit())
            for task, instant_ms in zip(of_host, instants, strict=True):
                changes.append((task, lifecycle.held_off(task, instant_ms, now_ms)))
        logger.info("hosts spared", action="spare", biz_type=business.biz_type, count=len(changes))
        return self._put_off.tries(changes)

    async def _sort_out(
        self, business: Business, host: str, tasks: list[Task], sorted_out: SortedOut
    ) -> None:
        now_ms = self._clock.now_ms()
        self._keep((business.biz_type, host), Recent(from_ms=now_ms))
        breaker = self._breaker(business.biz_type, host)
        ready = None
        if breaker is not None:
            ready = next(
                (t for t in tasks if rules.is_waited_out(breaker, max(now_ms, t.next_ms))), None
            )
        if breaker is not None and ready is not None:
            timeout_ms = round(business.timeout_seconds * 1000)
            mine = rules.claimed(breaker, ready, timeout_ms, now_ms, self._mark())
            await in_thread(self._move, business.biz_type, breaker, mine)
            breaker = self._breaker(business.biz_type, host)
            if breaker == mine:
                rest = [task for task in tasks if task is not ready]
                sorted_out.probes.append(Probe(business.biz_type, mine, ready, rest))
                return
        (sorted_out.free if breaker is None else sorted_out.held).extend(tasks)

    # Writes to the standing, on threads

    def _open(self, biz_type: str, host: str) -> None:
        now_ms = self._clock.now_ms()
        breaker = rules.opened(host, now_ms, self._random_unit(), self._mark())
        known = self._known.standing_of(biz_type)
        self._write(biz_type, lambda: self._standings.open(biz_type, breaker, known, now_ms))
        if self._breaker(biz_type, host) == breaker:
            counts.add(BREAKERS_OPENED)
            _log("a host keeps failing and is spared", "breaker-opened", biz_type, breaker)

    def _conclude(self, probe: Probe) -> None:
        biz_type, seen = probe.biz_type, probe.breaker
        if probe.sign is Sign.WELL:
            self._write(biz_type, lambda: self._standings.close(biz_type, seen))
            if self._breaker(biz_type, seen.host) is None:
                _log("a host is called again", "breaker-closed", biz_type, seen)
            return
        now_ms = self._clock.now_ms()
        after = rules.reopened(seen, now_ms, self._random_unit(), self._mark())
        self._move(biz_type, seen, after)
        if self._breaker(biz_type, seen.host) == after:
            counts.add(BREAKERS_OPENED)
            _log("a host still fails", "breaker-reopened", biz_type, after)

    def _move(self, biz_type: str, seen: Breaker, after: Breaker) -> None:
        self._write(biz_type, lambda: self._standings.move(biz_type, seen, after))

    def _write(self, biz_type: str, write: Callable[[], Standing]) -> None:
        """However it went, what stands then is known here."""
        try:
            self._known.now_stands(biz_type, write())
        except StandingUnknown as error:
            logger.error(
                "standing not written",
                action="standing-unknown",
                biz_type=biz_type,
                error=str(error),
            )

    def _breaker(self, biz_type: str, host: str | None) -> Breaker | None:
        return None if host is None else self._known.standing_of(biz_type).breaker_of(host)

    def _keep(self, key: tuple[str, str], recent: Recent) -> None:
        self._recent.pop(key, None)  # so that it stands last, as the youngest
        self._recent[key] = recent
        while len(self._recent) > HOSTS_COUNTED_MAX:
            self._recent.popitem(last=False)

    def _mark(self) -> str:
        return self._random_bytes().hex()


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
