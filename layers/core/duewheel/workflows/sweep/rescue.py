"""Rescue tasks whose entries will not be delivered: give each a new entry ahead.

Tasks are taken block by block, and each block is announced before the next one is written: a
message that comes half a minute late is dropped, and its tasks would have to be rescued again.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.log import logger
from duewheel.rules.sweep.verdict import HomeState, SeenEntry
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import chunks
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.write_entries import EntryWriter

BLOCK = 100
WRITERS = 16
# A task that is so late was most likely rescued before, and its message dropped. It gets an entry
# in a slice: the message of a slice is never too late.
BY_A_SLICE_AFTER_MS = 300_000


class Rescue(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    entry_writer: EntryWriter
    writers: ThreadPoolExecutor

    def __call__(self, second: int, due: Sequence[SeenEntry], *, one_by_one: bool = False) -> bool:
        """False if a task was changed meanwhile. A task that cannot be read whole is skipped: it
        would fall due as unreadable again and again."""
        homes = [seen.home for seen in due if seen.home is not None]
        done = [self._block(second, block, one_by_one=one_by_one) for block in chunks(homes, BLOCK)]
        return all(done)

    def _block(self, second: int, homes: Sequence[HomeState], *, one_by_one: bool) -> bool:
        readable = self.tasks.get_many(home.home for home in homes)
        homes = [home for home in homes if home.home in readable]
        entries = self._entries(homes, one_by_one=one_by_one)
        self.tasks.put_entries([(e, h.home) for e, h in zip(entries, homes, strict=True)])
        named = fan_out(self.writers, self.tasks.name_entry, homes, entries)
        rescued = [(e, h) for e, h, is_named in zip(entries, homes, named, strict=True) if is_named]
        self.entry_writer.announce([entry for entry, _ in rescued], one_by_one=one_by_one)
        if rescued:  # counted by the alarm, so logged as an error at every log level
            logger.error(
                "tasks rescued",
                action="rescued",
                second=second,
                count=len(rescued),
                biz_types=sorted({home.biz_type for _, home in rescued}),
                task_ids=[home.home.task_id for _, home in rescued],
            )
        return all(named)

    def _entries(self, homes: Sequence[HomeState], *, one_by_one: bool) -> list[Address]:
        late_ms = self.clock.now_ms() - BY_A_SLICE_AFTER_MS
        instants = [home.next_ms for home in homes]
        if not one_by_one and min(instants, default=late_ms + 1) <= late_ms:
            in_slice_ms = self.entry_writer.placement().first_timely_ms()
            instants = [ms if ms > late_ms else in_slice_ms for ms in instants]
        return self.entry_writer.addresses(instants)
