"""Delete the settings of a business that has no timers and no pending tasks.

Timers are deleted first, so that they produce no more tasks. Both are read from lists, a page in
each call. The call that reaches the end of the lists deletes the settings; a page on which a task
could not be cancelled is read again.
"""

from typing import Annotated

from msgspec import Struct

from duewheel.rules import cursors
from duewheel.rules.businesses.requests import DeleteQuery
from duewheel.rules.businesses.settings import Business
from duewheel.rules.fields import Count, Cursor, says
from duewheel.rules.preconditions import Precondition
from duewheel.rules.query_string import LIMIT_MAX
from duewheel.rules.refusals import (
    AlreadySettled,
    HasTimers,
    TasksPending,
    TooLate,
    UnknownBusiness,
    UnknownTask,
    UnknownTimer,
    VersionMismatch,
)
from duewheel.rules.tasks.listing import ListQuery, ListRequest, Order
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.secret_store import SecretStore
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.businesses.configure import Pausing, delete_secrets
from duewheel.workflows.businesses.read import NOT_CONFIGURED
from duewheel.workflows.tasks.change_task import CancelTask
from duewheel.workflows.tasks.list_tasks import ListTasks
from duewheel.workflows.timers.change_timer import ChangeTimer

TIMERS_AT_ONCE = 50
CANCELLED_WITH_IT = "cancelled with its business"


class BusinessDeletion(Struct, frozen=True, kw_only=True):
    """The result of one call."""

    done: bool
    timers: Count
    cancelled: Count
    too_late: Annotated[list[str], says("The ids of tasks past their cut-off.")]
    cursor: Cursor


class DeleteBusiness(Struct, frozen=True, kw_only=True):
    store: BusinessStore
    known: BusinessCache
    secret_store: SecretStore
    list_tasks: ListTasks
    cancel_task: CancelTask
    secret: bytes
    pausing: Pausing
    timers: TimerStore
    change_timer: ChangeTimer

    def __call__(
        self, biz_type: str, query: DeleteQuery, precondition: Precondition, *, by: str
    ) -> BusinessDeletion:
        business = self.store.read_whole(biz_type)
        if not business.version:
            raise UnknownBusiness(NOT_CONFIGURED, "biz_type")
        precondition.check("business", business.version)
        timers, goes_on = self._delete_timers(biz_type, query, by)
        if goes_on:
            return BusinessDeletion(
                done=False, timers=timers, cancelled=0, too_late=[], cursor=query.cursor
            )
        question = ("delete a business", biz_type, query.cancels_pending)
        at = cursors.opened(query.cursor, question, self.secret)
        page = self.list_tasks(ListRequest(_pending(biz_type, query), LIMIT_MAX, at))
        if page.tasks and not query.cancels_pending:
            raise TasksPending(
                "Cancel them with cancel_pending=true, or wait until they have ended."
            )
        too_late = [task.task_id for task in page.tasks if self._cancel(task) is False]
        cancelled = len(page.tasks) - len(too_late)
        if too_late:
            return BusinessDeletion(
                done=False,
                timers=timers,
                cancelled=cancelled,
                too_late=too_late,
                cursor=query.cursor,
            )
        if page.cursor is not None:
            cursor = cursors.sealed(page.cursor, question, self.secret)
            return BusinessDeletion(
                done=False, timers=timers, cancelled=cancelled, too_late=[], cursor=cursor
            )
        self._delete(business, by)
        return BusinessDeletion(
            done=True, timers=timers, cancelled=cancelled, too_late=[], cursor=None
        )

    def _delete_timers(self, biz_type: str, query: DeleteQuery, by: str) -> tuple[int, bool]:
        """How many were deleted, and whether there are more."""
        lines, goes_on = self.timers.page(biz_type, "", None, TIMERS_AT_ONCE)
        if lines and not query.cancels_pending:
            raise HasTimers(
                "Delete them first, or let cancel_pending=true delete them with its tasks."
            )
        for line in lines:
            try:
                self.change_timer.delete(line.timer_id, by=by)
            except UnknownTimer:
                continue  # another has deleted it in between
        return len(lines), goes_on

    def _cancel(self, task: Task) -> bool:
        """False if it is too late for now."""
        try:
            # A notice would be another task of the business that is deleted.
            self.cancel_task.at(task.home, CANCELLED_WITH_IT, told=None)
        except TooLate:
            return False
        except (AlreadySettled, UnknownTask):
            return True  # it ended by itself in between
        return True

    def _delete(self, business: Business, by: str) -> None:
        self.pausing.announce(business, None)
        with unavailable_when_throttled():
            is_deleted = self.store.delete(business, by)
        if not is_deleted:
            raise VersionMismatch("The business was changed meanwhile; read it, and begin again.")
        self.known.forget(business.biz_type)
        delete_secrets(self.secret_store, business)
        self.pausing.release_resumed(business, None)


def _pending(biz_type: str, query: DeleteQuery) -> ListQuery:
    """To refuse: read first where pending tasks are most likely. To cancel: read forward in time,
    so that tasks that are created meanwhile lie ahead."""
    order = Order.ASC if query.cancels_pending else Order.DESC
    return ListQuery(biz_type, Status.PENDING, order=order)
