"""Sources of pages of tasks: ids that were given, tasks by due instant, dead tasks by their deaths.

A walk takes the tasks that match when it meets them, except those that were made after the
operation, and those that it has changed before.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.bulk.marks import is_marked
from duewheel.rules.bulk.operation import Filter, Operation, Page, walk_order
from duewheel.rules.tasks import dead_tasks
from duewheel.rules.tasks.dead_tasks import LOOKED_AT_MAX, DeadFilter
from duewheel.rules.tasks.listing import KEYS_MAX, Order, Room
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.stores.bulk.operations import OperationStore
from duewheel.stores.dynamodb import READS_PER_BATCH
from duewheel.stores.tasks.indexes import DeadIndex
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.list_tasks import TaskWalk, current_tasks

_ANY_DEATH = DeadFilter()


class ListedIds(Struct, frozen=True):
    store: OperationStore

    def __call__(self, operation: Operation, position: str | None) -> Page:
        ids = self.store.ids(operation)
        first = int(position or 0)
        behind = first + operation.page_max
        some = ids[first:behind]
        items = tuple(address_of_task(task_id).name for task_id in some)
        return Page(items, len(some), str(behind) if behind < len(ids) else None)


class ByDueInstant(Struct, frozen=True):
    walk: TaskWalk

    def __call__(self, operation: Operation, position: str | None) -> Page:
        self.walk.check_is_on()
        query = _filter(operation).query(operation.biz_type, walk_order(operation.wish))
        room = Room(operation.page_max, KEYS_MAX)
        tasks, behind = self.walk.part(query, position, room)
        return Page(_items(operation, tasks), KEYS_MAX - room.records, behind)


class ByDeath(Struct, frozen=True):
    """It ends although redriven tasks may die again: later deaths are not looked at."""

    clock: Clock
    index: DeadIndex
    tasks: TaskStore

    def __call__(self, operation: Operation, position: str | None) -> Page:
        death = _filter(operation).death or _ANY_DEATH
        if position is None:
            stretch = dead_tasks.first_stretch(death, operation.created_ms)
        else:
            stretch = dead_tasks.stretch_from(position, death)
        query = _filter(operation).query(operation.biz_type, Order.ASC)
        taken: list[Task] = []
        looked_at = 0
        while True:
            some = self.index.first(operation.biz_type, stretch, READS_PER_BATCH)
            homes = [died.home for died in some.died]
            current = current_tasks(self.tasks, homes, self.clock.now_ms())
            for died in some.died:
                stretch = replace(stretch, low_ms=died.settled_ms, after=died)
                looked_at += 1
                task = current.get(died.home)
                if task is not None and query.takes(task) and death.takes(task):
                    taken.append(task)
                if len(taken) == operation.page_max or looked_at == LOOKED_AT_MAX:
                    is_last = not some.goes_on and died == some.died[-1]
                    behind = None if is_last else dead_tasks.written_position(stretch)
                    return Page(_items(operation, taken), looked_at, behind)
            if not some.goes_on:
                return Page(_items(operation, taken), looked_at, None)


class TaskSource(Struct, frozen=True):
    """The source that the request of an operation on tasks names."""

    listed: ListedIds
    by_due_instant: ByDueInstant
    by_death: ByDeath

    def __call__(self, operation: Operation, position: str | None) -> Page:
        wish = operation.wish
        if wish.filter is None:
            return self.listed(operation, position)
        if wish.walks_by_death:
            return self.by_death(operation, position)
        return self.by_due_instant(operation, position)


def _filter(operation: Operation) -> Filter:
    if operation.wish.filter is None:
        raise ValueError("the operation has no filter")
    return operation.wish.filter


def _items(operation: Operation, tasks: Iterable[Task]) -> tuple[str, ...]:
    return tuple(
        task.home.name
        for task in tasks
        if task.created_ms <= operation.created_ms and not is_marked(task, operation.mark)
    )
