"""Admit: what the settings of a business let in, asked when a task is about to be written.

Not when the request is read: a repeat of it finds the tasks that were made, whatever the
business says by then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from duewheel.rules.business import Business
from duewheel.rules.callback_defaults import check_callback
from duewheel.rules.refusals import Refusal, Unavailable
from duewheel.rules.task import Callback, NewTask, Task
from duewheel.stores.conditions import Throttled
from duewheel.stores.known_businesses import KnownBusinesses


@dataclass(frozen=True, slots=True)
class Admit:
    known: KnownBusinesses

    def one(self, task: Task | NewTask) -> None:
        """Raise the refusal that this task meets, if any."""
        check_callback(task.callback, self._businesses([task])[task.biz_type])

    def many(self, tasks: Sequence[Task]) -> list[Refusal | None]:
        """The refusals of these tasks, in order."""
        businesses = self._businesses(tasks)
        return [_refusal(task.callback, businesses[task.biz_type]) for task in tasks]

    def _businesses(self, tasks: Iterable[Task | NewTask]) -> dict[str, Business]:
        try:
            return self.known.many({task.biz_type for task in tasks})
        except Throttled as throttled:
            raise Unavailable("Too many reads at once. Try it again.") from throttled


def _refusal(callback: Callback | None, business: Business) -> Refusal | None:
    try:
        check_callback(callback, business)
    except Refusal as refusal:
        return refusal
    return None
