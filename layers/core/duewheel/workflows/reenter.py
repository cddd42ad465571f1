"""Give a task a new entry: put it, let the home name it, announce it if it is near.

The steps are separate because the home is named in the same write that records why. Nobody
takes an entry away but the sweep, when it has passed its second: what no home names never
fires, and what was worked off tells the sweep what became of it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules import wheel
from duewheel.rules.addresses import Address
from duewheel.rules.load import sampled
from duewheel.rules.messages import DirectMessage
from duewheel.rules.placing import Placing
from duewheel.stores.loads import LoadStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.hand_over import HandOver

ENTRIES_PER_MESSAGE = 25


@dataclass(frozen=True, slots=True)
class Reenter:
    clock: Clock
    tasks: TaskStore
    hand_over: HandOver
    random_bytes: Callable[[], bytes]
    random_unit: Callable[[], float]
    time_pointer: Callable[[], int]
    aws_ms: Callable[[], int]
    loads: LoadStore
    lead_ms: int
    ahead_ms: int

    def placing(self) -> Placing:
        pointer_second = self.time_pointer()  # AWS's time comes with it
        now_ms = wheel.not_behind_ms(self.clock.now_ms(), self.aws_ms())
        return Placing(now_ms, pointer_second, self.lead_ms, self.ahead_ms)

    def address(self, instant_ms: int) -> Address:
        """Where an entry written now for this instant stands."""
        return self.placing().address(instant_ms, self.random_bytes())

    def put(self, home: Address, instant_ms: int) -> Address:
        entry = self.address(instant_ms)
        self.tasks.put_entry(entry, home)
        return entry

    def announce(self, entries: Iterable[Address], *, one_by_one: bool = False) -> None:
        """Tell of entries that have been written: the notifiers of direct ones, which no slice
        read will see, and the forecast of all others.

        The entries stand; should the queue refuse, the sweep delivers them, late.
        """
        entries = sorted(entries, key=lambda entry: entry.place)
        ahead = [entry.second for entry in entries if not entry.direct]
        self.loads.add(sampled(ahead, self.random_unit))
        direct = [entry for entry in entries if entry.direct]
        size = 1 if one_by_one else ENTRIES_PER_MESSAGE
        messages: list[DirectMessage] = []
        for second, group in groupby(direct, key=lambda entry: entry.second):
            names = [entry.name for entry in group]
            messages += (
                DirectMessage(second, tuple(names[start : start + size]))
                for start in range(0, len(names), size)
            )
        if refused := self.hand_over.send(messages, self._delay_seconds):
            logger.error(
                "direct entries left to the sweep",
                action="direct-refused",
                entries=[name for message in refused for name in message.entries],
            )

    def _delay_seconds(self, message: DirectMessage) -> int:
        return wheel.delay_seconds(message.second, self.clock.now_ms(), self.lead_ms)
