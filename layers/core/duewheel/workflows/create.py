"""Create tasks: one write each, and a message for those that are near."""

from collections.abc import Sequence
from dataclasses import dataclass

from duewheel.clock import Clock
from duewheel.rules.refusals import Refusal, Unavailable
from duewheel.rules.task import NewTask, Task
from duewheel.stores.conditions import Throttled
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter

TOO_MANY_WRITES = "The task was not stored: too many writes at once. Try it again."


@dataclass(frozen=True, slots=True)
class CreateTasks:
    clock: Clock
    tasks: TaskStore
    reenter: Reenter

    def one(self, new: NewTask) -> Task:
        task = self.placed(new)
        try:
            self.tasks.create(task)
        except Throttled as throttled:
            raise Unavailable(TOO_MANY_WRITES) from throttled
        self.reenter.announce([task.home])
        return task

    def many(self, news: Sequence[NewTask]) -> list[Task | Refusal]:
        """Answers per task, in order. What DynamoDB left unwritten was not created."""
        placed = [self.placed(new) for new in news]
        unwritten = self.tasks.create_many(placed)
        self.reenter.announce(task.home for task in placed if task.task_id not in unwritten)
        return [
            Unavailable(TOO_MANY_WRITES) if task.task_id in unwritten else task for task in placed
        ]

    def placed(self, new: NewTask) -> Task:
        now_ms = self.clock.now_ms()
        home = self.reenter.address(new.due_ms)
        return Task(
            home=home,
            entry=home,
            biz_type=new.biz_type,
            due_ms=new.due_ms,
            next_ms=new.due_ms,
            callback=new.callback,
            payload=new.payload,
            key=new.key,
            digest=new.digest,
            max_due_ms=new.max_due_ms,
            retry=new.retry,
            expires_after_seconds=new.expires_after_seconds,
            created_ms=now_ms,
            updated_ms=now_ms,
        )
