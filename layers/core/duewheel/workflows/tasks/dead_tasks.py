"""Dead tasks of a business with their causes, from the longest dead to the latest, a page a call.

The index says where to look, the records say what is true.
"""

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.tasks import dead_tasks
from duewheel.rules.tasks.dead_tasks import DeadRequest
from duewheel.rules.tasks.listing import PAYLOAD_BYTES_MAX
from duewheel.rules.tasks.task import Task
from duewheel.stores.dynamodb import READS_PER_BATCH
from duewheel.stores.tasks.indexes import DeadIndex
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.list_tasks import Page, current_tasks


class DeadTasks(Struct, frozen=True, kw_only=True):
    clock: Clock
    index: DeadIndex
    tasks: TaskStore
    secret: bytes

    def page(self, biz_type: str, query: DeadRequest) -> Page:
        """The next tasks that the filter takes, and the cursor behind them."""
        question = dead_tasks.question_of(biz_type, query.wanted)
        if query.cursor is None:
            stretch = dead_tasks.first_stretch(query.wanted, self.clock.now_ms())
        else:
            stretch = dead_tasks.stretch_of(query.cursor, query.wanted, question, self.secret)
        taken: list[Task] = []
        looked_at = payload_bytes = 0
        while True:
            some = self.index.first(biz_type, stretch, READS_PER_BATCH)
            found, goes_on = some.died, some.goes_on
            homes = [died.home for died in found]
            current = current_tasks(self.tasks, homes, self.clock.now_ms())
            for died in found:
                stretch = replace(stretch, low_ms=died.settled_ms, after=died)
                looked_at += 1
                task = current.get(died.home)
                if task is not None and query.wanted.takes(task):
                    taken.append(task)
                    payload_bytes += len((task.payload or "").encode())
                is_full = len(taken) == query.limit or payload_bytes > PAYLOAD_BYTES_MAX
                if is_full or looked_at == dead_tasks.LOOKED_AT_MAX:
                    if not goes_on and died == found[-1]:
                        return Page(taken, None)
                    return Page(taken, dead_tasks.cursor_at(stretch, question, self.secret))
            if not goes_on:
                return Page(taken, None)
