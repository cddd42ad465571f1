"""The tasks of a flow key in order: one at a time, each after the end of those before it.

Of the tasks of a key in a page the first one is called, if nothing ahead of it is live; the others
wait in the run, and follow when its end is durable. What may not be called is put aside without an
attempt. A task that waits for longer than FRESH_MS after its line was read reads it again.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.tasks.flow_order import Blocked, line_of, place_of
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.workflows.delivery.gates import AHEAD_MS, BusinessRun, Call, Gate
from duewheel.workflows.gather_all import in_thread, outcomes_of
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.keep_order import KeepOrder, put_in_line
from duewheel.workflows.tasks.reschedule import Reschedule

FRESH_MS = 1_000

InLine = tuple[Task, Blocked]


class OrderGate(Gate, Struct, frozen=True, kw_only=True):
    clock: Clock
    keep_order: KeepOrder
    reschedule: Reschedule
    retry_throttled: RetryThrottled

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        admitted: list[Call] = []
        lines: dict[str | None, list[Task]] = defaultdict(list)
        for call in calls:
            if run.business.keeps_order(call.task.flow_key):
                lines[call.task.flow_key].append(call.task)
            else:
                admitted.append(call)
        if not lines:
            return calls
        begun = [self._first(sorted(tasks, key=place_of), run) for tasks in lines.values()]
        for first in await outcomes_of(begun):
            if isinstance(first, Exception):
                run.failures.append(first)
            elif isinstance(first, BaseException):
                raise first
            else:
                admitted += first
        return sorted(admitted, key=lambda call: call.from_ms)

    async def confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        task = call.task
        if not run.business.keeps_order(task.flow_key):
            return call
        # Not yet if its timer has got another key.
        read_ms = run.lines_read_ms.get((task.home, task.flow_key), 0)
        if instant_ms <= read_ms + FRESH_MS:
            return call
        await self.clock.sleep_until_ms(instant_ms - AHEAD_MS)
        blocked = await self._blocked(call.task, run)
        if blocked is None:
            return call
        run.put_aside((call.task, blocked), self._put_in_line)
        return None

    async def ended(self, call: Call, run: BusinessRun) -> list[Call]:
        _, *waiting = run.lines.pop(call.task.flow_key, [call.task])
        if not waiting:
            return []
        await run.page.settler.until_tried(call.task.home)
        return await self._first(waiting, run)

    def not_admitted(self, homes: set[Address], run: BusinessRun) -> None:
        for flow_key, (first, *waiting) in list(run.lines.items()):
            if first.home in homes:
                del run.lines[flow_key]
                self._put_aside(waiting, Blocked(self.clock.now_ms()), run)

    def over(self, run: BusinessRun) -> None:
        """Tasks whose predecessor this run did not call."""
        for _, *waiting in run.lines.values():
            self._put_aside(waiting, Blocked(self.clock.now_ms()), run)
        run.lines.clear()

    async def _first(self, tasks: Sequence[Task], run: BusinessRun) -> list[Call]:
        """The call of the first task of a line; the others wait for its end. One that is blocked
        before its instant is looked at again right before it."""
        first, *others = tasks
        blocked = await self._blocked(first, run)
        if blocked is not None and self.clock.now_ms() < first.next_ms - AHEAD_MS:
            run.lines_read_ms[first.home, first.flow_key] = 0
            blocked = None
        if blocked is None:
            run.lines[first.flow_key] = [first, *others]
            return [Call(first, first.next_ms)]
        self._put_aside(tasks, blocked, run)
        return []

    def _put_aside(self, tasks: Sequence[Task], blocked: Blocked, run: BusinessRun) -> None:
        for task in tasks:
            run.put_aside((task, blocked), self._put_in_line)

    async def _blocked(self, task: Task, run: BusinessRun) -> Blocked | None:
        run.lines_read_ms[task.home, task.flow_key] = self.clock.now_ms()
        look = partial(self.keep_order.blocked, task)
        return await self.retry_throttled(look, run.page.deadline_ms)

    async def _put_in_line(self, tasks: list[InLine], run: BusinessRun) -> None:
        changes = put_in_line(tasks, self.clock.now_ms())
        await self.retry_throttled(self.reschedule.tries(changes), run.page.deadline_ms)
        lines = dict.fromkeys(line_of(task) for task, _ in tasks)
        await in_thread(self.keep_order.look_again, lines)
