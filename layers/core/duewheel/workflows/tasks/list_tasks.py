"""List a page of the tasks of a business, or of all businesses one after the other, each task by
its current record.

The index says where to look, the records say what is true. A page may be short, even empty, as long
as it has a cursor.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules import cursors
from duewheel.rules.access.grants import Access
from duewheel.rules.refusals import ListIndexOff, Unavailable
from duewheel.rules.tasks import dead_tasks, lifecycle, listing
from duewheel.rules.tasks.dead_tasks import DeadFilter
from duewheel.rules.tasks.listing import (
    Halves,
    Listed,
    ListQuery,
    ListRequest,
    Order,
    Room,
    Way,
)
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import READS_PER_BATCH, chunks, unavailable_when_throttled
from duewheel.stores.tasks.indexes import DeadIndex, ListIndex
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.businesses.all_businesses import AllBusinesses

READERS = 16  # one for each partition of the index
TOO_MANY_READS = "Too many reads at once. Try it again."


class LookedAt(Struct, frozen=True):
    """What a page was looked for in: the more, the fewer match. `reached_ms`: the instant of the
    last one, if the list goes on; of a list of all businesses None."""

    records: int
    businesses: int = 1
    reached_ms: int | None = None


# A position, and the home there; None if that is of no live task.
Key = tuple[str, Address | None]


class Page(Struct, frozen=True):
    tasks: list[Task]
    cursor: str | None
    looked_at: LookedAt | None = None  # only of a list with filters


class TaskWalk(Struct, frozen=True, kw_only=True):
    """Through the tasks of a business, from position to position, on the way on which the fewest
    are read that do not match."""

    clock: Clock
    index: ListIndex
    dead: DeadIndex
    keys: KeyStore
    tasks: TaskStore
    readers: ThreadPoolExecutor
    is_on: bool

    def check_is_on(self, query: ListQuery) -> None:
        if not self.is_on and query.way is Way.DUE:
            raise ListIndexOff(
                "Deploy the stack with the parameter ListIndex=on. "
                "Tasks created while it is off are not listed."
            )

    def part(
        self, query: ListQuery, position: str | None, room: Room
    ) -> tuple[list[Task], str | None]:
        """Of one business: the tasks, and the position of the last key that was read for them if
        there are more."""
        match query.way:
            case Way.DEATH:
                return self._by_death(query, position, room)
            case Way.KEYS:
                return self._by_key(query, position, room)
            case Way.DUE:
                halves = listing.halves_of(query, position, self.clock.now_ms())
                if halves is None:
                    return self._by_due_instant(query, position, room)
                return self._live_first(query, position, room, halves)

    def _live_first(
        self, query: ListQuery, position: str | None, room: Room, halves: Halves
    ) -> tuple[list[Task], str | None]:
        is_second, inside = listing.place_in_halves(position, halves)
        found: list[Task] = []
        if not is_second:
            found, behind = self._by_due_instant(halves.first(query), inside, room)
            if behind is not None:
                return found, halves.written(behind)
            if room.is_full:
                return found, halves.middle
            inside = None
        more, behind = self._by_due_instant(halves.second(query), inside, room)
        return found + more, None if behind is None else halves.written(behind)

    def _by_due_instant(
        self, query: ListQuery, position: str | None, room: Room
    ) -> tuple[list[Task], str | None]:
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

    def _by_death(
        self, query: ListQuery, position: str | None, room: Room
    ) -> tuple[list[Task], str | None]:
        """It ends although redriven tasks may die again: deaths after its beginning are not looked
        at."""
        death, now_ms = query.death or DeadFilter(), self.clock.now_ms()

        def read(position: str | None) -> tuple[list[Key], bool]:
            stretch = dead_tasks.stretch_at(
                position, death, now_ms, is_ascending=query.order is Order.ASC
            )
            found = self.dead.first(query.biz_type, stretch, READS_PER_BATCH)
            keys: list[Key] = [
                (dead_tasks.position_behind(died, stretch), died.home) for died in found.died
            ]
            return keys, found.goes_on

        return self._walked(query, position, room, read)

    def _by_key(
        self, query: ListQuery, position: str | None, room: Room
    ) -> tuple[list[Task], str | None]:
        def read(position: str | None) -> tuple[list[Key], bool]:
            prefix = query.key_prefix or ""
            return self.keys.with_prefix(query.biz_type, prefix, position, READS_PER_BATCH)

        return self._walked(query, position, room, read)

    def _walked(
        self,
        query: ListQuery,
        position: str | None,
        room: Room,
        read: Callable[[str | None], tuple[list[Key], bool]],
    ) -> tuple[list[Task], str | None]:
        found: list[Task] = []
        while True:
            keys, goes_on = read(position)
            homes = [home for _, home in keys if home is not None]
            current = current_tasks(self.tasks, homes, self.clock.now_ms()) if homes else {}

            def find(key: Key, current: dict[Address, Task] = current) -> Task | None:
                task = None if key[1] is None else current.get(key[1])
                return task if task is not None and query.takes(task) else None

            tasks, position = listing.filled(
                keys,
                find,
                lambda task: task.payload,
                lambda key: key[0],
                room,
                goes_on=goes_on,
            )
            found += tasks
            if position is None or room.is_full:
                return found, position


class ListTasks(Struct, frozen=True, kw_only=True):
    walk: TaskWalk
    all_businesses: AllBusinesses
    secret: bytes

    def __call__(self, request: ListRequest) -> Page:
        query, room = request.query, Room(request.limit, listing.KEYS_MAX)
        tasks, last = self.walk.part(query, self._position(request), room)
        reached_ms = None if last is None else listing.reached_ms(last, query.way)
        looked_at = LookedAt(listing.KEYS_MAX - room.records, reached_ms=reached_ms)
        return self._page(request, tasks, last, looked_at)

    def everywhere(self, request: ListRequest, access: Access) -> Page:
        """Of all businesses within reach."""
        query, room = request.query, Room(request.limit, listing.KEYS_MAX)

        def read(biz_type: str, position: str | None) -> tuple[list[Task], str | None]:
            return self.walk.part(replace(query, biz_type=biz_type), position, room)

        part = self.all_businesses.page(access, self._position(request), room, read)
        looked_at = LookedAt(listing.KEYS_MAX - room.records, part.businesses)
        return self._page(request, part.found, part.position, looked_at)

    def _position(self, request: ListRequest) -> str | None:
        self.walk.check_is_on(request.query)
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
