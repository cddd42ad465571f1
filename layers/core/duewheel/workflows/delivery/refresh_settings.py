"""Read the settings of a business again for tasks that waited in a notifier, for a turn or a slot.

A page reads the settings of its businesses before its tasks are due. A task that is called at its
instant is called by these. For a task that waited the settings are at most KEPT_MS old. If its
business is paused by then the task is parked; if it was deleted the task falls due again.
"""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.postponement import come_up_again, spread_unbegun
from duewheel.rules.tasks.task import Task
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.workflows.delivery.page_calls import Run
from duewheel.workflows.delivery.park_tasks import Park
from duewheel.workflows.gather_all import in_thread
from duewheel.workflows.retry_throttled import RetryThrottled
from duewheel.workflows.tasks.reschedule import Reschedule

AHEAD_MS = 150  # long enough for the request, so that a turn is not late for it
WAITED_MS = 250  # less is no wait, and asks for nothing


class RefreshSettings(Struct, frozen=True):
    clock: Clock
    known: BusinessCache
    park: Park
    reschedule: Reschedule
    retry_throttled: RetryThrottled

    async def __call__(self, task: Task, instant_ms: int, run: Run) -> bool:
        """Called right before the call at this instant: False if the task must not be called."""
        if instant_ms - max(task.next_ms, run.begun_ms) < WAITED_MS:
            return True
        await self.clock.sleep_until_ms(instant_ms - AHEAD_MS)
        now = await self._now(run)
        if now.paused:
            run.paused.append(task)
        elif run.business.version and not now.version:
            run.deleted.append(task)
        else:
            return True
        return False

    async def set_aside(self, run: Run) -> None:
        """Park or postpone the tasks that must not be called."""
        now_ms, deadline_ms = self.clock.now_ms(), run.delivery.deadline_ms
        if run.paused:
            await self.retry_throttled(self.park(run.paused), deadline_ms)
        if run.deleted:
            again = [(task, come_up_again(task, now_ms)) for task in run.deleted]
            await self.retry_throttled(self.reschedule.tries(again), deadline_ms)
        if run.unbegun:
            changes = spread_unbegun(run.unbegun, now_ms)
            await self.retry_throttled(self.reschedule.tries(changes), deadline_ms)
            logger.info(
                "calls not begun",
                action="not-begun",
                biz_type=run.business.biz_type,
                count=len(changes),
            )

    async def _now(self, run: Run) -> Business:
        """One task reads the settings; the others of the page use what it read."""
        biz_type = run.business.biz_type
        async with run.asking:
            kept = self.known.kept(biz_type)
            return await in_thread(self.known.one, biz_type) if kept is None else kept
