"""The parts for work that goes on after its call. Nothing of it is loaded before there is some."""

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.wiring import creating, process
from duewheel.wiring.businesses import business_cache, permits
from duewheel.wiring.process import clock, once
from duewheel.wiring.wheel import entry_writer, keys, tasks, tell_outcome
from duewheel.workflows.delivery.end_work import EndWork
from duewheel.workflows.delivery.fail_attempt import FailAttempt
from duewheel.workflows.tasks.work_permits import WorkPermits


def as_called(task: Task) -> Task:
    """A pending occurrence has none of the fields of its timer."""
    if task.occurrence is None:
        return task
    from duewheel.rules.timers.occurrence_policy import with_timer_fields
    from duewheel.rules.timers.timer import Timer
    from duewheel.wiring.timers import timers

    timer_id = task.occurrence.timer_id
    timer = timers().read_many([timer_id]).get(timer_id)
    return with_timer_fields(task, task.occurrence, timer) if isinstance(timer, Timer) else task


def count(task: Task, status: Status) -> None:
    """The first call of an occurrence was counted by its page."""
    if task.occurrence is None:
        return
    from duewheel.rules.timers.outcome_counts import OUTCOMES, is_folded
    from duewheel.wiring.timers import counters

    if status in OUTCOMES and not is_folded(task):
        counters().add(task.occurrence.timer_id, {OUTCOMES[status]: 1})


def stop_timer(task: Task, outcome: Outcome) -> None:
    """A timer that was changed since the call goes on: the receiver does not know it as it is."""
    if task.occurrence is None or not outcome.stopped_by_receiver:
        return
    from duewheel.rules.timers.occurrence_policy import should_disable_timer
    from duewheel.rules.timers.timer import Timer
    from duewheel.wiring.timers import change_timer, timers
    from duewheel.workflows.timers.change_timer import StopTimer

    timer_id = task.occurrence.timer_id
    timer = timers().read_many([timer_id]).get(timer_id)
    if not isinstance(timer, Timer) or not should_disable_timer(timer, outcome):
        return
    if task.running is None or timer.updated_ms < task.running.call.at_ms:
        StopTimer(change_timer())(timer)


@once
def work_permits() -> WorkPermits:
    return WorkPermits(clock(), permits(), tasks())


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
        as_called=as_called,
        count=count,
        stop_timer=stop_timer,
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
        random_unit=process.random_unit(),
        tell_outcome=tell_outcome(),
    )
    return end_work(fail_attempt, business_cache())
