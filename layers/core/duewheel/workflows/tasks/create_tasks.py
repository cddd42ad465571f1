"""Create tasks: place and store them, one write each, and announce those that are near."""

from collections.abc import Sequence

from msgspec import Struct

from duewheel.metrics import counts
from duewheel.rules.embedded_metrics import CREATED
from duewheel.rules.refusals import Refusal, TooManyWrites
from duewheel.rules.tasks.task import NewTask, Task
from duewheel.stores.conditional_writes import Throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.check_admission import Admission
from duewheel.workflows.tasks.write_entries import EntryWriter


class CreateTasks(Struct, frozen=True):
    tasks: TaskStore
    entry_writer: EntryWriter
    admission: Admission

    def placed(self, new: NewTask) -> Task:
        (task,) = self.all_placed([new])
        return task

    def all_placed(self, news: Sequence[NewTask], *, anew: bool = False) -> list[Task]:
        """The tasks as they are to be stored, at places that no other task can get. `anew`:
        DynamoDB throttled the first places."""
        place = self.entry_writer.crowded if anew else self.entry_writer.placing_of
        placing = place([new.due_ms for new in news])
        return [placing.task(new, self.entry_writer.random_bytes()) for new in news]

    def one(self, task: Task) -> None:
        self.admission.created(task)
        try:
            self.tasks.create(task)
        except Throttled as throttled:
            raise TooManyWrites from throttled
        counts.add(CREATED)
        self.entry_writer.announce([task.home])

    def many(self, tasks: Sequence[Task]) -> list[Task | Refusal]:
        """Answers per task, in order. A task that DynamoDB left unwritten was not created."""
        refusals = self.admission.all_created(tasks)
        admitted = [task for task, refusal in zip(tasks, refusals, strict=True) if refusal is None]
        unwritten = self.tasks.create_many(admitted)
        counts.add(CREATED, len(admitted) - len(unwritten))
        self.entry_writer.announce(task.home for task in admitted if task.task_id not in unwritten)
        return [
            refusal or (TooManyWrites() if task.task_id in unwritten else task)
            for task, refusal in zip(tasks, refusals, strict=True)
        ]
