"""DynamoDB: the throughput of a partition key and of the table, and throttling.

A request for which there are too few units is refused, and retried as by the SDK and the stores.
"""

from collections.abc import Iterator
from itertools import count
from random import Random

from bench import limits
from bench.cloud.assumed import REQUEST, SDK_TRIES
from bench.cloud.loop import Loop, Story
from bench.cloud.rates import Bucket, TokenBucket, full
from duewheel.workflows.retry_throttled import TRY_MS_MAX, pause_ms


class GivenUp(Exception):
    """Throttled through all tries. In the service this raises, and the message comes back."""


class Table:
    def __init__(self, loop: Loop, random: Random, writes: Bucket, reads: Bucket) -> None:
        self._loop = loop
        self._random = random
        self._writes = writes
        self._reads = reads
        self._partition_writes: dict[str, TokenBucket] = {}
        self._partition_reads: dict[str, TokenBucket] = {}
        self.throttled = 0
        self.writes = 0  # requests, including refused ones
        self.written = 0.0
        self.read_units = 0.0

    def write(self, partition: str) -> Story[None]:
        """One small item."""
        yield from self._whole(self._of_partition(partition), self._writes, 1)
        self.written += 1

    def write_patiently(self, partition: str, deadline_ms: float) -> Story[None]:
        """Retries as workflows/retry_throttled.py does."""
        for tries in count():
            try:
                yield from self.write(partition)
                return
            except GivenUp:
                until_ms = self._after_a_pause(tries)
                if until_ms > deadline_ms - TRY_MS_MAX:
                    raise
                yield until_ms

    def write_surely(self, partition: str) -> Story[None]:
        """A write that is retried until it succeeds: the model does not follow its failure."""
        while True:
            try:
                yield from self.write(partition)
                return
            except GivenUp:
                continue

    def read(self, partition: str, units: float) -> Story[None]:
        if partition not in self._partition_reads:
            self._partition_reads[partition] = full(limits.PARTITION_READ_UNITS.value)
        yield from self._whole(self._partition_reads[partition], self._reads, units)
        self.read_units += units

    def write_batch(self, partition: str, items: int, deadline_ms: float) -> Story[int]:
        """Retries unprocessed items in the same way. Returns the number that is left at the end."""
        left = items
        for tries in count():
            taken = left
            while left and taken:  # after progress the rest is sent at once
                taken = yield from self._part(self._of_partition(partition), left)
                left -= taken
            until_ms = self._after_a_pause(tries)
            if not left or until_ms > deadline_ms - TRY_MS_MAX:
                break
            yield until_ms
        return left

    def _after_a_pause(self, tries: int) -> float:
        return self._loop.now_ms + pause_ms(tries, self._random.random())

    def _part(self, partition: TokenBucket, items: int) -> Story[int]:
        """As many as there are units for. If there are none, the SDK retries."""
        for wait_ms in self._waits_ms():
            now_ms = self._loop.now_ms
            self.writes += 1
            taken = int(min(items, partition.there(now_ms), self._writes.there(now_ms)))
            if taken:
                partition.take(now_ms, taken)
                self._writes.take(now_ms, taken)
                self.written += taken
                self.throttled += taken < items
                yield now_ms + REQUEST.drawn(self._random)
                return taken
            self.throttled += 1
            if wait_ms is not None:
                yield now_ms + wait_ms
        return 0

    def _whole(self, partition: TokenBucket, table: Bucket, units: float) -> Story[None]:
        for wait_ms in self._waits_ms():
            now_ms = self._loop.now_ms
            self.writes += table is self._writes
            if min(partition.there(now_ms), table.there(now_ms)) >= units:
                partition.take(now_ms, units)
                table.take(now_ms, units)
                yield now_ms + REQUEST.drawn(self._random)
                return
            self.throttled += 1
            if wait_ms is not None:
                yield now_ms + wait_ms
        raise GivenUp

    def _waits_ms(self) -> Iterator[float | None]:
        """The pauses of the SDK's standard mode: random, up to 1, 2, 4 s; none after the last
        try."""
        for number in range(SDK_TRIES - 1):
            yield self._random.random() * 1000 * 2**number
        yield None

    def _of_partition(self, partition: str) -> TokenBucket:
        if partition not in self._partition_writes:
            self._partition_writes[partition] = full(limits.PARTITION_WRITE_UNITS.value)
        return self._partition_writes[partition]
