"""Dead tasks of a business with their causes, the latest death first, a page a call.

The index says where to look, the records say what is true.
"""

from msgspec import Struct

from duewheel.rules import cursors
from duewheel.rules.tasks import dead_tasks
from duewheel.rules.tasks.dead_tasks import DeadRequest
from duewheel.rules.tasks.listing import ListQuery, Order, Room
from duewheel.rules.tasks.task import Status
from duewheel.workflows.tasks.list_tasks import Page, TaskWalk


class DeadTasks(Struct, frozen=True):
    walk: TaskWalk
    secret: bytes

    def page(self, biz_type: str, request: DeadRequest) -> Page:
        """The next tasks that the filter takes, and the cursor behind them."""
        question = dead_tasks.question_of(biz_type, request.wanted)
        position = cursors.opened(request.cursor, question, self.secret)
        query = ListQuery(biz_type, Status.DEAD, order=Order.DESC, death=request.wanted)
        tasks, last = self.walk.part(query, position, Room(request.limit))
        return Page(tasks, cursors.sealed(last, question, self.secret))
