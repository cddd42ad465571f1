"""Read timers for the xTimer interface: an app's timers and a timer's records, by page number."""

from collections.abc import Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Task
from duewheel.rules.timers.timer import Timer, checked_timer_id, no_such_timer
from duewheel.rules.wheel import addresses
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers.occurrences import OccurrenceIndex
from duewheel.stores.timers.timers import TimerLine, TimerStore
from duewheel.xtimer.app_names import biz_type_of
from duewheel.xtimer.requests import RECORDS_MAX, Named, Paging

_LINES_AT_ONCE = 1_000
LINES_MAX = 10_000


class ReadXtimer(Struct, frozen=True):
    clock: Clock
    timers: TimerStore
    tasks: TaskStore
    run_list: OccurrenceIndex

    def one(self, named: Named) -> Timer:
        """Another app's is no timer of this one."""
        timer = self.timers.read(checked_timer_id(named.timer_id))
        if timer is None or (named.app is not None and timer.biz_type != biz_type_of(named.app)):
            raise no_such_timer()
        return timer

    def of_app(self, app: str, paging: Paging) -> tuple[Sequence[Timer], int]:
        """A page of them in the order of their names, and how many there are."""
        lines = self._lines(biz_type_of(app))
        ids = [line.timer_id for line in lines[paging.first : paging.first + paging.size]]
        with unavailable_when_throttled():
            found = self.timers.read_many(ids)
        timers = [found.get(timer_id) for timer_id in ids]
        shown = [timer for timer in timers if timer and not isinstance(timer, UnreadableItem)]
        return shown, len(lines)

    def records(self, timer: Timer, paging: Paging) -> tuple[Sequence[Task], int]:
        """A page of its occurrences up to now, the latest first, and how many there are, as far
        back as they are paged."""
        now_ms = self.clock.now_ms()
        homes, _ = self.run_list.page(
            timer.timer_id,
            newest_first=True,
            behind=addresses.second_range(now_ms // 1000)[1],
            limit=RECORDS_MAX,
        )
        shown = homes[paging.first : paging.first + paging.size]
        with unavailable_when_throttled():
            found = self.tasks.get_many(shown)
        tasks = [found[home] for home in shown if home in found]
        return [task for task in tasks if not lifecycle.is_gone(task, now_ms)], len(homes)

    def _lines(self, biz_type: str) -> Sequence[TimerLine]:
        lines: list[TimerLine] = []
        goes_on = True
        while goes_on and len(lines) < LINES_MAX:
            last = lines[-1] if lines else None
            page, goes_on = self.timers.page(biz_type, "", last, _LINES_AT_ONCE)
            lines += page
        return lines
