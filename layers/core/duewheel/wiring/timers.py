"""What changes timers, and what their calls run on."""

import secrets

from duewheel.rules.timers.timer import ID_RANGE
from duewheel.stores.timers.by_timer_index import RunIndex
from duewheel.stores.timers.timers import TimerStore
from duewheel.wiring.businesses import known_businesses
from duewheel.wiring.process import clock, dynamodb, once, settings
from duewheel.wiring.wheel import reenter, tasks
from duewheel.workflows.timers.change_timer import ChangeTimer, RunTimer
from duewheel.workflows.timers.create_timer import CreateTimer
from duewheel.workflows.timers.planning_chain import ChainTimer
from duewheel.workflows.timers.read_xtimer import LookUpXtimer


@once
def timers() -> TimerStore:
    return TimerStore(dynamodb(), clock(), settings().registry_table)


@once
def chain_timer() -> ChainTimer:
    return ChainTimer(clock(), tasks(), reenter())


@once
def create_timer() -> CreateTimer:
    return CreateTimer(
        clock(), timers(), chain_timer(), known_businesses(), lambda: secrets.randbelow(ID_RANGE)
    )


@once
def change_timer() -> ChangeTimer:
    return ChangeTimer(clock(), timers(), chain_timer(), known_businesses())


@once
def run_index() -> RunIndex:
    return RunIndex(dynamodb(), settings().wheel_table)


@once
def look_up_xtimer() -> LookUpXtimer:
    return LookUpXtimer(clock(), timers(), tasks(), run_index())


@once
def run_timer() -> RunTimer:
    return RunTimer(timers(), tasks(), reenter())
