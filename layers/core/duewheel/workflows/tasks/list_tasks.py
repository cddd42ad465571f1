"""List a page of the tasks of a business in due order, or of all businesses one after the other,
each task by its current record.

The index says where to look, the records say what is true. A page may be short, even empty, as long
as it has a cursor.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules import cursors
from duewheel.rules.access.grants import Access
from duewheel.rules.refusals import ListIndexOff, Unavailable
from duewheel.rules.tasks import lifecycle, listing
from duewheel.rules.tasks.listing import Listed, ListQuery, ListRequest, Room
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import chunks, unavailable_when_throttled
from duewheel.stores.tasks.indexes import ListIndex
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.businesses.all_businesses import AllBusinesses

READERS = 16  # one for each partition of the index
TOO_MANY_READS = "Too many reads at once. Try it again."


class LookedAt(Struct, frozen=True):
    """What a page was looked for in: the more, the fewer match."""

    records: int
    businesses: int = 1


class Page(Struct, frozen=True):
    tasks: list[Task]
    cursor: str | None
    looked_at: LookedAt | None = None  # only of a list with filters


class TaskWalk(Struct, frozen=True, kw_only=True):
    """Through the tasks of a business, from position to position."""

    clock: Clock
    index: ListIndex
    tasks: TaskStore
    readers: ThreadPoolExecutor
    is_on: bool

    def check_is_on(self) -> None:
        if not self.is_on:
            raise ListIndexOff(
                "Deploy the stack with the parameter ListIndex=on. "
                "Tasks created while it is off are not listed."
            )

    def part(
        self, query: ListQuery, position: str | None, room: Room
    ) -> tuple[list[Task], str | None]:
        """Of one business: the tasks, and the position of the last key that was read for them if
        there are more."""
        after = None if position is None else listing.position_from(position)
        at_once = query.keys_at_once(room.items)
        read = partial(self.index.first_keys, count=at_once)
        keys = listing.merged(
            fan_out(self.readers, read, listing.stretches(query, after)), query.order
        )
        shown, last = self._shown(query, keys.keys, at_once, room)
        goes_on = last is not None and (keys.goes_on or last != keys.keys[-1])
        if last is not None and goes_on:
            shown = [task for task in shown if not listing.is_ahead(task, last, query.order)]
        shown.sort(key=lambda task: listing.order_of_due(task.due_ms, query.order))
        return shown, listing.written_position(last) if last is not None and goes_on else None

    def _shown(
        self, query: ListQuery, keys: Sequence[Listed], at_once: int, room: Room
    ) -> tuple[list[Task], Listed | None]:
        """The tasks of a page, and the last key that was read for it."""
        shown: dict[Address, Task] = {}
        last = None
        for some in chunks(keys[: room.records], at_once):
            current = current_tasks(self.tasks, [key.home for key in some], self.clock.now_ms())
            for last in some:
                room.look()
                task = current.get(last.home)
                if task is not None and query.takes(task):
                    shown[task.home] = task
                    room.take(task.payload)
                if room.is_full:
                    return list(shown.values()), last
        return list(shown.values()), last


class ListTasks(Struct, frozen=True, kw_only=True):
    walk: TaskWalk
    all_businesses: AllBusinesses
    secret: bytes

    def __call__(self, request: ListRequest) -> Page:
        query, room = request.query, Room(request.limit, listing.KEYS_MAX)
        tasks, last = self.walk.part(query, self._position(request), room)
        return self._page(request, tasks, last, LookedAt(listing.KEYS_MAX - room.records))

    def everywhere(self, request: ListRequest, access: Access) -> Page:
        """Of all businesses within reach."""
        query, room = request.query, Room(request.limit, listing.KEYS_MAX)

        def read(biz_type: str, position: str | None) -> tuple[list[Task], str | None]:
            return self.walk.part(replace(query, biz_type=biz_type), position, room)

        part = self.all_businesses.page(access, self._position(request), room, read)
        looked_at = LookedAt(listing.KEYS_MAX - room.records, part.businesses)
        return self._page(request, part.found, part.position, looked_at)

    def _position(self, request: ListRequest) -> str | None:
        self.walk.check_is_on()
        return cursors.opened(request.cursor, listing.question_of(request.query), self.secret)

    def _page(
        self, request: ListRequest, tasks: list[Task], last: str | None, looked_at: LookedAt
    ) -> Page:
        question = listing.question_of(request.query)
        return Page(tasks, cursors.sealed(last, question, self.secret), looked_at)


def current_tasks(
    tasks: TaskStore, homes: Iterable[Address], now_ms: int, busy: str = TOO_MANY_READS
) -> dict[Address, Task]:
    """Those of the tasks that are still kept, by their current records."""
    with unavailable_when_throttled(Unavailable(busy)):
        found = tasks.get_many(homes)
    return {home: task for home, task in found.items() if not lifecycle.is_gone(task, now_ms)}
