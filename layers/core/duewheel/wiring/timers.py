"""The parts that read and change timers."""

import secrets

from duewheel.rules.timers.timer import ID_RANGE
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.tasks.made_once import MadeOnce
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.name_claims import NameClaims
from duewheel.stores.timers.occurrences import OccurrenceIndex, RunningStore
from duewheel.stores.timers.timers import TimerStore
from duewheel.wiring.businesses import business_cache
from duewheel.wiring.process import clock, dynamodb, once, settings
from duewheel.wiring.wheel import entry_writer, keep_order, tasks, tell_outcome
from duewheel.workflows.timers.change_timer import ChangeTimer, RunTimer
from duewheel.workflows.timers.create_timer import CreateTimer
from duewheel.workflows.timers.disable_timer import DisableTimer
from duewheel.workflows.timers.end_run import EndRun
from duewheel.workflows.timers.keep_apart import WakeWaiting
from duewheel.workflows.timers.planning_chain import PlanningChain
from duewheel.workflows.timers.timer_by_name import TimerByName


@once
def timers() -> TimerStore:
    return TimerStore(dynamodb(), clock(), settings().registry_table)


@once
def planning_chain() -> PlanningChain:
    return PlanningChain(clock(), tasks(), entry_writer())


@once
def made_once() -> MadeOnce:
    return MadeOnce(dynamodb(), settings().registry_table)


def _check_call(biz_type: str) -> None:
    from duewheel.wiring.creating import admission  # only where a caller has calls made

    admission().check_call(biz_type)


@once
def create_timer() -> CreateTimer:
    return CreateTimer(
        clock=clock(),
        timers=timers(),
        chain=planning_chain(),
        known=business_cache(),
        made_once=made_once(),
        random_number=lambda: secrets.randbelow(ID_RANGE),
        check_call=_check_call,
    )


@once
def change_timer() -> ChangeTimer:
    return ChangeTimer(clock(), timers(), planning_chain(), business_cache())


@once
def timer_by_name() -> TimerByName:
    claims = NameClaims(dynamodb(), settings().registry_table)
    return TimerByName(create_timer(), change_timer(), claims)


@once
def run_list() -> OccurrenceIndex:
    return OccurrenceIndex(dynamodb(), settings().wheel_table)


@once
def counters() -> CounterStore:
    return CounterStore(dynamodb(), settings().registry_table)


@once
def run_timer() -> RunTimer:
    return RunTimer(
        timers=timers(),
        tasks=tasks(),
        keep_order=keep_order(business_cache()),
        entry_writer=entry_writer(),
        made_once=made_once(),
        check_call=_check_call,
    )


def disable_timer(known: BusinessCache) -> DisableTimer:
    return DisableTimer(
        clock=clock(),
        known=known,
        tasks=tasks(),
        run_list=run_list(),
        change_timer=ChangeTimer(clock(), timers(), planning_chain(), known),
        tell_outcome=tell_outcome(),
    )


@once
def running() -> RunningStore:
    return RunningStore(dynamodb(), clock(), settings().registry_table)


@once
def wake_waiting() -> WakeWaiting:
    return WakeWaiting(
        clock=clock(),
        tasks=tasks(),
        running=running(),
        entry_writer=entry_writer(),
        lead_ms=settings().lead_ms,
    )


@once
def end_run() -> EndRun:
    return EndRun(timers(), counters(), disable_timer(business_cache()), wake_waiting())
