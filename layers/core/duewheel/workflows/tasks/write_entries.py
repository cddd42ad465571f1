"""Write entries: reserve shards and a place, put the entry, announce it if it is near.

The steps are separate because the home is named in the same write that records why. Only the sweep
deletes entries, when it has passed their second: an entry that no home names is never delivered,
and a delivered one shows the sweep what became of it.

Planned writes are added to the load estimate of their seconds before the shards are reserved. A
shard is used only after the header that announces it was written.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.tasks.task import NewTask, Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address, address_named
from duewheel.rules.wheel.queue_messages import DirectMessage
from duewheel.rules.wheel.sharding import Placement, is_looked_at, sampled, shards_for, widened
from duewheel.stores.dynamodb import Throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.wheel.sharding import HeaderStore, LoadStore, ShardsCache
from duewheel.workflows.wheel.send_messages import MessageSender

ENTRIES_PER_MESSAGE = 25


class ReserveShards(Struct, frozen=True):
    loads: LoadStore
    headers: HeaderStore
    known: ShardsCache
    random_unit: Callable[[], float]

    def __call__(self, seconds: Iterable[int], *, surely: bool = False) -> dict[int, int]:
        """The shards of the seconds that have more than one; `seconds` names one for each entry.
        `surely`: no second is left out by sampling."""
        entries = Counter(seconds)
        expected = self.loads.add(sampled(entries.elements(), self.random_unit))
        unknown = [
            second
            for second, number in entries.items()
            if (surely or second not in expected)
            and not self.known.of([second])
            and (surely or is_looked_at(number, self.random_unit))
        ]
        if unknown:
            self.known.keep(self.headers.read(unknown))
        for second in expected.keys() & entries.keys():
            self._raise(second, shards_for(expected[second]))
        return self.known.of(entries)

    def after_throttle(self, seconds: Iterable[int]) -> dict[int, int]:
        """The same for seconds in which DynamoDB throttled a write. Such a second is treated as
        crowded."""
        seconds = set(seconds)
        self.known.keep(self.headers.read(seconds))
        for second in seconds - self.known.of(seconds).keys():
            self._raise(second, widened(1))
        return self.known.of(seconds)

    def _raise(self, second: int, shards: int) -> None:
        if shards > self.known.of([second]).get(second, 1):
            current = self.headers.raise_to(second, shards)
            if current is not None:
                self.known.keep({second: current})


class EntryWriter(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    message_sender: MessageSender
    random_bytes: Callable[[], bytes]
    time_pointer: Callable[[], int]
    aws_ms: Callable[[], int]
    reserve_shards: ReserveShards
    lead_ms: int
    ahead_ms: int

    def placement(
        self, instants_ms: Iterable[int] | None = None, *, is_throttled: bool = False
    ) -> Placement:
        """The placement as of now. `instants_ms`: of entries that are about to be written, for
        which shards are reserved. `is_throttled`: DynamoDB throttled a first try."""
        pointer_second = self.time_pointer()  # AWS's time comes with it
        now_ms = timing.not_behind_ms(self.clock.now_ms(), self.aws_ms())
        placement = Placement(
            now_ms=now_ms,
            pointer_second=pointer_second,
            lead_ms=self.lead_ms,
            ahead_ms=self.ahead_ms,
        )
        if instants_ms is None:
            return placement
        return self.with_shards(placement, instants_ms, is_throttled=is_throttled)

    def with_shards(
        self, placement: Placement, instants_ms: Iterable[int], *, is_throttled: bool = False
    ) -> Placement:
        reserve = self.reserve_shards.after_throttle if is_throttled else self.reserve_shards
        return replace(placement, shards=reserve(map(placement.second, instants_ms)))

    def placement_now(self) -> Placement:
        """The placement for one entry that is due at once."""
        placement = self.placement()
        return self.with_shards(placement, [placement.now_ms])

    def placed(self, news: Sequence[NewTask], *, is_throttled: bool = False) -> list[Task]:
        """The tasks as they are to be stored, at places that no other task can get."""
        placement = self.placement([new.due_ms for new in news], is_throttled=is_throttled)
        return [new.placed(placement, self.random_bytes()) for new in news]

    def addresses(self, instants_ms: Sequence[int], *, is_throttled: bool = False) -> list[Address]:
        """The addresses of entries that are written now for these instants."""
        placement = self.placement(instants_ms, is_throttled=is_throttled)
        return [placement.address(instant_ms, self.random_bytes()) for instant_ms in instants_ms]

    def put(self, home: Address, instant_ms: int) -> Address:
        """If the write succeeded and its answer was lost, the entry stays, and no home names it."""
        (entry,) = self.addresses([instant_ms])
        try:
            self.tasks.put_entry(entry, home)
        except Throttled:
            (entry,) = self.addresses([instant_ms], is_throttled=True)
            self.tasks.put_entry(entry, home)
        return entry

    def announce(self, entries: Iterable[Address], *, one_by_one: bool = False) -> None:
        """Send the notifiers the written entries that are direct: no read of a slice will see them.
        The entries are stored; if the queue refuses, the sweep delivers them, late."""
        direct = sorted((one for one in entries if one.direct), key=lambda entry: entry.place)
        if not direct:
            return
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
        """Until shortly before the first instant: a notifier that waits costs money."""
        first_ms = address_named(message.entries[0]).instant_ms
        return timing.delay_seconds(first_ms, self.clock.now_ms(), self.lead_ms)
