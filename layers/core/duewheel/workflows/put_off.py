"""Put tasks off to later instants: entries first, then each home names its own.

Whoever changes a task in between wins; the entry that was put for it then never fires.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.log import logger
from duewheel.metrics import counts
from duewheel.rules import settlement
from duewheel.rules.addresses import Address
from duewheel.rules.metric_lines import LIMITER_WAITS
from duewheel.rules.task import Promise, Task
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter

WRITERS = 16


class PutOff(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    reenter: Reenter
    writers: ThreadPoolExecutor

    def __call__(self, promised: Sequence[tuple[Task, Promise]]) -> None:
        """To the instants that their business's limit promises them."""
        now_ms = self.clock.now_ms()
        named = self.each([(task, settlement.put_off(task, to, now_ms)) for task, to in promised])
        counts.add(LIMITER_WAITS, sum(named))

    def each(self, changes: Sequence[tuple[Task, Task]]) -> list[bool]:
        """Every task becomes the one beside it, and gets an entry at its instant; whether it
        did, for nobody was faster."""
        entries = self.reenter.addresses([after.next_ms for _, after in changes])
        homes = [before.home for before, _ in changes]
        self.tasks.put_entries(list(zip(entries, homes, strict=True)))
        named = fan_out(self.writers, self._name, changes, entries)
        self.reenter.announce([e for e, is_named in zip(entries, named, strict=True) if is_named])
        return named

    def _name(self, change: tuple[Task, Task], entry: Address) -> bool:
        before, after = change
        if self.tasks.change(before, replace(after, entry=entry)):
            return True
        logger.info(
            "task changed meanwhile",
            action="lost-race",
            task_id=before.task_id,
            biz_type=before.biz_type,
        )
        return False
