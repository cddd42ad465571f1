"""Let tasks that the slow lane has not got to come up again later.

The page they were passed in is closed before that, on condition that nobody has begun it; whoever
meets its message afterwards drops it.
"""

from collections.abc import Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.lane_wait import come_up_again
from duewheel.rules.page_lease import PageLease
from duewheel.rules.sweep_verdict import HomeState
from duewheel.stores.pages import PageStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.put_off import PutOff


class ComeUpAgain(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    pages: PageStore
    put_off: PutOff

    def __call__(self, page: PageLease, homes: Sequence[HomeState]) -> bool:
        """False when somebody has begun the page, or changed a task since it was judged: look
        again. One that cannot be read whole is passed, as everywhere in the sweep."""
        now_ms = self.clock.now_ms()
        if not self.pages.close_unbegun(page, now_ms):
            return False
        read = self.tasks.get_many(home.home for home in homes)
        found = [(read[home.home], home) for home in homes if home.home in read]
        judged = [task for task, home in found if task.version == home.version]
        done = self.put_off.each([(task, come_up_again(task, now_ms)) for task in judged])
        logger.warning(
            "the slow lane has not got to a page",
            action="slow-late",
            second=page.second,
            page=page.page,
            count=sum(done),
        )
        return all(done) and len(judged) == len(found)
