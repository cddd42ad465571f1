"""Reserve shards: how many shards seconds have, before entries are written there.

The planned writes are added to the load estimate of their seconds first; the answer says how many
entries each second is expected to hold. A shard is used only after the header that announces it was
written.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct

from duewheel.rules.wheel.load_estimate import sampled
from duewheel.rules.wheel.sharding import is_looked_at, shards_for, widened
from duewheel.stores.wheel.headers import HeaderStore, ShardsCache
from duewheel.stores.wheel.load_estimates import LoadStore


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
        self.known.keep(self.headers.read(unknown))
        for second in expected.keys() & entries.keys():
            self._raise(second, shards_for(expected[second]))
        return self.known.of(entries)

    def crowded(self, seconds: Iterable[int]) -> dict[int, int]:
        """The same for seconds in which DynamoDB throttled a write. If no crowd was known there,
        there is one now."""
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
