"""Creates, a tenth of a second's at a time: each takes a unit of the table and one of the list
index. A refused one is repeated by its caller until it is accepted."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.cloud.loop import Loop, Story
from bench.cloud.rates import Bucket

_STEP_MS = 100


@dataclass
class Creates:
    loop: Loop
    writes: Bucket
    list_writes: Bucket
    by_second: Mapping[int, int]
    refused: int = 0  # that were answered 503 at least once
    waited_most_ms: float = 0
    _waiting: deque[list[float]] = field(default_factory=deque)  # instant, number

    def run(self) -> Story[None]:
        now_ms, last_ms = min(self.by_second) * 1000, max(self.by_second) * 1000 + 1000
        owed = 0.0
        while now_ms < last_ms or self._waiting:
            yield float(now_ms)
            owed += self.by_second.get(now_ms // 1000, 0) * _STEP_MS / 1000
            new, owed = int(owed), owed - int(owed)
            self._repeat(now_ms)
            left = new - (0 if self._waiting else self._take(now_ms, new))
            if left:
                self.refused += left
                self._waiting.append([now_ms, left])
            now_ms += _STEP_MS

    def _repeat(self, now_ms: float) -> None:
        while self._waiting:
            since_ms, number = self._waiting[0]
            taken = self._take(now_ms, int(number))
            if taken:
                self.waited_most_ms = max(self.waited_most_ms, now_ms - since_ms)
            if taken < number:
                self._waiting[0][1] -= taken
                return
            self._waiting.popleft()

    def _take(self, now_ms: float, most: int) -> int:
        there = min(self.writes.there(now_ms), self.list_writes.there(now_ms))
        taken = int(min(most, there))
        self.writes.take(now_ms, taken)
        self.list_writes.take(now_ms, taken)
        return taken
