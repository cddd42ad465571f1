"""Read timers: one with its counters, the timers of a business or of all in pages, the next
instants of one, and its runs.
"""

from collections.abc import Sequence

from msgspec import Struct, field

from duewheel.clock import Clock
from duewheel.rules import cursors
from duewheel.rules.access.grants import Access, Permit
from duewheel.rules.labels import has_all
from duewheel.rules.query_string import LIMIT_MAX
from duewheel.rules.refusals import TOO_MANY_REQUESTS, UnreadableItem
from duewheel.rules.tasks.listing import KEYS_MAX, Room, filled
from duewheel.rules.tasks.task import Plan, Task
from duewheel.rules.timers import next_occurrence
from duewheel.rules.timers.requests import (
    RunsQuery,
    State,
    TimersQuery,
    UpcomingQuery,
)
from duewheel.rules.timers.timer import Timer, no_such_timer
from duewheel.rules.timers.updates import numbered_until
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.counters import CounterStore
from duewheel.stores.timers.occurrences import OccurrenceIndex
from duewheel.stores.timers.timers import TimerLine, TimerStore
from duewheel.workflows.businesses.all_businesses import AllBusinesses
from duewheel.workflows.tasks.list_tasks import LookedAt, Page, current_tasks


class ShownTimer(Struct, frozen=True):
    timer: Timer
    next_second: int | None
    counters: dict[str, int] | None = field(default=None)  # only of one that is read by itself

    @property
    def state(self) -> State:
        return next_occurrence.state_of(self.timer, self.next_second)


class TimerPage(Struct, frozen=True):
    timers: list[ShownTimer]
    cursor: str | None
    looked_at: LookedAt


class ReadTimers(Struct, frozen=True, kw_only=True):
    clock: Clock
    timers: TimerStore
    tasks: TaskStore
    counters: CounterStore
    run_list: OccurrenceIndex
    all_businesses: AllBusinesses
    secret: bytes

    def one(self, timer_id: str, permit: Permit) -> ShownTimer:
        timer = self.find(timer_id, permit)
        (shown,) = self.shown([timer])
        return ShownTimer(timer, shown.next_second, self.counters.read(timer_id))

    def find(self, timer_id: str, permit: Permit) -> Timer:
        if (timer := self.timers.read(timer_id)) is None:
            raise no_such_timer()
        permit.check_found(timer.biz_type, no_such_timer())
        return timer

    def shown(self, timers: Sequence[Timer]) -> list[ShownTimer]:
        return shown_timers(self.clock, self.tasks, timers)

    def page(self, query: TimersQuery, biz_type: str) -> TimerPage:
        """In the order of their names. Damaged timers are reported and left out."""
        room = Room(query.limit)
        timers, last = self._part(query, biz_type, self._position(query), room)
        return self._page(query, timers, last, LookedAt(KEYS_MAX - room.records))

    def everywhere(self, query: TimersQuery, access: Access) -> TimerPage:
        """Of all businesses within reach."""
        room = Room(query.limit)

        def read(biz_type: str, position: str | None) -> tuple[list[ShownTimer], str | None]:
            return self._part(query, biz_type, position, room)

        part = self.all_businesses.page(access, self._position(query), room, read)
        looked_at = LookedAt(KEYS_MAX - room.records, part.businesses)
        return self._page(query, part.found, part.position, looked_at)

    def _position(self, query: TimersQuery) -> str | None:
        return cursors.opened(query.cursor, query.question, self.secret)

    def _page(
        self, query: TimersQuery, timers: list[ShownTimer], last: str | None, looked_at: LookedAt
    ) -> TimerPage:
        cursor = cursors.sealed(last, query.question, self.secret)
        return TimerPage(timers, cursor, looked_at)

    def _part(
        self, query: TimersQuery, biz_type: str, position: str | None, room: Room
    ) -> tuple[list[ShownTimer], str | None]:
        after, wanted = None if position is None else _line_at(position), query.labels
        count = room.items if query.state is None and not wanted else LIMIT_MAX
        lines, goes_on = self.timers.page(
            biz_type, query.name_prefix, after, min(count, room.records)
        )
        current = self._current([line for line in lines if _may_be_meant(line, query)])

        def find(line: TimerLine) -> ShownTimer | None:
            one = current.get(line.timer_id)
            if one is None or query.state not in (None, one.state):
                return None
            return one if has_all(one.timer.rules.labels, wanted) else None

        return filled(
            lines,
            find,
            lambda one: one.timer.rules.payload,
            lambda line: f"{line.timer_id} {line.name}",
            room,
            goes_on=goes_on,
        )

    def upcoming(self, timer_id: str, query: UpcomingQuery, permit: Permit) -> Sequence[int]:
        """The next seconds of its schedule, also if it is disabled."""
        timer, now_second = self.find(timer_id, permit), self._now_second()
        numbered = numbered_until(timer, _plans(self.tasks, [timer]).get(timer.chain), now_second)
        first = next_occurrence.first_second(query.from_ms, now_second)
        return next_occurrence.upcoming(timer.rules, numbered, first, query.count)

    def runs(self, timer_id: str, query: RunsQuery, permit: Permit) -> Page:
        """Its occurrences up to now, the latest first, each by its record as it is now."""
        self.find(timer_id, permit)
        question = ("runs", timer_id, query.status)
        position = cursors.opened(query.cursor, question, self.secret)
        before = position or addresses.second_range(self._now_second())[1]
        count = query.limit if query.status is None else LIMIT_MAX
        homes, goes_on = self.run_list.page(timer_id, newest_first=True, behind=before, limit=count)
        current = current_tasks(self.tasks, homes, self.clock.now_ms(), TOO_MANY_REQUESTS)

        def find(home: Address) -> Task | None:
            task = current.get(home)
            return task if task is not None and query.status in (None, task.status) else None

        found, last = filled(
            homes,
            find,
            lambda task: task.payload,
            lambda home: home.place,
            Room(query.limit),
            goes_on=goes_on,
        )
        return Page(found, cursors.sealed(last, question, self.secret))

    def _current(self, lines: Sequence[TimerLine]) -> dict[str, ShownTimer]:
        with unavailable_when_throttled():
            read = self.timers.read_many(line.timer_id for line in lines)
        timers = [timer for timer in read.values() if not isinstance(timer, UnreadableItem)]
        return {shown.timer.timer_id: shown for shown in self.shown(timers)}

    def _now_second(self) -> int:
        return self.clock.now_ms() // 1000


def shown_timers(clock: Clock, tasks: TaskStore, timers: Sequence[Timer]) -> list[ShownTimer]:
    plans = _plans(tasks, timers)
    now_second = clock.now_ms() // 1000
    return [
        ShownTimer(timer, next_occurrence.next_second(timer, plans.get(timer.chain), now_second))
        for timer in timers
    ]


def _plans(tasks: TaskStore, timers: Sequence[Timer]) -> dict[Address | None, Plan]:
    """The plans of those whose next occurrence depends on how many there have been."""
    chains = [timer.chain for timer in timers if timer.chain and timer.rules.max_runs]
    with unavailable_when_throttled():
        homes = tasks.get_many(chains)
    return {home: task.plan for home, task in homes.items() if task.plan is not None}


def _may_be_meant(line: TimerLine, query: TimersQuery) -> bool:
    """False if the entry of the list shows that the filter leaves the timer out. A prefix may be
    longer than the stored beginning of a name."""
    if not line.name.startswith(query.name_prefix):
        return False
    return query.state is None or line.enabled is (query.state is not State.DISABLED)


def _line_at(position: str) -> TimerLine:
    timer_id, _, name = position.partition(" ")
    return TimerLine(name, timer_id, enabled=False)
