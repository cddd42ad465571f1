"""Check admission: whether the settings of a business allow a task that is about to be written.

The check is made at the write, not when the request is read: a repeat of the request finds the
tasks that were created, whatever the settings say by then.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from duewheel.metrics import CREATES_REFUSED, counts
from duewheel.rules.businesses.settings import Business
from duewheel.rules.refusals import Refusal, TooManyCreates
from duewheel.rules.tasks.effective_callback import check_callback
from duewheel.rules.tasks.task import NewTask, Task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.conditional_writes import unavailable_when_throttled
from duewheel.workflows.businesses.limit_create_rate import Allowed, LimitCreateRate


class Admission(Struct, frozen=True):
    known: BusinessCache
    limit_create_rate: LimitCreateRate

    def check_change(self, task: Task | NewTask) -> None:
        """Raise the refusal of a changed task, if there is one."""
        check_callback(task.callback, task.payload, self._businesses([task])[task.biz_type])

    def check_create(self, task: Task) -> None:
        """Raise the refusal of a new task, if there is one."""
        if (refusal := self.refusals([task])[0]) is not None:
            raise refusal

    def refusals(self, tasks: Sequence[Task]) -> list[Refusal | None]:
        """The refusals of new tasks, in order. The first tasks use up what the limit allows."""
        businesses = self._businesses(tasks)
        refusals = [_refusal(task, businesses[task.biz_type]) for task in tasks]
        wanted = Counter(
            task.biz_type for task, refusal in zip(tasks, refusals, strict=True) if refusal is None
        )
        allowed = {name: self._allowed(businesses[name], n) for name, n in wanted.items()}
        had: Counter[str] = Counter()
        for position, task in enumerate(tasks):
            if refusals[position] is None:
                had[task.biz_type] += 1
                if had[task.biz_type] > allowed[task.biz_type].count:
                    refusals[position] = TooManyCreates(allowed[task.biz_type].wait_ms)
                    counts.add(CREATES_REFUSED)
        return refusals

    def _allowed(self, business: Business, wanted: int) -> Allowed:
        with unavailable_when_throttled():
            return self.limit_create_rate(business, wanted)

    def _businesses(self, tasks: Iterable[Task | NewTask]) -> dict[str, Business]:
        with unavailable_when_throttled():
            return self.known.many({task.biz_type for task in tasks})


def _refusal(task: Task, business: Business) -> Refusal | None:
    try:
        check_callback(task.callback, task.payload, business)
    except Refusal as refusal:
        return refusal
    return None
