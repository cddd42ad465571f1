"""The order of a flow key: its tasks are called one after the other, in the order of their due
instants, then of their ids.

Each live task has an *order item*, which is put before the task is written and removed after its
end. A task may be called if no item ahead of its own blocks it. An item blocks while its task is
live at this place, and while a writer may still make it so. Any other item is stale, and whoever
finds it removes it.

A task that is written when later ones may be under way *overtakes* them: its item says so before
the task is written, and it waits for their calls. So at most one call of a key is under way,
without a write for each call.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import (
    Address,
    home_of_order_place,
    instant_of_order_place,
    last_order_place,
    order_place,
)

# A task is looked at up to half a second before its instant, by a clock that may be ahead of that
# of a writer.
SOON_MS = timing.SKEW_MS + 1_000
# How long a task waits for one ahead of it that is due already: as long as it is late, within
# these. It is far longer than a task waits for those that it overtakes, so that one of two that
# wait for each other goes on.
WAIT_MS_MIN = 8_000
WAIT_MS_MAX = 900_000
OVERTAKING_WAIT_MS = 2_000
PAUSED_LOOK_MS = 3_600_000  # a task behind a paused one is woken by its end, or looks again
KEPT_SECONDS = 400 * 86_400  # an item, behind its instant; a task whose item is gone puts another


class Line(Struct, frozen=True):
    """A flow key whose tasks are called in order."""

    biz_type: str
    flow_key: str


class OrderItem(Struct, frozen=True, kw_only=True):
    """`version`: of the task, as it is written after this item. `overtakes`: up to this place,
    later tasks may have been under way when it was put."""

    place: str
    version: int
    written_ms: int
    overtakes: str | None = None

    @property
    def home(self) -> Address:
        return home_of_order_place(self.place)

    @property
    def instant_ms(self) -> int:
        return instant_of_order_place(self.place)


class Fate(Enum):
    LIVE = "its task is live, at this place"
    WRITING = "a writer may be about to make it so"
    STALE = "its task has ended, has moved, or was never created"


class Blocked(Struct, frozen=True):
    """A task may not be called now. `next_ms`: when the one that it waits for is due next.
    `wait_ms`: how long it waits after that, at most, unless it is woken."""

    next_ms: int
    wait_ms: int = WAIT_MS_MAX


def instant_of(task: Task) -> int:
    return task.due_at_ms if task.ordered_ms is None else task.ordered_ms


def place_of(task: Task) -> str:
    return order_place(instant_of(task), task.home)


def line_of(task: Task) -> Line:
    return Line(task.biz_type, str(task.flow_key))


def item_of(task: Task, now_ms: int, overtakes: str | None = None) -> OrderItem:
    return OrderItem(
        place=place_of(task), version=task.version, written_ms=now_ms, overtakes=overtakes
    )


def fate_of(item: OrderItem, task: Task | None, line: Line, now_ms: int, lives_ms: int) -> Fate:
    """`task`: at its home, None if there is none. `lives_ms`: no writer lives longer."""
    if task is not None:
        # An occurrence may get its flow key from its timer, at the call.
        if task.is_live and place_of(task) == item.place and task.flow_key in (None, line.flow_key):
            return Fate.LIVE
        if item.version <= task.version:
            return Fate.STALE
    is_young = now_ms < item.written_ms + lives_ms + timing.SKEW_MS
    return Fate.WRITING if is_young else Fate.STALE


def blocked_by(item: OrderItem, task: Task | None, now_ms: int, lives_ms: int) -> Blocked:
    """What a later task does if this item blocks it."""
    if task is not None and task.is_live and place_of(task) == item.place:
        is_paused = task.paused is not None
        return Blocked(min(task.next_ms, now_ms + PAUSED_LOOK_MS) if is_paused else task.next_ms)
    young_ms = max(0, item.written_ms + lives_ms + timing.SKEW_MS - now_ms)
    return Blocked(now_ms, young_ms + OVERTAKING_WAIT_MS)


def overtaken_bound(tasks: Sequence[Task], now_ms: int) -> tuple[str, str] | None:
    """Between these places may be tasks that these, of one key, overtake, if their items were put
    before now."""
    first = min(map(place_of, tasks))
    last = last_order_place(now_ms + SOON_MS)
    return (first, last) if first < last else None


def overtaken_by(place: str, others: Sequence[str]) -> str | None:
    """The last of these places that is behind this one."""
    return max((other for other in others if other > place), default=None)


def may_overtake(item: OrderItem, now_ms: int, lives_ms: int) -> bool:
    """Whether a call of a task that it overtakes may be under way."""
    return item.overtakes is not None and now_ms < item.written_ms + lives_ms + timing.SKEW_MS


def is_any_under_way(
    items: Sequence[OrderItem], homes: Mapping[Address, Task], now_ms: int
) -> bool:
    """Whether a call of one of these may be under way, by a clock that may be ahead."""
    for item in items:
        task = homes.get(item.home)
        is_pending = task is not None and task.status is Status.PENDING and not task.parked
        if task is None or not is_pending:
            continue
        if task.running is not None or task.next_ms <= now_ms + timing.SKEW_MS:
            return True
    return False


def waits_until_ms(task: Task, blocked: Blocked, now_ms: int) -> int:
    """About as long as it is late: so it falls due a few times only, however long it waits. Its
    grace is not outwaited."""
    late_ms = min(max(now_ms - instant_of(task), WAIT_MS_MIN), WAIT_MS_MAX)
    until_ms = max(now_ms, blocked.next_ms) + min(late_ms, blocked.wait_ms)
    if task.expires_after_seconds is None:
        return until_ms
    over_ms = task.due_ms + int(task.expires_after_seconds * 1000) + 1
    return max(now_ms + 1, min(until_ms, over_ms))


def waits_in_line(task: Task, now_ms: int) -> bool:
    """Not one that falls due soon by itself: by a clock that is ahead its call may be under way."""
    is_far = task.next_ms > now_ms + SOON_MS
    waits = is_far and task.in_line is not None and task.in_line.until_ms == task.next_ms
    return waits and task.is_live and not task.parked
