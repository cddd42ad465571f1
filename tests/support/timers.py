"""Timers in a world, and the outcomes of their occurrences."""

from collections import Counter
from typing import Any

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers.requests import NewTimer, TimerChange
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Misfire, Rules, Timer
from duewheel.stores import registry_keys
from duewheel.stores.tasks import codec
from tests.support.damage import edit
from tests.support.world import CALLER, LAMBDA_MS, World

CALLBACK = HttpCallback("https://receiver.example/closing")


def made(world: World, every: int = 1, /, *, enabled: bool = True, **rules: Any) -> Timer:
    """A timer whose interval starts at the current second, and whose missed occurrences are all
    called."""
    values: dict[str, Any] = {
        "schedule": Schedule(every_seconds=every, anchor_second=now(world)),
        "callback": CALLBACK,
        "misfire": Misfire.ALL,
        "payload": '{"n":"{{number}}"}',
        **rules,
    }
    return world.create_timer(NewTimer("orders", Rules("closing", **values), enabled), by=CALLER)


def patched(world: World, timer: Timer, **values: Any) -> Timer:
    return world.change_timer(timer.timer_id, TimerChange(values), by=CALLER)


def now(world: World) -> int:
    return world.clock.now_ms() // 1000


def occurrences(world: World, timer: Timer) -> list[Task]:
    """All occurrences in the wheel, in the order of their seconds and numbers."""
    tasks = [codec.task_from(item) for item in world.items() if "occurrence" in item]
    own = [t for t in tasks if t.occurrence and t.occurrence.timer_id == timer.timer_id]
    return sorted(own, key=lambda t: (t.occurrence.second, t.occurrence.number))  # type: ignore[union-attr]


def chain_of(world: World, timer: Timer) -> Task | None:
    current = world.timers.read(timer.timer_id)
    home = timer.chain if current is None else current.chain
    return None if home is None else world.tasks.get(home)


def plan(world: World, timer: Timer) -> None:
    """The work of a notifier on the due entry of the chain."""
    chain = chain_of(world, timer)
    if chain is not None and chain.plan is not None and chain.is_live:
        deadline_ms = world.clock.now_ms() + LAMBDA_MS
        world.deliver.deliver_entries.plan_timers([(chain, chain.plan)], deadline_ms)


def run_for(world: World, seconds: int) -> None:
    """All functions run, second by second."""
    until = now(world) + seconds
    while now(world) < until:
        world.dispatch_until(now(world))
        world.drain()
        world.clock.advance_ms(1_000)
    world.drain()


def fates(world: World, timer: Timer) -> Counter[str]:
    """The reason of each occurrence, or its status if there is none."""
    return Counter(task.reason or task.status.value for task in occurrences(world, timer))


def called_seconds(world: World) -> list[int]:
    return [received.at_ms // 1000 for received in world.receiver.received]


def damage(world: World, timer: Timer, **attributes: Any) -> None:
    """Edit the definition directly, as the service never does."""
    edit(world, registry_keys.timer(timer.timer_id), **attributes)
