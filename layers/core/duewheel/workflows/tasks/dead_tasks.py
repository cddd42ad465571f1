"""Dead tasks: list those of a business with their causes; redrive them, or one by its id.

Lists and redrives go from the longest dead to the latest, a page a call. The index says where to
look, the records say what is true.
"""

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.access.grants import ANYTHING, Permit
from duewheel.rules.refusals import NotRedrivable, Refusal, UnknownTask, no_such_task
from duewheel.rules.tasks import dead_tasks, lifecycle
from duewheel.rules.tasks.dead_tasks import DeadRequest
from duewheel.rules.tasks.listing import PAYLOAD_BYTES_MAX
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import Address, address_of_task
from duewheel.stores.dynamodb import READS_PER_BATCH, unavailable_when_throttled
from duewheel.stores.tasks.indexes import DeadIndex
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.list_tasks import Page, current_tasks
from duewheel.workflows.tasks.write_entries import EntryWriter


class RedriveTask(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    keep_order: KeepOrder
    entry_writer: EntryWriter

    def __call__(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        return self.at(address_of_task(task_id), permit)

    def at(self, home: Address, permit: Permit = ANYTHING) -> Task:
        now_ms = self.clock.now_ms()
        task = self.tasks.get(home)
        if task is None or task.is_internal or lifecycle.is_gone(task, now_ms):
            raise no_such_task()
        permit.check_found(task.biz_type, no_such_task())
        if task.status is not Status.DEAD:
            raise NotRedrivable(
                f"Only a dead task can be redriven; this one is {task.status.value}."
            )
        if lifecycle.is_about_to_go(task, now_ms):
            # TTL may delete the record at any moment, even after a write to it.
            raise NotRedrivable("The task is about to be deleted; create it again.")
        entry = self.entry_writer.put(task, now_ms)
        redriven = lifecycle.redriven(task, entry, now_ms)
        with unavailable_when_throttled():
            self.keep_order.prepare(task, redriven)
            is_back = self._bring_back(task, redriven)
        self.keep_order.conclude(task, redriven, is_written=is_back)
        if not is_back:
            raise NotRedrivable(
                "The task has just been changed by another, or its key names another task."
            )
        self.entry_writer.announce([entry])
        return redriven

    def _bring_back(self, dead: Task, redriven: Task) -> bool:
        if dead.key is None:
            return self.tasks.change(dead, redriven)
        if self.keys.redrive(dead, redriven):
            return True
        named = self.keys.read(dead.biz_type, dead.key)
        if named is None or named.home == dead.home or self.tasks.get(named.home) is not None:
            return False
        # Claimed, by a creator who crashed or is slower; or its task has been deleted since.
        return self.tasks.bury(named.home) and self.keys.redrive(dead, redriven, named.home)


class Redriven(Struct, frozen=True):
    """The result of a page of redrives."""

    redriven: int
    refused: list[tuple[str, Refusal]]
    cursor: str | None


class DeadTasks(Struct, frozen=True, kw_only=True):
    clock: Clock
    index: DeadIndex
    tasks: TaskStore
    redrive_task: RedriveTask
    secret: bytes

    def page(self, biz_type: str, query: DeadRequest) -> Page:
        return Page(*self._next("dead", biz_type, query, query.limit))

    def redrive(self, biz_type: str, query: DeadRequest) -> Redriven:
        """Call again with the cursor until none comes."""
        tasks, cursor = self._next("redrive", biz_type, query, dead_tasks.REDRIVEN_MAX)
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
        self, call: str, biz_type: str, query: DeadRequest, limit: int
    ) -> tuple[list[Task], str | None]:
        """The next tasks that the filter takes, and the cursor behind them."""
        question = dead_tasks.question_of(call, biz_type, query.wanted)
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
                is_full = len(taken) == limit or payload_bytes > PAYLOAD_BYTES_MAX
                if is_full or looked_at == dead_tasks.LOOKED_AT_MAX:
                    if not goes_on and died == found[-1]:
                        return taken, None
                    return taken, dead_tasks.cursor_at(stretch, question, self.secret)
            if not goes_on:
                return taken, None
