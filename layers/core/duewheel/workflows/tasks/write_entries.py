"""Write entries: reserve a place, put the entry, announce it if it is near.

The steps are separate because the home is named in the same write that records why. Only the sweep
deletes entries, when it has passed their second: an entry that no home names is never delivered,
and a delivered one shows the sweep what became of it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.tasks.placement import Placement
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address, address_named
from duewheel.rules.wheel.queue_messages import DirectMessage
from duewheel.stores.conditional_writes import Throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.wheel.reserve_shards import ReserveShards
from duewheel.workflows.wheel.send_messages import MessageSender

ENTRIES_PER_MESSAGE = 25


class EntryWriter(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    message_sender: MessageSender
    random_bytes: Callable[[], bytes]
    time_pointer: Callable[[], int]
    aws_ms: Callable[[], int]
    reserve_shards: ReserveShards
    lead_ms: int
    ahead_ms: int

    def placing(self) -> Placement:
        """The placement as of now, without reserving shards."""
        pointer_second = self.time_pointer()  # AWS's time comes with it
        now_ms = timing.not_behind_ms(self.clock.now_ms(), self.aws_ms())
        return Placement(now_ms, pointer_second, self.lead_ms, ahead_ms=self.ahead_ms)

    def placing_of(self, instants_ms: Iterable[int]) -> Placement:
        """For entries that are about to be written at these instants, one each."""
        return self.sized(self.placing(), instants_ms)

    def placing_now(self) -> Placement:
        """For one entry that is due at once."""
        placing = self.placing()
        return self.sized(placing, [placing.now_ms])

    def sized(self, placing: Placement, instants_ms: Iterable[int]) -> Placement:
        return replace(placing, shards=self.reserve_shards(map(placing.second, instants_ms)))

    def crowded(self, instants_ms: Iterable[int]) -> Placement:
        """For a second try, after DynamoDB throttled the first."""
        placing = self.placing()
        shards = self.reserve_shards.crowded(map(placing.second, instants_ms))
        return replace(placing, shards=shards)

    def addresses(self, instants_ms: Sequence[int]) -> list[Address]:
        """The addresses of entries that are written now for these instants."""
        placing = self.placing_of(instants_ms)
        return [placing.address(instant_ms, self.random_bytes()) for instant_ms in instants_ms]

    def address(self, instant_ms: int) -> Address:
        (address,) = self.addresses([instant_ms])
        return address

    def put(self, home: Address, instant_ms: int) -> Address:
        """If the write succeeded and its answer was lost, the entry stays, and no home names it."""
        entry = self.address(instant_ms)
        try:
            self.tasks.put_entry(entry, home)
        except Throttled:
            entry = self.crowded([instant_ms]).address(instant_ms, self.random_bytes())
            self.tasks.put_entry(entry, home)
        return entry

    def announce(self, entries: Iterable[Address], *, one_by_one: bool = False) -> None:
        """Send the notifiers the written entries that are direct: no read of a slice will see them.
        The entries are stored; if the queue refuses, the sweep delivers them, late."""
        entries = sorted(entries, key=lambda entry: entry.place)
        direct = [entry for entry in entries if entry.direct]
        size = 1 if one_by_one else ENTRIES_PER_MESSAGE
        messages: list[DirectMessage] = []
        for second, group in groupby(direct, key=lambda entry: entry.second):
            names = [entry.name for entry in group]
            messages += (
                DirectMessage(second, tuple(names[start : start + size]))
                for start in range(0, len(names), size)
            )
        if refused := self.message_sender.send(messages, self._delay_seconds):
            logger.error(
                "direct entries left to the sweep",
                action="direct-refused",
                entries=[name for message in refused for name in message.entries],
            )

    def _delay_seconds(self, message: DirectMessage) -> int:
        """Until shortly before the first instant; without it a notifier would wait and be paid."""
        first_ms = address_named(message.entries[0]).instant_ms
        return timing.delay_seconds(first_ms, self.clock.now_ms(), self.lead_ms)
