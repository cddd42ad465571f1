"""Let tasks that the slow lane has not got to come up again later: entries first, then each home
names its own.

The page they were passed in is closed before that, on condition that nobody has begun it; whoever
meets its message afterwards drops it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.addresses import Address
from duewheel.rules.lane_wait import come_up_again, comes_up_again_ms
from duewheel.rules.page_lease import PageLease
from duewheel.stores.pages import PageStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter


@dataclass(frozen=True, slots=True)
class ComeUpAgain:
    clock: Clock
    tasks: TaskStore
    pages: PageStore
    reenter: Reenter

    def __call__(self, page: PageLease, homes: Sequence[Address]) -> bool:
        """False when somebody has begun the page, or changed a task: look again."""
        if not self.pages.close_unbegun(page, self.clock.now_ms()):
            return False
        tasks = list(self.tasks.get_many(homes).values())
        instants_ms = [comes_up_again_ms(task, self.clock.now_ms()) for task in tasks]
        entries = [self.reenter.address(instant_ms) for instant_ms in instants_ms]
        self.tasks.put_entries(
            [(entry, task.home) for entry, task in zip(entries, tasks, strict=True)]
        )
        named = []
        for task, instant_ms, entry in zip(tasks, instants_ms, entries, strict=True):
            if self.tasks.change(task, come_up_again(task, instant_ms, entry, self.clock.now_ms())):
                named.append(entry)
        self.reenter.announce(named)
        logger.warning(
            "the slow lane has not got to a page",
            action="slow-late",
            second=page.second,
            page=page.page,
            count=len(named),
        )
        return len(named) == len(tasks)
