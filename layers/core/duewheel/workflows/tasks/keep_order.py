"""Keep the order of flow keys: put order items before tasks, remove them behind their ends, wake
the next task, and say whether a task may be called.

A task that is blocked is put aside with a mark (`in_line`). A removal is followed by a look at
the next task, and the putting aside by a look at the line: so of an end and a task that is put
aside at the same time one sees the other. If a process crashes in between, the next task finds the
stale item when it falls due by itself.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.tasks import flow_order, lifecycle
from duewheel.rules.tasks.flow_order import Blocked, Fate, Line, OrderItem, line_of, place_of
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import last_order_place
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.dynamodb import Throttled, is_of_aws
from duewheel.stores.tasks.order_items import OrderItemStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.write_entries import EntryWriter

LOOKS_MAX = 10  # at ten items each: more stale ones are left to the next look
_OVERTAKEN_MAX = 100
_FIRST = "0"


class KeepOrder(Struct, frozen=True, kw_only=True):
    """`lives_ms`: no process works longer on a request, a page or a timer."""

    clock: Clock
    known: BusinessCache
    tasks: TaskStore
    items: OrderItemStore
    key_of_timer: Callable[[str], str | None]
    entry_writer: EntryWriter
    lives_ms: int

    def in_order(self, tasks: Iterable[Task]) -> list[Task]:
        """Those whose flow key has an order, by the settings of their businesses."""
        keyed = [task for task in tasks if task.flow_key is not None]
        if not keyed:
            return []
        businesses = self.known.many({task.biz_type for task in keyed})
        return [task for task in keyed if businesses[task.biz_type].keeps_order(task.flow_key)]

    # Before a task is written

    def reserve(self, tasks: Sequence[Task]) -> set[str]:
        """Put the items of tasks that are about to be written, as they will be. Returns the ids of
        those that must not be written, since DynamoDB throttled their items."""
        ordered = self.in_order(tasks)
        if not ordered:
            return set()
        now_ms = self.clock.now_ms()
        by_line = _by_line(ordered)
        left = self.items.put(
            {line: [flow_order.item_of(task, now_ms) for task in of] for line, of in by_line}
        )
        overtaking = {line: items for line, of in by_line if (items := self._overtaking(line, of))}
        if overtaking:
            left += self.items.put(overtaking)
        return {item.home.task_id for _, item in left}

    def _overtaking(self, line: Line, tasks: Sequence[Task]) -> list[OrderItem]:
        """The items of those that overtake others, put again to say so. A new task cannot be under
        way before all its request's items are put."""
        bound = flow_order.overtaken_bound(tasks, self.clock.now_ms())
        if bound is None:
            return []
        found, goes_on = self.items.between(line, *bound, limit=_OVERTAKEN_MAX)
        new = {task.home for task in tasks if task.version == 1 and task.occurrence is None}
        others = [item.place for item in found if item.home not in new]
        if goes_on:
            others.append(bound[1])
        now_ms = self.clock.now_ms()
        return [
            flow_order.item_of(task, now_ms, overtakes)
            for task in tasks
            if (overtakes := flow_order.overtaken_by(place_of(task), others)) is not None
        ]

    def withdraw(self, tasks: Sequence[Task]) -> None:
        """Remove the items of new tasks that were not written."""

        def remove() -> None:
            ordered = self.in_order(tasks)
            if len(ordered) == 1:
                self.items.remove(line_of(ordered[0]), place_of(ordered[0]), ordered[0].version)
            else:
                self.items.remove_for_good([(line_of(one), place_of(one)) for one in ordered])

        _surely(remove)

    # Around a change of a task

    def prepare(self, before: Task, after: Task) -> None:
        """Before a change is written: if the task comes to live at another place, put its item."""
        comes = after.is_live and not (before.is_live and _is_same_place(before, after))
        if comes and self.reserve([after]):
            raise Throttled("the order item of a changed task was not written")

    def conclude(self, before: Task, after: Task, *, is_written: bool) -> None:
        """After it: remove the item of the place that the task has left, and wake the next one. A
        refused change of a live task needs nothing: its item is older than the change that won."""
        leaves = before.is_live and not (after.is_live and _is_same_place(before, after))
        if is_written and leaves:
            _surely(lambda: self._leave(before, after.version))
        elif not is_written and not before.is_live:
            _surely(lambda: self._remove(after, after.version))

    def _leave(self, task: Task, version: int) -> None:
        for one in self.in_order([self._with_key(task)]):
            self.items.remove(line_of(one), place_of(one), version)
            self._wake(line_of(one))

    def _with_key(self, task: Task) -> Task:
        """An occurrence has the key of its timer, which is read only if some key is in order."""
        if task.occurrence is None or not self.known.one(task.biz_type).keeps_some_order:
            return task
        flow_key = self.key_of_timer(task.occurrence.timer_id)
        return task if flow_key is None else replace(task, flow_key=flow_key)

    def _remove(self, task: Task, version: int) -> None:
        for one in self.in_order([task]):
            self.items.remove(line_of(one), place_of(one), version)

    # After an end

    def ended(self, tasks: Sequence[Task]) -> None:
        """The ends are durable: remove the items, and wake those that waited."""

        def remove() -> None:
            ordered = self.in_order(tasks)
            delivered = [task for task in ordered if task.status is Status.DELIVERED]
            self.items.remove_for_good([(line_of(task), place_of(task)) for task in delivered])
            for task in ordered:
                if task.status is not Status.DELIVERED:
                    self.items.remove(line_of(task), place_of(task), task.version)
            for line in dict.fromkeys(map(line_of, ordered)):
                self._wake(line)

        _surely(remove)

    def left(self, tasks: Iterable[Task]) -> None:
        """The same, of tasks as they were before they were cancelled."""
        self.ended([replace(task, version=task.version + 1) for task in tasks])

    # The line

    def blocked(self, task: Task) -> Blocked | None:
        """What the task waits for; None if it may be called now. `task` is as it was just read."""
        line, mine = line_of(task), place_of(task)
        for _ in range(LOOKS_MAX):
            items, goes_on = self.items.between(line, _FIRST, mine)
            ahead = [item for item in items if item.place < mine]
            if (blocked := self._blocked_by(line, ahead)) is not None:
                return blocked
            own = next((item for item in items if item.place == mine), None)
            if own is not None:
                return self._overtaken(line, own)
            if not goes_on and self.reserve([task]):  # its item is gone, or there was none
                break
        return Blocked(self.clock.now_ms(), flow_order.OVERTAKING_WAIT_MS)

    def _blocked_by(self, line: Line, ahead: Sequence[OrderItem]) -> Blocked | None:
        """Mostly the first one blocks. Stale items are removed."""
        for some in (ahead[:1], ahead[1:]):
            homes = self.tasks.get_many(item.home for item in some) if some else {}
            now_ms = self.clock.now_ms()
            for item in some:
                task = homes.get(item.home)
                fate = flow_order.fate_of(item, task, line, now_ms, self.lives_ms)
                if fate is not Fate.STALE:
                    return flow_order.blocked_by(item, task, now_ms, self.lives_ms)
                self.items.remove(line, item.place, item.version)
        return None

    def _overtaken(self, line: Line, own: OrderItem) -> Blocked | None:
        now_ms = self.clock.now_ms()
        if own.overtakes is None or not flow_order.may_overtake(own, now_ms, self.lives_ms):
            return None
        found, goes_on = self.items.between(line, own.place, own.overtakes, _OVERTAKEN_MAX)
        others = [item for item in found if item.place != own.place]
        homes = self.tasks.get_many(item.home for item in others) if others else {}
        if goes_on or flow_order.is_any_under_way(others, homes, self.clock.now_ms()):
            return Blocked(now_ms, flow_order.OVERTAKING_WAIT_MS)
        return None

    def look_again(self, lines: Iterable[Line]) -> None:
        """After tasks of these lines were put aside: what they wait for may have ended since."""

        def wake() -> None:
            for line in lines:
                self._wake(line)

        _surely(wake)

    def _wake(self, line: Line) -> None:
        """Let the first task of the line fall due now if it was put aside and may be called."""
        for _ in range(LOOKS_MAX):
            last = last_order_place(self.clock.now_ms() + timing.SKEW_MS)
            items, _ = self.items.between(line, _FIRST, last, limit=2)
            if not items:
                return
            first = items[0]
            task = self.tasks.get_many([first.home]).get(first.home)
            now_ms = self.clock.now_ms()
            fate = flow_order.fate_of(first, task, line, now_ms, self.lives_ms)
            if fate is not Fate.STALE:
                if task is not None and flow_order.waits_in_line(task, now_ms):
                    self._bring_forward(line, first, task)
                return
            self.items.remove(line, first.place, first.version)

    def _bring_forward(self, line: Line, item: OrderItem, task: Task) -> None:
        if self._overtaken(line, item) is not None:
            return
        now_ms = self.clock.now_ms()
        next_ms = now_ms if task.in_line is None else max(now_ms, task.in_line.from_ms)
        entry = self.entry_writer.put(task, next_ms)
        woken = lifecycle.brought_to(lifecycle.postponed(task, next_ms, now_ms), entry)
        if self.tasks.change(task, woken):
            self.entry_writer.announce([entry])


def _is_same_place(before: Task, after: Task) -> bool:
    return before.flow_key == after.flow_key and place_of(before) == place_of(after)


def _surely(remove: Callable[[], None]) -> None:
    """What a failure leaves behind is stale, and is found when the next task falls due."""
    try:
        remove()
    except Exception as error:
        if not is_of_aws(error):
            raise
        logger.warning("order items left behind", action="order-left", error=str(error))


def _by_line(tasks: Sequence[Task]) -> list[tuple[Line, list[Task]]]:
    by_name = sorted(tasks, key=lambda task: (task.biz_type, str(task.flow_key)))
    return [(line, list(some)) for line, some in groupby(by_name, key=line_of)]


def put_in_line(tasks: Sequence[tuple[Task, Blocked]], now_ms: int) -> list[tuple[Task, Task]]:
    """Blocked tasks, each with what it becomes."""
    return [
        (
            task,
            lifecycle.put_in_line(task, flow_order.waits_until_ms(task, blocked, now_ms), now_ms),
        )
        for task, blocked in tasks
    ]
