"""Provisioned units of a table or an index: a rate, the unused units of minutes, and auto scaling.

Unfavourable cases: the unused units are those of the last five minutes under the earlier load, and
a table has only the partitions that its units need.
"""

import math
from dataclasses import dataclass, field

from bench import limits
from bench.cloud.rates import TokenBucket, full

MINUTE_MS = 60_000
USE_AIMED_AT = 0.7  # template.yaml
SCALED_AFTER_MS = 120_000  # from the alarm: it is late, and an update of the table takes a while


@dataclass
class ScaledUnits:
    """Units a second, from `least` to `most`, by what was consumed in each minute."""

    least: float
    most: float
    load: float = 0  # units a second in use before
    of_partition: float = limits.PARTITION_WRITE_UNITS.value
    consumed: float = 0  # in this minute
    minute: int | None = None
    minutes_above: int = 0
    next_units: float | None = None
    next_ms: float = 0
    units: float = field(init=False)

    def __post_init__(self) -> None:
        self.units = self.least
        self._buckets = self._new_buckets(limits.BURST_SECONDS.value * (self.least - self.load))

    def take(self, now_ms: float, most: float) -> float:
        taken = min(most, self.there(now_ms))
        for bucket in self._buckets:
            bucket.take(now_ms, taken)
        self.consumed += taken
        return taken

    def there(self, now_ms: float) -> float:
        self._end_minutes(now_ms)
        return min(bucket.there(now_ms) for bucket in self._buckets)

    def _new_buckets(self, unused: float, now_ms: float = 0) -> tuple[TokenBucket, TokenBucket]:
        """Of the provisioned units, and of the partitions."""
        holds = limits.BURST_SECONDS.value * self.units
        partitions = full(self.of_partition * math.ceil(self.units / self.of_partition))
        partitions.filled_ms = now_ms
        return TokenBucket(self.units, holds, min(holds, unused), now_ms), partitions

    def _end_minutes(self, now_ms: float) -> None:
        minute = int(now_ms // MINUTE_MS)
        if self.minute is None:
            self.minute = minute
            self._buckets = self._new_buckets(self._buckets[0].tokens, now_ms)
        while self.minute < minute:
            self._end_minute((self.minute + 1) * MINUTE_MS)
            self.minute += 1
        if self.next_units is not None and now_ms >= self.next_ms:
            unused = self._buckets[0].there(self.next_ms)
            self.units, self.next_units, self.minutes_above = self.next_units, None, 0
            self._buckets = self._new_buckets(unused, self.next_ms)

    def _end_minute(self, end_ms: float) -> None:
        """The model does not reduce units: AWS does after 15 minutes."""
        used = self.consumed / 60
        self.consumed = 0
        self.minutes_above = self.minutes_above + 1 if used > USE_AIMED_AT * self.units else 0
        if self.minutes_above >= limits.SCALING_MINUTES.value and self.next_units is None:
            wanted = min(self.most, used / USE_AIMED_AT)
            if wanted > self.units:
                self.next_units, self.next_ms = wanted, end_ms + SCALED_AFTER_MS
