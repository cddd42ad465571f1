"""Chain: the parts of a transaction by which a timer begins, or ceases, to plan itself."""

from typing import Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers import planning
from duewheel.rules.timers.timer import Timer
from duewheel.rules.timers.updates import ended_chain, planned_by
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.write_entries import EntryWriter


class Chained(Struct, frozen=True):
    """`actions` go into the transaction that writes the timer; `entries` are announced when it is
    written."""

    timer: Timer
    actions: tuple[Any, ...] = ()
    entries: tuple[Address, ...] = ()


class PlanningChain(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    entry_writer: EntryWriter

    def read(self, timer: Timer) -> Task | None:
        """The home of the chain. A damaged one is reported and left alone: it plans nothing once
        its timer has another chain."""
        if timer.chain is None:
            return None
        return self.tasks.get_many([timer.chain]).get(timer.chain)

    def begun(self, timer: Timer) -> Chained:
        """With a chain of its own, which is due at once."""
        placement = self.entry_writer.placement_now()
        home = planning.chain_home(timer, placement, self.entry_writer.random_bytes())
        put = {"Put": self.tasks.put_request(home)}
        after = planned_by(timer, home.home, placement.now_ms // 1000)
        return Chained(after, (put,), (home.home,))

    def ended(self, chain: Task | None, after: Timer | None) -> tuple[Any, ...]:
        """What ends the chain of a timer that is changed, disabled, or deleted (`after` is None),
        if it has not ended by itself."""
        if chain is None or not chain.is_live:
            return ()
        ended = ended_chain(chain, after, self.clock.now_ms())
        return ({"Update": self.tasks.update_request(chain, ended)},)

    def announce(self, chained: Chained) -> None:
        self.entry_writer.announce(chained.entries)
