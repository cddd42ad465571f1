"""Create the tasks of one request: place them, store them, announce those that are near.

Tasks without keys are stored by BatchWriteItem, or by one write if there is one; each keyed task by
its own writes. A task that DynamoDB throttles is placed again, once.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from duewheel.fan_out import fan_out
from duewheel.metrics import CREATED, counts
from duewheel.rules.refusals import Refusal, TooManyWrites, Unavailable
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.stores.dynamodb import Throttled, is_for_load
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.check_admission import Admission
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.keyed_tasks import KeyedTasks
from duewheel.workflows.tasks.write_entries import EntryWriter

KEYED_AT_ONCE = 16


class CreateTasks(Struct, frozen=True, kw_only=True):
    tasks: TaskStore
    entry_writer: EntryWriter
    admission: Admission
    keyed: KeyedTasks
    keep_order: KeepOrder
    keyed_writers: ThreadPoolExecutor

    def __call__(self, requested: Sequence[NewTask | Refusal]) -> list[Made | Refusal]:
        """Answers per task, in order; a task that was refused before stays refused."""
        news = [new for new in requested if isinstance(new, NewTask)]
        stored = iter(self._placed_and_stored(news))
        return [next(stored) if isinstance(new, NewTask) else new for new in requested]

    def store(self, tasks: Sequence[Task]) -> list[Made | Refusal]:
        """Answers per placed task, in order."""
        if not tasks:
            return []
        if len(tasks) == 1:
            return [self._one(tasks[0])]
        plain = iter(self._many([task for task in tasks if task.key is None]))
        keyed = [task for task in tasks if task.key is not None]
        made = iter(fan_out(self.keyed_writers, self._one, keyed))
        return [next(plain) if task.key is None else next(made) for task in tasks]

    def _placed_and_stored(self, news: Sequence[NewTask]) -> list[Made | Refusal]:
        tolerances = self.admission.tolerances(new.window for new in news)
        placed = self.entry_writer.placed(news, tolerances)
        results = self.store(placed)
        refused = [n for n, result in enumerate(results) if isinstance(result, TooManyWrites)]
        if not refused:
            return results
        try:
            # An earlier try of the same request may have been carried out: then it is the task.
            there = self.tasks.home_states(placed[n].home for n in refused)[0]
        except Throttled:
            return results
        made = [number for number in refused if placed[number].home in there]
        for number in made:
            results[number] = Made(placed[number])
        self.entry_writer.announce(placed[number].home for number in made)
        left = [number for number in refused if placed[number].home not in there]
        # Only now: an order item that is removed from a live task would let later ones pass it.
        self.keep_order.withdraw([placed[number] for number in left])
        try:
            again = self.entry_writer.placed(
                [news[number] for number in left], tolerances, is_throttled=True
            )
            stored = self.store(again)
        except Exception as error:  # the others exist, so the request is not refused as a whole
            if isinstance(error, Unavailable) or is_for_load(error):
                return results
            raise
        for number, result in zip(left, stored, strict=True):
            results[number] = result
        return results

    def _one(self, task: Task) -> Made | Refusal:
        try:
            if task.key is not None:
                return self.keyed.create(task)
            self.admission.check_create(task)
            if self.keep_order.reserve([task]):
                return TooManyWrites()
            self.tasks.create(task)
        except Refusal as refusal:
            return refusal
        except Exception as error:  # of one task; others of the request may exist
            if is_for_load(error):
                return TooManyWrites()
            raise
        counts.add(CREATED)
        self.entry_writer.announce([task.home])
        return Made(task)

    def _many(self, tasks: Sequence[Task]) -> list[Made | Refusal]:
        """A task that DynamoDB left unwritten was not created."""
        refusals = self.admission.refusals(tasks)
        admitted = [task for task, refusal in zip(tasks, refusals, strict=True) if refusal is None]
        unwritten = self.keep_order.reserve(admitted)
        unwritten |= self.tasks.create_many(
            [task for task in admitted if task.task_id not in unwritten]
        )
        counts.add(CREATED, len(admitted) - len(unwritten))
        self.entry_writer.announce(task.home for task in admitted if task.task_id not in unwritten)
        return [
            refusal or (TooManyWrites() if task.task_id in unwritten else Made(task))
            for task, refusal in zip(tasks, refusals, strict=True)
        ]
