"""List and cancel the live tasks under a key prefix: no index, a page at a time, resumable."""

from typing import Annotated

from msgspec import Struct

from duewheel.rules import cursors
from duewheel.rules.access.grants import ANYTHING, Permit
from duewheel.rules.fields import Count, Cursor, says
from duewheel.rules.names import TaskKey
from duewheel.rules.refusals import AlreadySettled, TooLate, UnknownTask
from duewheel.rules.tasks.listing import Room, filled
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.tasks.keys import KeyStore
from duewheel.workflows.tasks.change_task import CancelTask
from duewheel.workflows.tasks.list_tasks import Page

KEYS_AT_ONCE = 100


class CancelledKeys(Struct, frozen=True):
    """The result of one page."""

    cancelled: Count
    too_late: Annotated[list[TaskKey], says("The keys past their cut-off.")]
    cursor: Cursor


class KeyPrefix(Struct, frozen=True):
    keys: KeyStore
    cancel_task: CancelTask
    secret: bytes

    def live(self, biz_type: str, prefix: str, cursor: str | None, limit: int) -> Page:
        """In the order of the keys. A page reads up to `limit` keys, also of ended tasks; fewer if
        the payloads fill an answer."""
        return Page(*self._page(biz_type, prefix, cursor, limit))

    def cancel(
        self, biz_type: str, prefix: str, cursor: str | None, permit: Permit = ANYTHING
    ) -> CancelledKeys:
        """Cancel the live tasks among the next keys; call again with the cursor until there is
        none."""
        tasks, following = self._page(biz_type, prefix, cursor, KEYS_AT_ONCE)
        outcomes = [(task, self._cancel(task, permit)) for task in tasks]
        too_late = [str(task.key) for task, outcome in outcomes if outcome is False]
        return CancelledKeys(sum(outcome is True for _, outcome in outcomes), too_late, following)

    def _cancel(self, task: Task, permit: Permit) -> bool | None:
        """None if the task ended by itself in between."""
        try:
            self.cancel_task.at(task.home, permit=permit)
        except TooLate:
            return False
        except (AlreadySettled, UnknownTask):
            return None
        return True

    def _page(
        self, biz_type: str, prefix: str, cursor: str | None, limit: int
    ) -> tuple[list[Task], str | None]:
        question = ("keys", biz_type, prefix)
        after = cursors.opened(cursor, question, self.secret)
        named, goes_on = self.keys.with_prefix(biz_type, prefix, after, limit)
        tasks = self.keys.tasks.get_many(home for _, home in named if home is not None)

        def find(one: tuple[str, Address | None]) -> Task | None:
            task = None if one[1] is None else tasks.get(one[1])
            return task if task is not None and task.is_live else None

        live, last = filled(
            named, find, lambda task: task.payload, lambda one: one[0], Room(limit), goes_on=goes_on
        )
        return live, cursors.sealed(last, question, self.secret)
