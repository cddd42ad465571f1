"""List a page of the tasks of a business in due order, each by its current record.

The index says where to look, the records say what is true. A page may be short, even empty, as long
as it has a cursor.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules.refusals import ListIndexOff, Unavailable
from duewheel.rules.tasks import lifecycle, listing
from duewheel.rules.tasks.listing import Found, Listed, ListRequest
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import chunks, unavailable_when_throttled
from duewheel.stores.tasks.indexes import ListIndex
from duewheel.stores.tasks.tasks import TaskStore

READERS = 16  # one for each partition of the index
TOO_MANY_READS = "Too many reads at once. Try it again."


class Page(Struct, frozen=True):
    tasks: list[Task]
    cursor: str | None


class ListTasks(Struct, frozen=True, kw_only=True):
    clock: Clock
    index: ListIndex
    tasks: TaskStore
    readers: ThreadPoolExecutor
    secret: bytes
    is_on: bool

    def __call__(self, request: ListRequest) -> Page:
        if not self.is_on:
            raise ListIndexOff(
                "Deploy the stack with the parameter ListIndex=on. "
                "Tasks created while it is off are not listed."
            )
        keys = self._keys(request)
        shown, last = self._shown(request, keys)
        if last is None:
            return Page([], None)
        order = request.query.order
        goes_on = keys.goes_on or last != keys.keys[-1]
        if goes_on:
            shown = [task for task in shown if not listing.is_ahead(task, last, order)]
        shown.sort(key=lambda task: listing.order_of_due(task.due_ms, order))
        cursor = listing.cursor_at(last, request.query, self.secret) if goes_on else None
        return Page(shown, cursor)

    def _keys(self, request: ListRequest) -> Found:
        query = request.query
        after = listing.position_of(request.cursor, query, self.secret)
        read = partial(self.index.first_keys, count=query.keys_at_once(request.limit))
        found = fan_out(self.readers, read, listing.stretches(query, after))
        return listing.merged(found, query.order)

    def _shown(self, request: ListRequest, keys: Found) -> tuple[list[Task], Listed | None]:
        """The tasks of a page, and the last key that was read for it."""
        shown: dict[Address, Task] = {}
        payload_bytes, last = 0, None
        at_once = request.query.keys_at_once(request.limit)
        for some in chunks(keys.keys[: listing.KEYS_MAX], at_once):
            homes = [key.home for key in some]
            current = current_tasks(self.tasks, homes, self.clock.now_ms())
            for last in some:
                task = current.get(last.home)
                if task is None or not request.query.takes(task):
                    continue
                shown[task.home] = task
                payload_bytes += len((task.payload or "").encode())
                if len(shown) == request.limit or payload_bytes > listing.PAYLOAD_BYTES_MAX:
                    return list(shown.values()), last
        return list(shown.values()), last


def current_tasks(
    tasks: TaskStore, homes: Iterable[Address], now_ms: int, busy: str = TOO_MANY_READS
) -> dict[Address, Task]:
    """Those of the tasks that are still kept, by their current records."""
    with unavailable_when_throttled(Unavailable(busy)):
        found = tasks.get_many(homes)
    return {home: task for home, task in found.items() if not lifecycle.is_gone(task, now_ms)}
