"""Steer a pending task: whatever a caller changes wins, or is told that it came too late.

A change is one conditional update of the home, begun and answered before the cut-off by
this clock. An earlier instant gets its entry first, and the home names it in that update.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules import settlement, wheel
from duewheel.rules.access import ANYTHING, Permit
from duewheel.rules.addresses import Address
from duewheel.rules.change import needs_new_entry
from duewheel.rules.refusals import AlreadySettled, TooLate, no_such_task
from duewheel.rules.task import Task
from duewheel.stores.keys import KeyStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter
from duewheel.workflows.unavailable import unavailable_when_throttled

# Between read and write somebody else may change the task; each loss shows who was first.
_TRIES = 3


class Steer(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    reenter: Reenter
    lead_ms: int
    notifier_lives_ms: int

    def __call__(
        self, home: Address, alter: Callable[[Task, int], Task], permit: Permit = ANYTHING
    ) -> Task:
        """`alter` says what the task becomes, given how it stands and the time."""
        for _ in range(_TRIES):
            task = self.find(home, permit)
            if not task.is_live:
                raise AlreadySettled(f"The task is {task.status.value} already.")
            if (altered := self._try(task, alter)) is not None:
                return altered
        raise TooLate("The task is being worked on: its call may be under way.")

    def find(self, home: Address, permit: Permit = ANYTHING) -> Task:
        task = self.tasks.get(home)
        if task is None or task.is_internal or settlement.is_gone(task, self.clock.now_ms()):
            raise no_such_task()
        permit.check_found(task.biz_type, no_such_task())
        return task

    def _try(self, task: Task, alter: Callable[[Task, int], Task]) -> Task | None:
        if task.parked:
            return self._while_parked(task, alter)
        cut_off_ms = wheel.cut_off_ms(task.next_ms, self.lead_ms)
        now_ms = self.clock.now_ms()
        if now_ms >= cut_off_ms:
            raise TooLate(
                "The cut-off has passed: the call may be under way.", cut_off_ms=cut_off_ms
            )
        altered = alter(task, now_ms)
        if altered.is_live and needs_new_entry(altered, now_ms):
            entry = self.reenter.put(task.home, altered.next_ms)
            altered = settlement.brought_to(altered, entry)
        if not self._write(task, altered):
            return None
        if altered.entry != task.entry:
            self.reenter.announce([altered.entry])
        if self.clock.now_ms() >= cut_off_ms:
            # Written, but answered after the cut-off: a notifier may have read the task before.
            raise TooLate(
                "The change was written, but only after the cut-off: the call may be under way.",
                cut_off_ms=cut_off_ms,
            )
        return altered

    def _while_parked(self, task: Task, alter: Callable[[Task, int], Task]) -> Task | None:
        """Nothing of it is on its way, so nothing is too late, unless its message came twice: then
        another notifier, which did not know of the pause, may have it in hand. Its release will
        find it as it is left here; one that ends is booked by the sweep, at an entry that is yet
        to be swept."""
        now_ms = self.clock.now_ms()
        if task.entry.direct and now_ms < self._direct_over_ms(task):
            raise TooLate(
                "It was parked so lately that another notifier may be calling it.",
                cut_off_ms=wheel.cut_off_ms(task.next_ms, self.lead_ms),
            )
        altered = alter(task, now_ms)
        if not altered.is_live:
            altered = replace(altered, entry=self.reenter.put(task.home, now_ms))
        return altered if self._write(task, altered) else None

    def _write(self, before: Task, after: Task) -> bool:
        with unavailable_when_throttled():
            is_written = self.tasks.change(before, after)
        if is_written and not after.is_live:
            self.keys.release([after])
        return is_written

    def _direct_over_ms(self, task: Task) -> int:
        return wheel.direct_over_ms(task.entry.second, self.notifier_lives_ms)
