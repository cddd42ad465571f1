"""The permits of work that goes on after its call: taken when the call has ended, and given back
with the end of the work. One that is not given back expires when the work lapses.

Work holds permits of the scopes that its call had some of, so a task without limits costs nothing.
"""

from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.delivery import permits as rules
from duewheel.rules.tasks.task import Task
from duewheel.stores.businesses.permits import PermitStore
from duewheel.stores.dynamodb import is_of_aws
from duewheel.stores.tasks.tasks import TaskStore


class WorkPermits(Struct, frozen=True):
    clock: Clock
    store: PermitStore
    tasks: TaskStore

    def hold(self, task: Task) -> None:
        """Whatever ended the work before its permits were put found none to give back."""
        if task.running is None or not task.running.scopes:
            return
        held = partial(rules.held_by_work, task_id=task.task_id, until_ms=task.running.until_ms)
        for scope in task.running.scopes:
            self.store.change(scope, held)
        current = self.tasks.get(task.home)
        if current is None or current.running is None:
            self.give_back(task)

    def give_back(self, before: Task) -> None:
        """`before`: the task as it was while its receiver worked."""
        if before.running is None:
            return
        took_ms = max(0, self.clock.now_ms() - before.running.call.at_ms)
        back = partial(rules.given_back_by_work, task_id=before.task_id, took_ms=took_ms)
        for scope in before.running.scopes:
            try:
                self.store.change(scope, back)
            except Exception as error:
                if not is_of_aws(error):
                    raise
                logger.warning("permits not changed", action="permits-failed", error=str(error))
