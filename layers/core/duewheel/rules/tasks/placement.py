"""Placement: all that decides the address of an entry and of a new task, besides random bytes.

The same placement and the same bytes give the same address, in any process and at any time.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from duewheel.rules.tasks.task import NewTask, Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address, address_at
from duewheel.rules.wheel.sharding import shard_for


class Placement(Struct, frozen=True):
    """The clock and the time pointer when it was taken, how far ahead of them slices are read and
    dispatched, and the shards of seconds known to have more than one."""

    now_ms: int
    pointer_second: int
    lead_ms: int
    shards: Mapping[int, int] = field(default_factory=dict)
    ahead_ms: int = 0

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
        return timing.is_near(second, self.now_ms, self.pointer_second, self.lead_ms, self.ahead_ms)

    def first_timely_ms(self) -> int:
        """From here on entries fall due on time, even if writing them takes some time."""
        return timing.first_timely_ms(self.now_ms, self.lead_ms)

    def first_in_slice_ms(self) -> int:
        """From here on an entry is in a slice, and its message cannot come too late."""
        handed_over_ms = max(self.now_ms + self.ahead_ms, self.pointer_second * 1000)
        return timing.first_timely_ms(handed_over_ms, self.lead_ms)

    def task(self, new: NewTask, random_bytes: bytes, *, notice_of: str | None = None) -> Task:
        home = self.address(new.due_ms, random_bytes)
        return Task(
            home=home,
            entry=home,
            biz_type=new.biz_type,
            due_ms=new.due_ms,
            next_ms=new.due_ms,
            callback=new.callback,
            payload=new.payload,
            key=new.key,
            digest=new.digest,
            max_due_ms=new.max_due_ms,
            notice_of=notice_of,
            retry=new.retry,
            expires_after_seconds=new.expires_after_seconds,
            created_ms=self.now_ms,
            updated_ms=self.now_ms,
        )
