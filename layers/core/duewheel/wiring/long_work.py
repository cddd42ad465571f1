"""The parts for work that goes on after its call. Nothing of it is loaded before there is some."""

from typing import TYPE_CHECKING

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.wiring import creating, process
from duewheel.wiring.businesses import business_cache, permits, seen_businesses
from duewheel.wiring.process import clock, once
from duewheel.wiring.wheel import entry_writer, keys, tasks, tell_outcome
from duewheel.workflows.delivery.end_work import EndWork
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.tasks.work_permits import WorkPermits

if TYPE_CHECKING:
    from duewheel.rules.timers.timer import Timer


def _as_called(task: Task) -> "tuple[Task, Timer | None]":
    if task.occurrence is None:
        return task, None
    from duewheel.wiring.timers import end_run

    return end_run().as_called(task)


def _run_ended(task: Task, timer: "Timer | None", status: Status, outcome: Outcome) -> None:
    from duewheel.wiring.timers import end_run

    end_run().ended(task, timer, status, outcome)


@once
def work_permits() -> WorkPermits:
    return WorkPermits(clock(), permits(), tasks(), process.random_unit())


def end_work(fail_attempt: FailAttempt, known: BusinessCache) -> EndWork:
    return EndWork(
        clock=clock(),
        tasks=tasks(),
        keys=keys(),
        keep_order=fail_attempt.keep_order,
        entry_writer=entry_writer(),
        known=known,
        fail_attempt=fail_attempt,
        permits=work_permits(),
        tell_outcome=fail_attempt.tell_outcome,
        as_called=_as_called,
        run_ended=_run_ended,
    )


@once
def reported_work() -> EndWork:
    """Of the api."""
    fail_attempt = FailAttempt(
        clock=clock(),
        tasks=tasks(),
        keys=keys(),
        keep_order=creating.order(),
        entry_writer=entry_writer(),
        seen=seen_businesses(),
        random_unit=process.random_unit(),
        tell_outcome=tell_outcome(),
    )
    return end_work(fail_attempt, business_cache())
