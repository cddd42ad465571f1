"""Why a task waits: one answer from what is stored.

A task waits from its due instant, or from a run by hand before that, until it ends: it is called
now, or it got a later instant, or nothing has called it yet. The write that gave it a later instant
recorded the reason (`Postponement`, `Reservation`, the last attempt).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.outcome import Verdict
from duewheel.rules.callbacks.url import host_of
from duewheel.rules.delivery.circuit_breaker import is_probe_due, may_be_postponed
from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.delivery.permits import is_placed
from duewheel.rules.names import is_of_key
from duewheel.rules.tasks.effective_callback import callback_to_make
from duewheel.rules.tasks.task import PostponedBy, Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import (
    Address,
    is_direct_page,
    is_passed_on,
    is_slow_page,
    rest_page,
    slow_page,
)


class Reason(StrEnum):
    """Stable words: part of the interface."""

    PAUSED = "paused"
    RATE = "rate"
    CONCURRENCY = "concurrency"
    FLOW_KEY = "flow-key"
    OVERLAP = "overlap"
    OPEN_BREAKER = "open-breaker"
    SLOW_LANE = "slow-lane"
    BACKLOG = "backlog"
    RETRY = "retry"
    CALLING = "calling"
    RUNNING = "running"
    UNKNOWN = "unknown"  # it could not be read


class Stage(StrEnum):
    """What a task in a backlog waits for. Stable words: part of the interface."""

    DISPATCH = "dispatch"  # the scheduler has not come to its second
    NOTIFIER = "notifier"  # its page is sent, and not begun
    PLACE = "place"  # it has a later instant, for instance since many were released at once
    SWEEP = "sweep"  # its page ended without it; the sweep gives it a new entry


class Facts(Struct, frozen=True, kw_only=True):
    """`lease`: of the page that has the task's entry. `dispatched_second`: the time pointer, where
    there is no lease; `crowded_scope`: of its business and its flow key, one for whose permits
    tasks wait in a notifier. These only if the task is overdue."""

    now_ms: int
    business: Business
    lease: PageLease | None = None
    dispatched_second: int | None = None
    crowded_scope: str | None = None


class Wait(Struct, frozen=True, kw_only=True):
    """`expected_ms`: when the task is called, or tries again. `host`, `until_ms`: of an open
    breaker. `run`, `since_ms`: of a call. `since_ms`, `until_ms`: of work that goes on after it,
    and of a pause of the task itself."""

    reason: Reason
    expected_ms: int | None = None
    stage: Stage | None = None
    host: str | None = None
    until_ms: int | None = None
    run: str | None = None
    since_ms: int | None = None


def is_waiting(task: Task, now_ms: int) -> bool:
    if not task.is_live:
        return False
    return task.parked or is_overdue(task, now_ms) or task.next_ms != task.due_ms


def is_overdue(task: Task, now_ms: int) -> bool:
    return not task.parked and task.next_ms <= now_ms


def is_paused(task: Task, business: Business) -> bool:
    """By its business, or by its flow key; an occurrence has one of its own only while parked."""
    return business.paused or business.pauses(task.parked_key or task.flow_key)


def waiting(task: Task, facts: Facts) -> Wait | None:
    """None if the task does not wait."""
    if not is_waiting(task, facts.now_ms):
        return None
    if is_paused(task, facts.business):
        return Wait(reason=Reason.PAUSED)
    if task.parked:  # the release is on its way
        return Wait(reason=Reason.BACKLOG, stage=Stage.PLACE)
    if is_overdue(task, facts.now_ms):
        return _overdue(task, facts)
    return _postponed(task, facts.business)


def blocked(task: Task, business: Business, now_ms: int) -> Wait | None:
    """By a pause or an open breaker: why a task that a caller has just made due is not called."""
    if is_paused(task, business):
        return Wait(reason=Reason.PAUSED)
    host = host_of(callback_to_make(task, business))
    breaker = None if host is None else business.health.breaker_of(host)
    if breaker is None or is_probe_due(breaker, now_ms) or not may_be_postponed(task, now_ms):
        return None
    until_ms = breaker.until_ms
    return Wait(reason=Reason.OPEN_BREAKER, expected_ms=until_ms, host=host, until_ms=until_ms)


def put_aside(task: Task, now_ms: int) -> Wait | None:
    """Why a task waits that is paused by itself, or whose receiver works on it; None for any
    other."""
    if (paused := task.paused) is not None and now_ms < paused.until_ms:
        until_ms = paused.until_ms
        return Wait(
            reason=Reason.PAUSED, expected_ms=until_ms, since_ms=paused.since_ms, until_ms=until_ms
        )
    if task.running is None:
        return None
    since_ms, until_ms = task.running.call.at_ms, task.running.until_ms
    return Wait(reason=Reason.RUNNING, since_ms=since_ms, until_ms=until_ms)


def page_of(entry: Address, leases: Iterable[PageLease]) -> PageLease | None:
    """Of the leases of a slice, that of the page which has this entry; without an owner if the page
    was passed on and is not begun. None if no page that was begun has it."""
    by_page = {lease.page: lease for lease in leases}
    found = _first_page_of(entry, by_page)
    seen: set[str] = set()
    while found is not None and found.page not in seen:
        seen.add(found.page)
        if entry.place in found.slow:
            page = slow_page(found.page)
        elif entry.place in found.rest:
            page = rest_page(found.page)
        else:
            return found
        found = by_page.get(page, PageLease(entry.second, entry.shard, page=page))
    return found


def _first_page_of(entry: Address, by_page: dict[str, PageLease]) -> PageLease | None:
    if entry.direct:
        leases = (lease for page, lease in by_page.items() if is_direct_page(page))
        return next((lease for lease in leases if entry.place in lease.slow), None)
    numbered = sorted((int(page), lease) for page, lease in by_page.items() if page.isdecimal())
    return next((one for _, one in numbered if one.end is None or entry.place <= one.end), None)


def _postponed(task: Task, business: Business) -> Wait:
    reason, next_ms = _recorded(task, business), task.next_ms
    match reason:
        case None:
            return Wait(reason=Reason.BACKLOG, expected_ms=next_ms, stage=Stage.PLACE)
        case Reason.OPEN_BREAKER:
            host = host_of(callback_to_make(task, business))
            breaker = None if host is None else business.health.breaker_of(host)
            until_ms = None if breaker is None else breaker.until_ms
            expected_ms = max(next_ms, until_ms or 0)
            return Wait(reason=reason, expected_ms=expected_ms, host=host, until_ms=until_ms)
        case _:
            return Wait(reason=reason, expected_ms=next_ms)


def _recorded(task: Task, business: Business) -> Reason | None:
    """The reason for its instant. None for a place among released tasks, and if it was not
    recorded. A line of the flow key and one of its business look alike, if both have a limit."""
    postponement, reservation = task.postponement, task.reservation
    if postponement is not None and postponement.until_ms == task.next_ms:
        return _reason(postponement.by)
    if reservation is not None and reservation.at_ms == task.next_ms:
        if is_placed(task):
            scopes = business.in_flight_limits(task.flow_key)
            is_of_key_alone = bool(scopes) and task.biz_type not in scopes
            return Reason.FLOW_KEY if is_of_key_alone else Reason.CONCURRENCY
        is_of_key_alone = business.call_rate is None and bool(business.key_rate(task.flow_key))
        return Reason.FLOW_KEY if is_of_key_alone else Reason.RATE
    if task.history and task.history[-1].outcome == Verdict.RETRY:
        return Reason.RETRY
    return None


def _reason(by: PostponedBy) -> Reason | None:
    """A limit that postpones tasks adds its word to `PostponedBy`, and passes it to
    `lifecycle.postponed`."""
    match by:
        case PostponedBy.OPEN_BREAKER:
            return Reason.OPEN_BREAKER
        case PostponedBy.SLOW_LANE:
            return Reason.SLOW_LANE
        case PostponedBy.FLOW_KEY:
            return Reason.FLOW_KEY
        case PostponedBy.OVERLAP:
            return Reason.OVERLAP
        case PostponedBy.RELEASE:
            return None
    assert_never(by)


def _overdue(task: Task, facts: Facts) -> Wait:
    lease, entry = facts.lease, task.entry
    if (scope := facts.crowded_scope) is not None and _is_in_a_run(entry, lease, facts.now_ms):
        return Wait(reason=Reason.FLOW_KEY if is_of_key(scope) else Reason.CONCURRENCY)
    if lease is not None and lease.owner is not None and not lease.done:
        if lease.until_ms >= facts.now_ms:
            return Wait(reason=Reason.CALLING, run=lease.owner, since_ms=lease.begun_ms)
        return _in_backlog(Stage.NOTIFIER)  # its message comes again
    if lease is not None and lease.done:
        return _in_backlog(Stage.SWEEP)
    if lease is not None and is_slow_page(lease.page):
        return Wait(reason=Reason.SLOW_LANE)
    if lease is not None and is_passed_on(lease.page):
        return _in_backlog(Stage.NOTIFIER)
    if entry.direct:
        is_late = timing.is_direct_too_late(entry.second, facts.now_ms)
        return _in_backlog(Stage.SWEEP if is_late else Stage.NOTIFIER)
    dispatched = facts.dispatched_second
    is_dispatched = dispatched is None or dispatched >= entry.second
    return _in_backlog(Stage.NOTIFIER if is_dispatched else Stage.DISPATCH)


def _is_in_a_run(entry: Address, lease: PageLease | None, now_ms: int) -> bool:
    """As far as is known: a direct entry has no lease."""
    if lease is None:
        return entry.direct and not timing.is_direct_too_late(entry.second, now_ms)
    return lease.owner is not None and not lease.done and lease.until_ms >= now_ms


def _in_backlog(stage: Stage) -> Wait:
    return Wait(reason=Reason.BACKLOG, stage=stage)
