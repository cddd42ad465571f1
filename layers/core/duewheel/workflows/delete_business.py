"""Delete a business's settings, when none of its tasks is pending any more.

Its tasks are found by the list index, a page a call. The record goes with the call that comes
to the end of the list; a page on which something could not be cancelled is looked at again.
"""

from dataclasses import dataclass

from duewheel.rules import cursors
from duewheel.rules.business import Business
from duewheel.rules.business_queries import DeleteRequest
from duewheel.rules.list_request import ListRequest
from duewheel.rules.listing import LIMIT_MAX, ListQuery, Order
from duewheel.rules.precondition import Precondition
from duewheel.rules.refusals import (
    AlreadySettled,
    TasksPending,
    TooLate,
    UnknownBusiness,
    UnknownTask,
    VersionMismatch,
)
from duewheel.rules.task import Status, Task
from duewheel.stores.businesses import BusinessStore
from duewheel.stores.known_businesses import KnownBusinesses
from duewheel.workflows.cancel import CancelTask
from duewheel.workflows.list_tasks import ListTasks
from duewheel.workflows.look_up_businesses import NOT_CONFIGURED
from duewheel.workflows.pausing import Pausing

CANCELLED_WITH_IT = "cancelled with its business"


@dataclass(frozen=True, slots=True)
class Deleted:
    """What one call came to. `too_late` are the ids of tasks whose calls may be under way."""

    done: bool
    cancelled: int
    too_late: list[str]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class DeleteBusiness:
    store: BusinessStore
    known: KnownBusinesses
    list_tasks: ListTasks
    cancel_task: CancelTask
    secret: bytes
    pausing: Pausing

    def __call__(self, biz_type: str, asked: DeleteRequest, precondition: Precondition) -> Deleted:
        business = self.store.read_whole(biz_type)
        if not business.version:
            raise UnknownBusiness(NOT_CONFIGURED, "biz_type")
        precondition.check("business", business.version)
        question = ("delete a business", biz_type, asked.cancels_pending)
        at = None
        if asked.cursor is not None:
            at = cursors.opened(asked.cursor, question, self.secret)
        page = self.list_tasks(ListRequest(_pending(biz_type, asked), LIMIT_MAX, at))
        if page.tasks and not asked.cancels_pending:
            raise TasksPending(
                "Cancel them with cancel_pending=true, or wait until they have ended."
            )
        too_late = [task.task_id for task in page.tasks if self._cancel(task) is False]
        cancelled = len(page.tasks) - len(too_late)
        if too_late:
            return Deleted(False, cancelled, too_late, asked.cursor)
        if page.cursor is not None:
            cursor = cursors.sealed(page.cursor, question, self.secret)
            return Deleted(False, cancelled, [], cursor)
        self._delete(business)
        return Deleted(True, cancelled, [], None)

    def _cancel(self, task: Task) -> bool:
        """False when it is too late for now."""
        try:
            self.cancel_task.at(task.home, CANCELLED_WITH_IT)
        except TooLate:
            return False
        except (AlreadySettled, UnknownTask):
            return True  # it ended by itself in between
        return True

    def _delete(self, business: Business) -> None:
        if business.paused:
            self.pausing.announce(business.biz_type)
        if not self.store.delete(business):
            raise VersionMismatch("The business was changed meanwhile; read it, and begin anew.")
        self.known.forget(business.biz_type)
        if business.paused:
            self.pausing.ask_for_release(business.biz_type)


def _pending(biz_type: str, asked: DeleteRequest) -> ListQuery:
    """Who refuses looks first where pending tasks are most likely; who cancels goes with time,
    so that what is created meanwhile lies ahead."""
    order = Order.ASC if asked.cancels_pending else Order.DESC
    return ListQuery(biz_type, Status.PENDING, order=order)
