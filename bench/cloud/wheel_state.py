"""The part of the wheel that delivery needs: entries by slice, leases by page."""

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.wheel import addresses, timing
from duewheel.rules.wheel.queue_messages import DirectMessage, PageMessage
from duewheel.rules.wheel.sharding import shard_for

BUCKETS = 10_000_000


@dataclass(slots=True)
class Entry:
    """`below`: how many classes below high priority."""

    due_ms: int
    below: int = 1
    attempts: int = 0
    is_called: bool = False
    is_settled: bool = False


@dataclass
class Writer:
    """A process that writes entries, and announces the pages of those that are in their slices, as
    workflows/tasks/write_entries.py does."""

    announced: dict[int, int] = field(default_factory=dict)  # first instants, by second

    def announce(self, instant_ms: int, now_ms: int, lead_ms: int) -> dict[PageMessage, int]:
        """The message, if one is needed, with the delay in milliseconds."""
        second, ahead_ms = instant_ms // 1000, timing.AHEAD_MS
        if not timing.is_near(second, now_ms, lead_ms, ahead_ms):
            return {}
        announced_ms = self.announced.get(second)
        if announced_ms is not None:
            if announced_ms <= instant_ms:
                return {}
            instant_ms = second * 1000
        self.announced[second] = instant_ms
        return {PageMessage(second, 0): 1000 * timing.delay_seconds(instant_ms - lead_ms, now_ms)}


@dataclass
class WheelState:
    random: Random
    shards: dict[int, int] = field(default_factory=dict)  # only of seconds with more than one
    slices: dict[tuple[int, int], list[Entry]] = field(default_factory=lambda: defaultdict(list))
    direct: dict[str, Entry] = field(default_factory=dict)  # by name
    passed_on: dict[str, tuple[list[Entry], int]] = field(default_factory=dict)  # with their shard
    leases: dict[tuple[int, int, str], PageLease] = field(default_factory=dict)
    slow: dict[tuple[int, int, str], list[Entry]] = field(default_factory=dict)  # by slow page

    def put(self, second: int, shards: int, entries: list[Entry]) -> None:
        """A second's tasks, spread over its shards as the service spreads them."""
        if shards > 1:
            self.shards[second] = shards
        for entry in sorted(entries, key=lambda entry: entry.due_ms):
            token = self.random.randbytes(addresses.TOKEN_BYTES)
            self.slices[second, shard_for(token, shards)].append(entry)

    def put_again(self, entry: Entry, next_ms: int, *, direct: bool) -> DirectMessage | None:
        """A retry's new entry; near ones are announced by a message of their own."""
        second = next_ms // 1000
        shards = self.shards.get(second, 1)
        token = self.random.randbytes(addresses.TOKEN_BYTES)
        shard = shard_for(token, shards)
        again = Entry(next_ms, below=entry.below, attempts=entry.attempts)
        if not direct:
            self.slices[second, shard].append(again)
            return None
        name = addresses.address_at(next_ms, token, shard=shard, direct=True).name
        self.direct[name] = again
        return DirectMessage(second, (name,))

    def rescue(self, entry: Entry, now_ms: int, shard: int) -> DirectMessage:
        """A new entry, due at once, of a task that is as late as before."""
        token = self.random.randbytes(addresses.TOKEN_BYTES)
        name = addresses.address_at(now_ms, token, shard=shard, direct=True).name
        self.direct[name] = entry
        return DirectMessage(now_ms // 1000, (name,))

    def pass_on(self, second: int, shard: int, called: list[Entry]) -> DirectMessage:
        """Records tasks that were called and still have to be settled, under a new name."""
        token = self.random.randbytes(addresses.TOKEN_BYTES)
        name = addresses.address_at(second * 1000, token, shard=shard, direct=True).name
        self.passed_on[name] = called, shard
        return DirectMessage(second, (name,))

    def is_occupied(self, second: int, shard: int) -> bool:
        return bool(self.slices.get((second, shard)))

    def first_ms(self, second: int) -> int:
        """The first instant, as a probe returns it."""
        if self.shards.get(second, 1) > 1 or not self.is_occupied(second, 0):
            return second * 1000
        return self.slices[second, 0][0].due_ms

    def page(self, second: int, shard: int, page: str, size: int) -> tuple[list[Entry], bool]:
        """The entries of one page, and whether the slice continues."""
        if (second, shard, page) in self.slow:
            return self.slow[second, shard, page], False
        entries = self.slices[second, shard]
        first = int(page) * size
        return entries[first : first + size], len(entries) > first + size

    def slot(self, second: int, shard: int) -> str:
        return addresses.slot(second, shard, BUCKETS)
