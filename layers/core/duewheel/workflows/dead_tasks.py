"""Dead tasks of a business: list them with their causes, or redrive those that are meant.

Both go from the longest dead to the latest, a page a call. The index says where to look, the
records say what is true.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules import dead, settlement
from duewheel.rules.dead import DeadRequest, Died
from duewheel.rules.listing import PAYLOAD_BYTES_MAX
from duewheel.rules.refusals import NotRedrivable, Refusal, Unavailable, UnknownTask
from duewheel.rules.task import Task
from duewheel.stores.conditions import Throttled
from duewheel.stores.dead_index import DeadIndex
from duewheel.stores.tasks import TaskStore
from duewheel.stores.unprocessed import READS_PER_BATCH
from duewheel.workflows.list_tasks import Page
from duewheel.workflows.redrive import RedriveTask


class Redriven(Struct, frozen=True):
    """What a page of redrives came to."""

    redriven: int
    refused: list[tuple[str, Refusal]]
    cursor: str | None


class DeadTasks(Struct, frozen=True):
    clock: Clock
    index: DeadIndex
    tasks: TaskStore
    redrive_task: RedriveTask
    secret: bytes

    def page(self, biz_type: str, asked: DeadRequest) -> Page:
        return Page(*self._next("dead", biz_type, asked, asked.limit))

    def redrive(self, biz_type: str, asked: DeadRequest) -> Redriven:
        """Call again with the cursor until none comes."""
        tasks, cursor = self._next("redrive", biz_type, asked, dead.REDRIVEN_MAX)
        refused = [
            (task.task_id, refusal)
            for task in tasks
            if (refusal := self._refusal(task)) is not None
        ]
        return Redriven(len(tasks) - len(refused), refused, cursor)

    def _refusal(self, task: Task) -> Refusal | None:
        try:
            self.redrive_task.at(task.home)
        except (NotRedrivable, UnknownTask) as refusal:
            return refusal
        return None

    def _next(
        self, call: str, biz_type: str, asked: DeadRequest, limit: int
    ) -> tuple[list[Task], str | None]:
        """The next tasks that are meant, and the cursor behind them."""
        question = dead.question_of(call, biz_type, asked.wanted)
        if asked.cursor is None:
            stretch = dead.first_stretch(asked.wanted, self.clock.now_ms())
        else:
            stretch = dead.stretch_of(asked.cursor, asked.wanted, question, self.secret)
        taken: list[Task] = []
        looked_at = payload_bytes = 0
        while True:
            some = self.index.first(biz_type, stretch, READS_PER_BATCH)
            found, goes_on = some.died, some.goes_on
            current = self._current(found)
            for died in found:
                stretch = replace(stretch, low_ms=died.settled_ms, after=died)
                looked_at += 1
                task = current.get(died.home)
                if task is not None and asked.wanted.takes(task):
                    taken.append(task)
                    payload_bytes += len((task.payload or "").encode())
                is_full = len(taken) == limit or payload_bytes > PAYLOAD_BYTES_MAX
                if is_full or looked_at == dead.LOOKED_AT_MAX:
                    if not goes_on and died == found[-1]:
                        return taken, None
                    return taken, dead.cursor_at(stretch, question, self.secret)
            if not goes_on:
                return taken, None

    def _current(self, found: Sequence[Died]) -> dict[object, Task]:
        try:
            tasks = self.tasks.get_many(died.home for died in found)
        except Throttled as throttled:
            raise Unavailable("Too many reads at once. Try it again.") from throttled
        now_ms = self.clock.now_ms()
        return {home: one for home, one in tasks.items() if not settlement.is_gone(one, now_ms)}
