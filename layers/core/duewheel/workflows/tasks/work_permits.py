"""The permits of work that goes on after its call: taken when the call has ended, and given back
with the end of the work. Whatever ended it may have died before, or DynamoDB have refused the
write: tasks that wait give such permits back, and they expire when the work would have lapsed.

Work holds permits of the scopes that its call had some of, so a task without limits costs nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.delivery import permits as rules
from duewheel.rules.delivery.permits import Permits
from duewheel.rules.refusals import MalformedTaskId, UnreadableItem
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address, address_of_task
from duewheel.stores.businesses.permits import PermitStore
from duewheel.stores.dynamodb import is_of_aws
from duewheel.stores.tasks.tasks import TaskStore

LOOKED_AT_MAX = 10  # tasks at once; each wait for a permit looks at others


class WorkPermits(Struct, frozen=True):
    clock: Clock
    store: PermitStore
    tasks: TaskStore
    random_unit: Callable[[], float]

    def hold(self, task: Task) -> None:
        """Whatever ended the work before its permits were put found none to give back. If another
        report has moved the deadline meanwhile, its permits may have been put before these."""
        while task.running is not None and task.running.scopes:
            until_ms = task.running.until_ms
            held = partial(rules.held_by_work, task_id=task.task_id, until_ms=until_ms)
            for scope in task.running.scopes:
                with suppress(UnreadableItem):  # it is reported, and no call begins by it
                    self.store.change(scope, held)
            current = self.tasks.get(task.home)
            if current is None or current.running is None:
                self.give_back(task)
                return
            if current.running.until_ms == until_ms:
                return
            task = current

    def give_back(self, before: Task) -> None:
        """`before`: the task as it was while its receiver worked."""
        if before.running is None:
            return
        took_ms = max(0, self.clock.now_ms() - before.running.call.at_ms)
        back = partial(
            rules.given_back_by_work,
            task_id=before.task_id,
            took_ms=took_ms,
            until_ms=before.running.until_ms,
        )
        for scope in before.running.scopes:
            try:
                self.store.change(scope, back)
            except Exception as error:
                if not is_of_aws(error) and not isinstance(error, UnreadableItem):
                    raise
                logger.warning("permits not changed", action="permits-failed", error=str(error))

    def give_back_over(self, scope: str, seen: Permits) -> Permits:
        """Give back permits of work that has ended, of a few tasks that are chosen at random. A
        task runs before its work has permits, so one that does not run keeps none by right. Returns
        the record as it is then, or as it was seen if a request failed."""
        try:
            return self._given_back_over(scope, seen)
        except Exception as error:
            if not is_of_aws(error):
                raise
            logger.warning("permits not changed", action="permits-failed", error=str(error))
            return seen

    def _given_back_over(self, scope: str, seen: Permits) -> Permits:
        of_work = rules.work_in(seen)
        names = sorted(of_work)
        start = int(self.random_unit() * len(names))
        chosen = (names[start:] + names[:start])[:LOOKED_AT_MAX]
        tasks = self.tasks.get_many(_homes(chosen))
        over = {
            task.task_id: of_work[task.task_id]
            for task in tasks.values()
            if task.running is None or scope not in task.running.scopes
        }
        if not over:
            return seen
        after = self.store.change(scope, partial(rules.without_work, over=over))
        if given_back := sorted(over.keys() - rules.work_in(after).keys()):
            logger.info(
                "permits of ended work given back",
                action="work-permits-given-back",
                scope=scope,
                task_ids=given_back,
            )
        return after


def _homes(task_ids: list[str]) -> Iterator[Address]:
    """But for names that are damaged."""
    for task_id in task_ids:
        with suppress(MalformedTaskId):
            yield address_of_task(task_id)
