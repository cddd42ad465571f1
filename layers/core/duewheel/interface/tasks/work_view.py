"""What a receiver is told that reported on its work: no more of the task than this."""

from typing import Annotated

from msgspec import Struct

from duewheel.rules.fields import Instant, says
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Status, Task


class WorkView(Struct, kw_only=True):
    task_id: str
    status: Status
    until: (
        Annotated[Instant, says("When the work has to have ended; null if it goes on no more.")]
        | None
    )
    next_at: Annotated[Instant, says("Of the next attempt; null if there is none.")] | None


def work_view(task: Task) -> WorkView:
    running = task.running
    has_next = task.is_live and running is None
    return WorkView(
        task_id=task.task_id,
        status=task.status,
        until=None if running is None else rfc3339(running.until_ms),
        next_at=rfc3339(task.next_ms) if has_next else None,
    )
