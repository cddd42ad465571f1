"""The load estimate: how many entries coming seconds hold, kept with few writes.

A single entry is counted with probability 1/64 and then counts as 64. Entries that are written
together and fall into the same minute are counted with a probability that grows with their number,
each weighted so that the expectation is right; from 64 on they are counted exactly.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct

SAMPLED_ONE_IN = 64
FORECAST_MINUTES = 60


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
