"""The service held against what owners said of their businesses and timers: pauses, limits, and
what a timer's schedule has."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf

from duewheel.rules.businesses.rate_limit import US_PER_SECOND
from duewheel.rules.delivery.reservations import HIGH_WAIT_MS, SLACK_US_MAX
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.planning import MISFIRES_WRITTEN
from duewheel.stores.businesses.cache import KEPT_MS
from tests.simulation.clients import labels_of
from tests.simulation.ledger import KnownTimer, Ledger, Pause
from tests.simulation.owners import (
    IN_FLIGHT,
    KEYED,
    KEYS,
    LIMITED,
    NARROW,
    TOLD,
)
from tests.simulation.receiver import Call
from tests.support.clock import NOON_MS

CLOCKS_DIFFER_SECONDS = 2.0
WINDOWS_SECONDS = (1, 10, 60)
_MISSED = ("missed", "superseded", "skipped")
TIMER_HEEDED_SECONDS = 0.5  # 250 ms, and what it takes to read it
COMPARED_MIN = 15  # tasks of a priority
ROOM_MS = 2_000  # a rate limit lets a task wait so long in a notifier
PLANNED_SECONDS = 4.0  # a plan begins with the second after the answer, by the planner's clock


def judged_owners(
    ledger: Ledger, calls: Sequence[Call], tasks: Sequence[Task], calls_per_second: float
) -> list[str]:
    by_business: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_business[call.biz_type].append(call)
    keys = {task.task_id: task.flow_key for task in tasks}
    by_key: dict[str | None, list[Call]] = defaultdict(list)
    for call in by_business[KEYED]:
        by_key[keys.get(call.task_id)].append(call)
    wrong: list[str] = []
    for pause in ledger.pauses:
        whole = by_business[pause.biz_type]
        wrong += _called_in(pause, whole if pause.flow_key is None else by_key[pause.flow_key])
    for flow_key in KEYS:
        wrong += _too_many(by_key[flow_key], calls_per_second)
    wrong += _too_many(by_business[LIMITED], calls_per_second)
    wrong += _too_many(by_business[NARROW], calls_per_second)
    wrong += too_many_in_flight(by_business[NARROW])
    limited = [task for task in tasks if task.biz_type == LIMITED]
    wrong += low_before_high(limited, calls_per_second)
    wrong += [f"{name} is {len(ids)} timers" for name, ids in ledger.named.items() if len(ids) > 1]
    return [*wrong, *_of_timers(ledger.timers, calls, tasks)]


def wrong_notices(tasks: Sequence[Task]) -> Iterator[str]:
    """Each outcome that is to be told has one notice, which says so, and no other has one."""
    by_id = {task.task_id: task for task in tasks}
    notices = [task for task in tasks if task.notice_of is not None]
    for task in tasks:
        if task.biz_type != TOLD or task.is_live or task.is_internal or task.notice_of is not None:
            continue
        if (task.notice_id is not None) is not _is_told(task):
            yield f"{task.task_id} is {task.status}, {task.reason}, and has {task.notice_id}"
        elif task.notice_id is not None and task.notice_id not in by_id:
            yield f"{task.task_id} has the notice {task.notice_id}, which is not there"
    for notice in notices:
        told = json.loads(notice.payload or "")
        of = by_id.get(str(notice.notice_of))
        if of is not None and of.redrives:  # its notice was of an earlier end
            continue
        if "runs" not in told and (of is None or of.notice_id != notice.task_id):
            yield f"{notice.task_id} tells of {notice.notice_of}, which does not name it"
        elif "runs" not in told and of is not None and told["outcome"] != _outcome_of(of):
            yield f"{notice.task_id} says {told['outcome']} of {of.task_id}, which is {of.status}"


def _is_told(task: Task) -> bool:
    told = (*_MISSED, "cancelled by caller", "replaced")
    return task.status is not Status.CANCELLED or task.reason in told


def _outcome_of(task: Task) -> str:
    return "missed" if task.reason in _MISSED else task.status.value


def _called_in(pause: Pause, calls: Sequence[Call]) -> Iterator[str]:
    begins = pause.answered_seconds + KEPT_MS / 1000 + CLOCKS_DIFFER_SECONDS
    for call in calls:
        if begins <= call.began_seconds < pause.resume_begun_seconds:
            yield f"{call.task_id} called in the pause of {pause.answered_seconds:.3f}, {call}"


def _too_many(calls: Sequence[Call], a_second: float) -> Iterator[str]:
    began = sorted(call.began_seconds for call in calls)
    for window in WINDOWS_SECONDS:
        most = a_second * (window + SLACK_US_MAX / US_PER_SECOND + CLOCKS_DIFFER_SECONDS) + 1
        first = 0
        for last, at in enumerate(began):
            while began[first] < at - window:
                first += 1
            if last + 1 - first > most:
                number = last + 1 - first
                yield f"{number} calls in {window} s up to {at:.3f}, at {a_second:g} a second"
                break


_EARLY_SECONDS = 0.000_01


def most_in_flight(calls: Sequence[Call]) -> int:
    """How many calls were under way at once, by the receiver's view. A sleep of virtual time may
    end some microseconds early."""
    moments = [(call.began_seconds, 1) for call in calls]
    moments += [(call.ended_seconds - _EARLY_SECONDS, -1) for call in calls]
    return max(accumulate(change for _, change in sorted(moments)), default=0)


def too_many_in_flight(calls: Sequence[Call]) -> Iterator[str]:
    """Over all notifiers."""
    if (most := most_in_flight(calls)) > IN_FLIGHT:
        yield f"{most} calls of {NARROW} were in flight at once"


def low_before_high(tasks: Sequence[Task], calls_per_second: float) -> Iterator[str]:
    """Of a business with a limit, as a whole: a single task may be late for other reasons, for
    instance because its message was lost. Compared are tasks of which that of high priority was due
    first: what is due later is less late when an outage ends. A task of high priority that waits in
    a crowd of these is left out: beyond the turns that are kept for them all tasks line up."""
    kept = calls_per_second * HIGH_WAIT_MS / 1000
    called_ms = {
        priority: [
            (task.due_ms, task.due_ms + task.lateness_ms)
            for task in tasks
            if task.priority is priority and task.attempts == 1 and not task.redrives
            if task.lateness_ms is not None
        ]
        for priority in (Priority.HIGH, Priority.LOW)
    }
    high = [
        one
        for one in called_ms[Priority.HIGH]
        if sum(other[0] <= one[1] and one[0] <= other[1] for other in called_ms[Priority.HIGH])
        <= kept
    ]
    low = called_ms[Priority.LOW]
    if min(len(high), len(low)) < COMPARED_MIN:
        return
    pairs = [(one, other) for one in high for other in low if one[0] <= other[0]]
    overtaken = [1 for one, other in pairs if one[1] > other[1] + ROOM_MS]
    if 2 * len(overtaken) > len(pairs):
        yield f"of {len(pairs)} tasks of high priority {len(overtaken)} are called after one of low"


def wrong_labels(tasks: Sequence[Task]) -> Iterator[str]:
    """A task has the labels that came with its payload, through changes of it, retries and its
    end."""
    for task in tasks:
        payload = json.loads(task.payload or "null")
        number = payload.get("n") if isinstance(payload, dict) else None
        if isinstance(number, int) and dict(task.labels) != labels_of(number):
            yield f"{task.task_id} of number {number} has the labels {task.labels}"


def _of_timers(
    timers: Sequence[KnownTimer], calls: Sequence[Call], tasks: Sequence[Task]
) -> Iterator[str]:
    occurrences: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        if task.occurrence is not None and not task.occurrence.manual:
            occurrences[task.occurrence.timer_id].append(task)
    timer_of = {task.task_id: t for t, made in occurrences.items() for task in made}
    called: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.task_id in timer_of:
            called[timer_of[call.task_id]].append(call)
    for timer in timers:
        yield from _of_timer(timer, called[timer.timer_id], occurrences[timer.timer_id])


def _of_timer(
    timer: KnownTimer, calls: Sequence[Call], occurrences: Sequence[Task]
) -> Iterator[str]:
    made = Counter(t.occurrence.second - NOON_MS // 1000 for t in occurrences if t.occurrence)
    for second, number in made.items():
        if number > 1 or second not in timer.instants:
            yield f"timer {timer.timer_id} has {number} occurrences at {second}"
    instants = timer.instants if timer.misfire == "all" else timer.instants[-MISFIRES_WRITTEN:]
    for second in instants:
        # One that is disabled later may not have been planned by then.
        is_enabled = timer.is_surely(True, second - PLANNED_SECONDS, inf)
        if is_enabled and not made[second]:
            yield f"timer {timer.timer_id} has no occurrence at {second}"
    if all(is_enabled for _, is_enabled in timer.changes):
        for task in occurrences:
            if task.status is Status.CANCELLED and task.reason in (
                "timer disabled",
                "timer deleted",
            ):
                yield f"{task.task_id} is cancelled, {task.reason}, and the timer never was"
    for call in calls:
        begins = call.began_seconds - TIMER_HEEDED_SECONDS
        if timer.is_surely(False, begins, call.began_seconds):
            yield f"{call.task_id} of a disabled timer called at {call.began_seconds:.3f}, {call}"
