"""The pause of a business: its tasks are parked when they fall due.

A page reads the settings of its businesses before its tasks are due. A task that is called at its
instant is called by these. For a task that waited, for a turn or a slot, the settings are at most
KEPT_MS old: if its business is paused by then the task is parked; if the business was deleted the
task falls due again.
"""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.businesses.settings import Business
from duewheel.rules.tasks.task import Task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.workflows.delivery.gate import BusinessRun, Call, Gate
from duewheel.workflows.delivery.park_tasks import Park
from duewheel.workflows.gather_all import in_thread
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule

AHEAD_MS = 150  # long enough for the request, so that a turn is not late for it
WAITED_MS = 250  # less is no wait, and reads nothing


class PauseGate(Gate, Struct, frozen=True, kw_only=True):
    clock: Clock
    known: BusinessCache
    park: Park
    reschedule: Reschedule
    retry_throttled: RetryThrottled

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        if not run.business.paused:
            return calls
        for call in calls:
            run.put_aside(call.task, self._park)
        return []

    async def confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        if instant_ms - max(call.task.next_ms, run.begun_ms) < WAITED_MS:
            return call
        await self.clock.sleep_until_ms(instant_ms - AHEAD_MS)
        business = await self._read(run)
        if business.paused:
            run.put_aside(call.task, self._park)
        elif run.business.version and not business.version:  # deleted
            run.put_aside(call.task, self._postpone)
        else:
            return call
        return None

    async def _read(self, run: BusinessRun) -> Business:
        """One task reads the settings; the others of the page use what it read."""
        biz_type = run.business.biz_type
        async with run.reading:
            kept = self.known.kept(biz_type)
            return await in_thread(self.known.one, biz_type) if kept is None else kept

    async def _park(self, tasks: list[Task], run: BusinessRun) -> None:
        await self.retry_throttled(self.park(tasks), run.page.deadline_ms)

    async def _postpone(self, tasks: list[Task], run: BusinessRun) -> None:
        await self.retry_throttled(self.reschedule.postponed(tasks), run.page.deadline_ms)
