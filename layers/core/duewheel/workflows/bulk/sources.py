"""Sources of pages of tasks: ids that were given, or a walk through those that match a filter.

A walk takes the tasks that match when it meets them, except those that were made after the
operation, and those that it has changed before.
"""

from collections.abc import Iterable

from msgspec import Struct

from duewheel.rules.bulk.marks import is_marked
from duewheel.rules.bulk.operation import Filter, Operation, Page, walk_order
from duewheel.rules.tasks.listing import KEYS_MAX, Room
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.stores.bulk.operations import OperationStore
from duewheel.workflows.tasks.list_tasks import TaskWalk


class ListedIds(Struct, frozen=True):
    store: OperationStore

    def __call__(self, operation: Operation, position: str | None) -> Page:
        ids = self.store.ids(operation)
        first = int(position or 0)
        behind = first + operation.page_max
        some = ids[first:behind]
        items = tuple(address_of_task(task_id).name for task_id in some)
        return Page(items, len(some), str(behind) if behind < len(ids) else None)


class ByFilter(Struct, frozen=True):
    walk: TaskWalk

    def __call__(self, operation: Operation, chosen: Filter, position: str | None) -> Page:
        query = chosen.query(operation.biz_type, walk_order(operation.wish))
        self.walk.check_is_on(query)
        room = Room(operation.page_max, KEYS_MAX)
        tasks, behind = self.walk.part(query, position, room)
        return Page(_items(operation, tasks), KEYS_MAX - room.records, behind)


class TaskSource(Struct, frozen=True):
    """The source that the request of an operation on tasks names."""

    listed: ListedIds
    by_filter: ByFilter

    def __call__(self, operation: Operation, position: str | None) -> Page:
        chosen = operation.wish.filter
        if chosen is None:
            return self.listed(operation, position)
        return self.by_filter(operation, chosen, position)


def _items(operation: Operation, tasks: Iterable[Task]) -> tuple[str, ...]:
    return tuple(
        task.home.name
        for task in tasks
        if task.created_ms <= operation.created_ms and not is_marked(task, operation.mark)
    )
