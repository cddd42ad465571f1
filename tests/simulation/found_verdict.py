"""How late first calls begin: what was lost is found within four minutes, whatever others do.

Judged are tasks that wait for nothing of their own: no limit, pause or order of their business, no
low priority, no slow lane, no failing host, no earlier run of a timer. Time counts only while the
sweep could find something: not in outages of what each call needs, nor while the sweep was broken
itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Status, Task
from tests.simulation.clients import TOLERANCE_SECONDS, TOLERANT
from tests.simulation.faults import BUT_ONE, FLAKY_HOST, LATE, PARTITION, Outage
from tests.simulation.ledger import Asked, DueAsked, Known, Ledger
from tests.simulation.operators import BULKED
from tests.simulation.receiver import Call, Dropped
from tests.simulation.senders import RATIONED
from tests.simulation.sweep_watch import BrokenSpan
from tests.support.clock import NOON_MS

FOUND_SECONDS_MAX = 240
JUDGED = (TOLERANT, BULKED, RATIONED)
REQUEST_SECONDS_MAX = 30  # one that was not answered may be carried out so much later
RECEIVER = "receiver"
_NEEDED = ("dynamodb", "sqs", "notifier", RECEIVER, PARTITION, f"main {LATE}", BUT_ONE)


@dataclass(frozen=True)
class FirstCall:
    """`owed_seconds`: from then on it could have been made. A task that nobody has called counts as
    called when the soak ended."""

    task_id: str
    owed_seconds: float
    began_seconds: float


def held_up(outages: Sequence[Outage], sweep_broken: Sequence[BrokenSpan]) -> list[BrokenSpan]:
    """The spans in which nothing has to be found. After an outage of the receivers their breaker
    may be open for as long again."""
    spans = [*sweep_broken]
    for outage in outages:
        if outage.what in _NEEDED:
            again = outage.seconds if outage.what == RECEIVER else 0.0
            spans.append(BrokenSpan(outage.begins_seconds, outage.ends_seconds + again))
    return sorted(spans)


def waited_seconds(call: FirstCall, spans: Sequence[BrokenSpan]) -> float:
    """Less the sorted spans, which may overlap."""
    waited, at = call.began_seconds - call.owed_seconds, call.owed_seconds
    for span in spans:
        begins, ends = max(span.begins, at), min(span.ends, call.began_seconds)
        if begins < ends and span.passed < call.owed_seconds:
            waited -= ends - begins
            at = ends
    return waited


def found_late(calls: Iterable[FirstCall], spans: Sequence[BrokenSpan]) -> Iterator[str]:
    for call in calls:
        waited = waited_seconds(call, spans)
        if waited > FOUND_SECONDS_MAX:
            between = f"{call.owed_seconds:.0f} to {call.began_seconds:.0f}"
            yield f"{call.task_id} not called from {between}, {waited:.0f} s of these"


def first_calls(
    ledger: Ledger, made: Sequence[Call | Dropped], tasks: Sequence[Task], ended_seconds: float
) -> Iterator[FirstCall]:
    by_task: dict[str, list[Call | Dropped]] = defaultdict(list)
    for call in made:
        by_task[call.task_id].append(call)
    for task in tasks:
        known = ledger.tasks.get(task.task_id)
        if known is None or not _is_judged(task):
            continue
        calls, tolerance = by_task[task.task_id], _tolerance_seconds(task)
        yield from _first_calls(known, calls, tolerance)
        if task.status is Status.PENDING and not calls:
            owed = _owed_seconds(known, ended_seconds, tolerance)
            yield FirstCall(task.task_id, owed, max(owed, ended_seconds))


def _is_judged(task: Task) -> bool:
    is_flaky = isinstance(task.callback, HttpCallback) and FLAKY_HOST in task.callback.url
    if task.biz_type not in JUDGED or task.occurrence is not None:
        return False
    return task.priority is not Priority.LOW and not is_flaky


def _tolerance_seconds(task: Task) -> int:
    if task.tolerance_seconds is not None:
        return task.tolerance_seconds
    return TOLERANCE_SECONDS if task.biz_type == TOLERANT else 0


def _first_calls(
    known: Known, made: Sequence[Call | Dropped], tolerance_seconds: int
) -> Iterator[FirstCall]:
    """One after the create, and one after each redrive, which gives all attempts back."""
    called_seconds = -1.0
    for call in sorted(made, key=lambda each: each.began_seconds):
        began = call.began_seconds
        is_redriven = any(
            called_seconds < redrive.begun_seconds <= began for redrive in known.redrives
        )
        # A task may be called before its create is answered, when that had to be repeated.
        is_known = known.dues[0].begun_seconds <= began
        if call.attempt == 1 and is_known and (called_seconds < 0 or is_redriven):
            yield FirstCall(known.task_id, _owed_seconds(known, began, tolerance_seconds), began)
        called_seconds = began


def _owed_seconds(known: Known, at_seconds: float, tolerance_seconds: int) -> float:
    """By the last instant that was granted, and what may have been done since."""
    requests: list[Asked] = [*known.dues, *known.redrives]
    before = sorted(
        (each for each in requests if each.begun_seconds <= at_seconds),
        key=lambda each: each.begun_seconds,
    )
    granted = [n for n, each in enumerate(before) if isinstance(each, DueAsked) and each.is_granted]
    since = [each for each in before[granted[-1] :] if each.may_have_been_done]
    ended = [
        each.begun_seconds + REQUEST_SECONDS_MAX
        if each.answered_seconds is None
        else each.answered_seconds
        for each in since
    ]
    due = [
        (each.due_ms - NOON_MS) / 1000 + tolerance_seconds
        for each in since
        if isinstance(each, DueAsked)
    ]
    return max([*ended, *due])
