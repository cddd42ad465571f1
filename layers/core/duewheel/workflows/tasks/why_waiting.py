"""Find out why a task waits.

The settings and the health of its business are one request; for a task whose instant has passed the
leases of its slice are another; the time pointer is a third if no run has begun its page. Where
calls in flight are limited, the permits of its flow key and of its business are one more each. A
task that does not wait costs none. One that a caller has just made due costs the first, and one for
each limit of its business and its flow key.
"""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.reservations import WAIT_MS
from duewheel.rules.delivery.usage import permit_usage, rate_usage
from duewheel.rules.delivery.waiting import (
    Facts,
    Reason,
    Wait,
    blocked,
    is_overdue,
    is_paused,
    is_waiting,
    page_of,
    put_aside,
    waiting,
)
from duewheel.rules.names import is_of_key, scope_of
from duewheel.rules.tasks.task import Task
from duewheel.stores.businesses.permits import PermitStore
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.wheel.pointers import TIME, PointerStore
from duewheel.workflows.tasks.callback_now import AsCalled


class WhyWaiting(Struct, frozen=True, kw_only=True):
    """`store` reads the health as well."""

    clock: Clock
    store: BusinessStore
    pages: PageLeaseStore
    permits: PermitStore
    turns: RateLimitStore
    pointers: PointerStore
    origin: int
    as_called: AsCalled

    def __call__(self, task: Task) -> Wait | None:
        now_ms = self.clock.now_ms()
        if (wait := put_aside(task, now_ms)) is not None:
            return wait
        if not is_waiting(task, now_ms):
            return None
        try:
            return waiting(task, self._facts(task, now_ms))
        except Exception:  # noqa: BLE001 - logged; the task itself was read
            logger.exception("reason not read", action="why-unknown", task_id=task.task_id)
            return Wait(reason=Reason.UNKNOWN)

    def of_due(self, task: Task) -> Wait | None:
        """Why a task that a caller has just made due is not called at once, as far as is known."""
        now_ms = self.clock.now_ms()
        if not is_overdue(task, now_ms):
            return self(task)
        try:
            business = self.store.read_many([task.biz_type])[task.biz_type]
            filled, _ = self.as_called(task)
            if (wait := blocked(filled, business, now_ms)) is not None:
                return wait
            reached = self._reached_limit(filled, business, now_ms)
            return None if reached is None else Wait(reason=reached)
        except Exception:  # noqa: BLE001 - logged; the task itself was changed
            logger.exception("reason not read", action="why-unknown", task_id=task.task_id)
            return Wait(reason=Reason.UNKNOWN)

    def _reached_limit(self, task: Task, business: Business, now_ms: int) -> Reason | None:
        for scope, limit in business.in_flight_limits(task.flow_key).items():
            permits = permit_usage(limit, self.permits.read(scope), now_ms)
            if permits is not None and (permits.used >= limit or permits.waiting):
                return Reason.FLOW_KEY if is_of_key(scope) else Reason.CONCURRENCY
        rates = {scope_of(task.biz_type, task.flow_key): business.key_rate(task.flow_key)}
        rates[task.biz_type] = business.call_rate
        for scope, rate in rates.items():
            calls = None if rate is None else self.turns.read(scope, rate)
            turns = rate_usage(rate, calls, now_ms)
            if turns is not None and (turns.waiting or turns.free_in_ms > WAIT_MS):
                return Reason.FLOW_KEY if is_of_key(scope) else Reason.RATE
        return None

    def _facts(self, task: Task, now_ms: int) -> Facts:
        business = self.store.read_many([task.biz_type])[task.biz_type]
        if is_paused(task, business) or not is_overdue(task, now_ms):
            return Facts(now_ms=now_ms, business=business)
        entry = task.entry
        lease = page_of(entry, self.pages.of_slice(entry.second, entry.shard))
        dispatched = None
        if lease is None and not entry.direct:
            dispatched = self.pointers.read(TIME, self.origin).position
        return Facts(
            now_ms=now_ms,
            business=business,
            lease=lease,
            dispatched_second=dispatched,
            crowded_scope=self._crowded_scope(task, business, now_ms),
        )

    def _crowded_scope(self, task: Task, business: Business, now_ms: int) -> str | None:
        for scope in business.in_flight_limits(task.flow_key):
            if self.permits.read(scope).waiting(now_ms):
                return scope
        return None
