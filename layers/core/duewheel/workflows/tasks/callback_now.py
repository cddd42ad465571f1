"""The callback of a task as a call would have it now: a run takes it from its timer, and the
business fills in what it leaves out.

That is one read of the settings, unless they were read within seconds, and one of the timer of a
run. A notice takes no defaults.
"""

from collections.abc import Callable

from msgspec import UNSET, Struct, UnsetType

from duewheel.log import logger
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.tasks.effective_callback import completed, whole
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers.timer import Timer
from duewheel.stores.businesses.cache import BusinessCache

AsCalled = Callable[[Task], tuple[Task, Timer | None]]  # a run with what its timer says


class CallbackNow(Struct, frozen=True):
    known: BusinessCache
    as_called: AsCalled

    def __call__(self, task: Task) -> Callback | UnsetType | None:
        """None if nothing says where to call; unset if it cannot be read, or the timer is gone."""
        try:
            business = self.known.one(task.biz_type)
            filled, timer = self.as_called(task)
        except Exception:  # noqa: BLE001 - logged; the task itself was read
            logger.exception("callback not read", action="why-unknown", task_id=task.task_id)
            return UNSET
        if business.damaged is not None or (task.occurrence is not None and timer is None):
            return UNSET
        is_notice = task.notice_of is not None
        return whole(filled.callback) if is_notice else completed(filled.callback, business)
