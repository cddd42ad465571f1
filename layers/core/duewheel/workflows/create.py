"""Create tasks: place, then store. One write each, and a message for those that are near."""

from collections.abc import Sequence
from dataclasses import dataclass

from duewheel.rules.refusals import Refusal, Unavailable
from duewheel.rules.task import NewTask, Task
from duewheel.stores.conditions import Throttled
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.admit import Admit
from duewheel.workflows.reenter import Reenter

TOO_MANY_WRITES = "The task was not stored: too many writes at once. Try it again."


@dataclass(frozen=True, slots=True)
class CreateTasks:
    tasks: TaskStore
    reenter: Reenter
    admit: Admit

    def placed(self, new: NewTask) -> Task:
        """The task as it is to be stored, at a place that nobody else can take."""
        return self.reenter.placing().task(new, self.reenter.random_bytes())

    def one(self, task: Task) -> None:
        self.admit.created(task)
        try:
            self.tasks.create(task)
        except Throttled as throttled:
            raise Unavailable(TOO_MANY_WRITES) from throttled
        self.reenter.announce([task.home])

    def many(self, tasks: Sequence[Task]) -> list[Task | Refusal]:
        """Answers per task, in order. What DynamoDB left unwritten was not created."""
        refusals = self.admit.all_created(tasks)
        admitted = [task for task, refusal in zip(tasks, refusals, strict=True) if refusal is None]
        unwritten = self.tasks.create_many(admitted)
        self.reenter.announce(task.home for task in admitted if task.task_id not in unwritten)
        return [
            refusal or (Unavailable(TOO_MANY_WRITES) if task.task_id in unwritten else task)
            for task, refusal in zip(tasks, refusals, strict=True)
        ]
