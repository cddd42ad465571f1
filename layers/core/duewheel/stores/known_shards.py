"""How many shards seconds have, as a process knows it without asking for every entry.

What is known may be less than there are, never more: entries are put where readers look.
"""

from collections.abc import Iterable, Mapping

from duewheel.clock import Clock

_SECONDS_MAX = 10_000


class KnownShards:
    """Of seconds with more than one. What has passed is forgotten when room is needed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shards: dict[int, int] = {}

    def of(self, seconds: Iterable[int]) -> dict[int, int]:
        return {second: self._shards[second] for second in seconds if second in self._shards}

    def keep(self, shards: Mapping[int, int]) -> None:
        for second, number in shards.items():
            if number > self._shards.get(second, 1):
                self._shards[second] = number
        if len(self._shards) > _SECONDS_MAX:
            now = self._clock.now_ms() // 1000
            ahead = [(second, n) for second, n in self._shards.items() if second >= now]
            self._shards = dict(ahead[-_SECONDS_MAX // 2 :])
