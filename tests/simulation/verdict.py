"""The service held against what its clients know: what was lost, early, undue."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tolerance import TOLERANCE_SECONDS_MAX
from duewheel.stores.tasks import codec
from tests.simulation.invocation import DUPLICATE, Invocation
from tests.simulation.ledger import Known, Ledger
from tests.simulation.message_verdict import MessageReport
from tests.simulation.receiver import Call, Dropped

BEHIND_SECONDS_MAX = 240  # the sweep delay, a minute of its schedule, a minute of its notes


@dataclass
class Report:
    created: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    repeated: int = 0
    redriven_by_two: int = 0  # tasks by two callers at once
    completed: int = 0  # by reports of their receivers
    largest_lateness_ms: int = 0
    sweep_behind_seconds: float = 0.0  # less the time in which it was broken itself
    first_calls: int = 0  # of tasks that wait for nothing of their own
    found_after_seconds: float = 0.0  # the latest of these, less the time that does not count
    reasons: Counter[str] = field(default_factory=Counter)  # of tasks that were seen to wait
    messages: MessageReport = field(default_factory=MessageReport)
    # Each of these is a broken promise:
    lost: list[str] = field(default_factory=list)
    operations: int = 0  # on many tasks at once
    early: list[str] = field(default_factory=list)
    called_after_cancel: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    disobeyed: list[str] = field(default_factory=list)  # owners, in what they said of a business
    left_at_work: list[str] = field(default_factory=list)  # as Lambda freezes it
    deleted_wrongly: list[str] = field(default_factory=list)  # by time, or not
    inconsistent: list[str] = field(default_factory=list)  # as the service's own audit says
    not_once: list[str] = field(default_factory=list)  # under an idempotency key
    silent: list[str] = field(default_factory=list)  # overdue tasks that said no reason
    found_late: list[str] = field(default_factory=list)  # what was lost

    @property
    def _sweep_behind(self) -> list[str]:
        is_behind = self.sweep_behind_seconds > BEHIND_SECONDS_MAX
        return [f"the sweep is behind by {self.sweep_behind_seconds:.0f} s"] if is_behind else []

    @property
    def broken(self) -> list[str]:
        return [
            *(f"lost: {each}" for each in self.lost),
            *(f"early: {each}" for each in self.early),
            *(f"called after its cancel: {each}" for each in self.called_after_cancel),
            *(f"repeated for no reason: {each}" for each in self.unexplained),
            *(f"recorded untruly: {each}" for each in self.untrue),
            *(f"not as its owner said: {each}" for each in self.disobeyed),
            *(f"ended before what it had begun: {each}" for each in self.left_at_work),
            *(f"deleted wrongly: {each}" for each in self.deleted_wrongly),
            *self._sweep_behind,
            *(f"inconsistent: {each}" for each in self.inconsistent),
            *(f"not once under its idempotency key: {each}" for each in self.not_once),
            *(f"waits and does not say why: {each}" for each in self.silent),
            *(f"found too late: {each}" for each in self.found_late),
            *self.messages.broken,
        ]


class Received(Protocol):
    """What the receivers saw, and the calls that were dropped on the way to them."""

    calls: list[Call]
    dropped: list[Dropped]
    completed: dict[str, float]


def judged(ledger: Ledger, received: Received, items: list[dict[str, Any]]) -> Report:
    """`items` is all that stands in the wheel once nothing is left to do."""
    calls = received.calls
    homes = [item for item in items if "status" in item]
    tasks = {task.task_id: task for task in map(codec.task_from, homes)}
    by_task: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_task[call.task_id].append(call)
    report = Report(created=len(ledger.tasks), calls=len(calls))
    report.completed = len(received.completed)
    report.redriven_by_two = ledger.redriven_by_two
    report.silent += ledger.silent
    report.reasons = ledger.reasons
    report.not_once += [*ledger.answered_otherwise, *_created_again(ledger, tasks.values())]
    for task_id, task in tasks.items():
        report.by_status[task.status.value] += 1
        if task.status is Status.PENDING:
            report.lost.append(f"{task_id} is still pending")
        if task.status is Status.DELIVERED:
            report.largest_lateness_ms = max(report.largest_lateness_ms, task.lateness_ms or 0)
            is_delivered = any(call.is_heard_delivered for call in by_task[task_id])
            is_reported = any(call.heard.complete_within_seconds for call in by_task[task_id])
            if not is_delivered and task_id not in received.completed and not is_reported:
                report.untrue.append(f"{task_id} is delivered, and no call was answered so")
        report.untrue += _misplaced(task)
    for task_id, known in ledger.tasks.items():
        if task_id not in tasks:
            report.lost.append(f"{task_id} is gone")
            continue
        status = tasks[task_id].status
        if known.cancelled_from_seconds is not None and status is not Status.CANCELLED:
            report.untrue.append(f"{task_id} was cancelled and is {status.value}")
        report.untrue += _changed_in_vain(known, tasks[task_id], by_task[task_id])
        dropped = [each.by for each in received.dropped if each.task_id == task_id]
        report.untrue += _completed_in_vain(known, tasks[task_id], received)
        completed = received.completed.get(task_id)
        _judge_calls(report, known, by_task[task_id], dropped, completed)
    return report


def _completed_in_vain(known: Known, task: Task, received: Received) -> Iterator[str]:
    is_over = task.task_id in received.completed and not known.called_again
    if is_over and task.status is not Status.DELIVERED:
        yield f"{task.task_id} was completed and is {task.status.value}"


def _changed_in_vain(known: Known, task: Task, calls: list[Call]) -> Iterator[str]:
    if task.status is Status.DELIVERED and not _was_called_again(known, calls):
        yield f"{task.task_id} was redriven or moved, and not called again"
    if task.redrives > sum(asked.may_have_been_done for asked in known.redrives):
        yield f"{task.task_id} was redriven more often than it was asked for"


def _was_called_again(known: Known, calls: list[Call]) -> bool:
    granted = [asked.begun_seconds for asked in known.called_again if asked.is_granted]
    return not granted or any(call.began_seconds >= max(granted) for call in calls)


def _misplaced(task: Task) -> list[str]:
    """It got a second before its due instant, or too long after it."""
    own = task.tolerance_seconds
    most = TOLERANCE_SECONDS_MAX if own is None or task.occurrence is not None else own
    if 0 <= task.due_ms - task.due_at_ms <= most * 1000:
        return []
    return [f"{task.task_id} is due at {task.due_at_ms}, within {most} s, and got {task.due_ms}"]


def _created_again(ledger: Ledger, tasks: Iterable[Task]) -> list[str]:
    payloads = Counter(task.payload for task in tasks)
    made = {number: payloads[json.dumps({"n": number})] for number in ledger.once}
    return [f"{number} was created {times} times" for number, times in made.items() if times > 1]


def _judge_calls(
    report: Report,
    known: Known,
    calls: list[Call],
    dropped: list[Invocation],
    completed_seconds: float | None,
) -> None:
    """A repeat is explained by the trouble of another run that called the task, be it by a call
    that never arrived: so its message is another one, or the outcome was not written."""
    cancelled = known.cancelled_from_seconds
    delivered_by: Call | None = None
    for call in calls:
        if cancelled is not None and call.began_seconds >= cancelled:
            report.called_after_cancel.append(f"{known.task_id} at {call.began_seconds:.3f}")
        earliest = known.earliest_ms(call.began_seconds)
        if call.notifier_ms < earliest:
            report.early.append(f"{known.task_id} by {earliest - call.notifier_ms} ms")
        is_after_end = completed_seconds is not None and call.began_seconds > completed_seconds
        is_repeat = delivered_by is not None and not _revived_between(known, delivered_by, call)
        if is_repeat or is_after_end:
            report.repeated += 1
            others = [other.by for other in calls if other is not call] + dropped
            is_explained = any(by.troubles for by in others) or DUPLICATE in call.by.troubles
            if not is_explained:
                report.unexplained.append(f"{known.task_id} at {call.began_seconds:.3f}")
        if call.is_heard_delivered:
            delivered_by = call


def _revived_between(known: Known, first: Call, second: Call) -> bool:
    return any(
        first.began_seconds <= redrive.begun_seconds <= second.began_seconds
        for redrive in known.redrives
    )
