"""Sharding of crowded seconds: how many entries a second is estimated to hold, how many shards it
gets, and where an entry is placed.

A second begins with one shard; their number only rises, each time to a power of two. So an entry
is found wherever it was put, by a reader of as many shards as the header says.

The load estimate is kept with few writes. A single entry is counted with probability 1/64 and then
counts as 64. Entries that are written together and fall into the same minute are counted with a
probability that grows with their number, each weighted so that the expectation is right; from 64 on
they are counted exactly.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2s

from msgspec import Struct, field

from duewheel.rules.tolerance import Window, shared_ms, spread_ms
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import SHARDS_MAX, Address, address_at

# One partition takes 1,000 writes a second, and an entry costs one when it is settled. Shards that
# grew while entries came hold unequal parts: with 2^k of them the first has this times 1 + k/2.
SLICE_ENTRIES = 250
LOOKED_AT_ONE_IN = 16
SAMPLED_ONE_IN = 64
FORECAST_MINUTES = 60
FORECAST_TOLD_MIN = 10 * SAMPLED_ONE_IN  # of less, ten samples or fewer say nothing


def shards_for(expected: float) -> int:
    """The number of shards at which none is expected to have more entries than a slice should."""
    shards = 1
    while shards * SLICE_ENTRIES < expected and shards < SHARDS_MAX:
        shards *= 2
    return shards


def shard_for(random_bytes: bytes, shards: int) -> int:
    """By a hash, so that the choice of the bytes does not matter."""
    if shards == 1:
        return 0
    digest = blake2s(random_bytes, digest_size=4, person=b"shard").digest()
    return int.from_bytes(digest, "big") % shards


def is_looked_at(entries: int, random_unit: Callable[[], float]) -> bool:
    """Whether to read the header of an unknown second for this number of entries."""
    return random_unit() < entries / LOOKED_AT_ONE_IN


class Placement(Struct, frozen=True, kw_only=True, array_like=True):
    """A snapshot: the clock, how far ahead of it slices are read, the shards of seconds known to
    have more than one, and the tolerances of businesses that have one. An idempotency record keeps
    it, as this array."""

    now_ms: int
    lead_ms: int
    shards: Mapping[int, int] = field(default_factory=dict)
    tolerances: Mapping[str, int] = field(default_factory=dict)

    def due_ms(self, window: Window, random_bytes: bytes) -> int:
        """The instant that a task with this window gets: its shared second, or another one if that
        is crowded."""
        tolerance = self.tolerance_seconds(window)
        if not tolerance:
            return window.due_ms
        shards = self.shards.get(self.shared_second(window), 1)
        if shards == 1:
            return shared_ms(window, tolerance)
        return spread_ms(window, tolerance, shards, random_bytes)

    def shared_second(self, window: Window) -> int:
        tolerance = self.tolerance_seconds(window)
        return self.second(shared_ms(window, tolerance) if tolerance else window.due_ms)

    def tolerance_seconds(self, window: Window) -> int:
        if window.tolerance_seconds is not None:
            return window.tolerance_seconds
        return self.tolerances.get(window.biz_type, 0)

    def address(self, instant_ms: int, random_bytes: bytes) -> Address:
        """The address of an entry that is written now for this instant."""
        placed_ms = timing.placed_ms(instant_ms, self.now_ms)
        second = placed_ms // 1000
        shard = shard_for(random_bytes, self.shards.get(second, 1))
        return address_at(placed_ms, random_bytes, shard=shard, direct=self.is_near(second))

    def second(self, instant_ms: int) -> int:
        """The second of an entry for this instant."""
        return timing.placed_ms(instant_ms, self.now_ms) // 1000

    def is_near(self, second: int) -> bool:
        return timing.is_near(second, self.now_ms, self.lead_ms)

    def first_timely_ms(self) -> int:
        """From here on entries are in slices and fall due on time, even if writing them takes some
        time."""
        return timing.first_timely_ms(self.now_ms, self.lead_ms)


class MinuteLoad(Struct, frozen=True):
    minute: int  # since the epoch
    by_second: dict[int, float]  # second within the minute: entries expected

    @property
    def entries(self) -> float:
        return sum(self.by_second.values())

    def after(self, now_second: int) -> "MinuteLoad":
        """The same without the seconds that have begun."""
        ahead = {s: n for s, n in self.by_second.items() if self.minute * 60 + s > now_second}
        return MinuteLoad(self.minute, ahead)


def sampled(seconds: Iterable[int], random_unit: Callable[[], float]) -> list[MinuteLoad]:
    """What to count for entries in these seconds: often nothing."""
    by_minute: dict[int, Counter[int]] = {}
    for second in seconds:
        by_minute.setdefault(second // 60, Counter())[second % 60] += 1
    noted = []
    for minute, counts in by_minute.items():
        probability = min(1.0, counts.total() / SAMPLED_ONE_IN)
        if random_unit() < probability:
            weighed = {second: round(n / probability, 2) for second, n in counts.items()}
            noted.append(MinuteLoad(minute, weighed))
    return noted
