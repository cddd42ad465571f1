"""Create a batch: what has no key goes by BatchWriteItem, each keyed task by its transaction."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from duewheel.rules.refusals import Refusal
from duewheel.rules.task import Made, NewTask, Task
from duewheel.workflows.create import CreateTasks
from duewheel.workflows.keyed import KeyedTasks

TRANSACTIONS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class CreateBatch:
    create_tasks: CreateTasks
    keyed: KeyedTasks
    transactions: ThreadPoolExecutor

    def __call__(self, news: Sequence[NewTask]) -> list[Made | Refusal]:
        """Answers per task, in order."""
        plain = iter(self.create_tasks.many([new for new in news if new.key is None]))
        keyed = self.transactions.map(self._keyed, [new for new in news if new.key is not None])
        return [_made(next(plain)) if new.key is None else next(keyed) for new in news]

    def _keyed(self, new: NewTask) -> Made | Refusal:
        try:
            return self.keyed.create(new)
        except Refusal as refusal:
            return refusal


def _made(result: Task | Refusal) -> Made | Refusal:
    return result if isinstance(result, Refusal) else Made(result)
