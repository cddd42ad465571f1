"""Create the tasks of one request: place them, then store them.

Tasks without keys are stored by BatchWriteItem, each keyed task by a transaction. A task that
DynamoDB throttles is placed anew, once.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from duewheel.fan_out import fan_out
from duewheel.rules.refusals import Refusal, TooManyWrites, Unavailable
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.stores.conditional_writes import Throttled, is_for_load
from duewheel.workflows.tasks.create_tasks import CreateTasks
from duewheel.workflows.tasks.keyed_tasks import KeyedTasks

TRANSACTIONS_AT_ONCE = 16


class CreateBatch(Struct, frozen=True):
    create_tasks: CreateTasks
    keyed: KeyedTasks
    transactions: ThreadPoolExecutor

    def __call__(self, requested: Sequence[NewTask | Refusal]) -> list[Made | Refusal]:
        """Answers per task, in order; a task that was refused before stays refused."""
        news = [new for new in requested if isinstance(new, NewTask)]
        stored = iter(self._stored(news))
        return [next(stored) if isinstance(new, NewTask) else new for new in requested]

    def _stored(self, news: Sequence[NewTask]) -> list[Made | Refusal]:
        placed = self.create_tasks.all_placed(news)
        results = self.store(placed)
        refused = [n for n, result in enumerate(results) if isinstance(result, TooManyWrites)]
        try:
            # An earlier try of the same request may have been carried out: then it is the task.
            there = self.create_tasks.tasks.home_states(placed[n].home for n in refused)[0]
        except Throttled:
            return results
        for number in refused:
            if placed[number].home in there:
                results[number] = Made(placed[number])
        left = [number for number in refused if placed[number].home not in there]
        try:
            again = self.create_tasks.all_placed([news[number] for number in left], anew=True)
            stored = self.store(again)
        except Exception as error:  # the others are there, so not the whole is refused
            if isinstance(error, Unavailable) or is_for_load(error):
                return results
            raise
        for number, result in zip(left, stored, strict=True):
            results[number] = result
        return results

    def store(self, tasks: Sequence[Task]) -> list[Made | Refusal]:
        """Answers per task, in order."""
        if not tasks:
            return []
        if len(tasks) == 1:
            return [self._one(tasks[0])]
        plain = iter(self.create_tasks.many([task for task in tasks if task.key is None]))
        keyed = [task for task in tasks if task.key is not None]
        made = iter(fan_out(self.transactions, self._one, keyed))
        return [_made(next(plain)) if task.key is None else next(made) for task in tasks]

    def _one(self, task: Task) -> Made | Refusal:
        try:
            if task.key is not None:
                return self.keyed.create(task)
            self.create_tasks.one(task)
        except Refusal as refusal:
            return refusal
        except Exception as error:  # of one task, while others of the request may be there
            if is_for_load(error):
                return TooManyWrites()
            raise
        return Made(task)


def _made(result: Task | Refusal) -> Made | Refusal:
    return result if isinstance(result, Refusal) else Made(result)
