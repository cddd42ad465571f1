"""What the calls on timers run on."""

import secrets

from duewheel.rules.timer_ids import ID_RANGE
from duewheel.stores.timer_counters import CounterStore
from duewheel.stores.timer_runs import RunIndex
from duewheel.stores.timers import TimerStore
from duewheel.wiring.api import cursor_secret
from duewheel.wiring.process import (
    clock,
    dynamodb,
    known_businesses,
    once,
    reenter,
    settings,
    tasks,
)
from duewheel.workflows.chain_timer import ChainTimer
from duewheel.workflows.change_timer import ChangeTimer
from duewheel.workflows.create_timer import CreateTimer
from duewheel.workflows.look_up_timers import LookUpTimers
from duewheel.workflows.look_up_xtimer import LookUpXtimer


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
def look_up_timers() -> LookUpTimers:
    return LookUpTimers(
        clock(),
        timers(),
        tasks(),
        CounterStore(dynamodb(), settings().registry_table),
        RunIndex(dynamodb(), settings().wheel_table),
        cursor_secret(),
    )


@once
def look_up_xtimer() -> LookUpXtimer:
    index = RunIndex(dynamodb(), settings().wheel_table)
    return LookUpXtimer(clock(), timers(), tasks(), index)
