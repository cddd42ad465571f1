"""Occurrences of timers: each is called only if its timer still wants it.

The timers of a whole page are read in one request. If they cannot be read, the tasks without a
timer are called, and the page fails when these calls have ended.
"""

from msgspec import Struct

from duewheel.workflows.delivery.gate import BusinessRun, Call, Gate, PageRun
from duewheel.workflows.timers.check_occurrences import Checked, CheckOccurrences


class OccurrenceGate(Gate, Struct, frozen=True):
    check: CheckOccurrences

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        others = [call for call in calls if call.task.occurrence is None]
        if len(others) == len(calls):
            return calls
        try:
            checked = (await self._checked(run.page)).of_business(run.business.biz_type)
        except Exception as error:  # noqa: BLE001 - raised when the calls have ended
            run.failures.append(error)
            return others
        run.put_aside(checked, self._set_aside)
        fire = [Call(task, task.next_ms) for task in checked.fire]
        return sorted([*others, *fire], key=lambda call: call.from_ms)

    async def confirm(self, call: Call, instant_ms: int, run: BusinessRun) -> Call | None:
        task, firing = call.task, run.page.firing
        if task.occurrence is None or firing.is_fresh(task, instant_ms):
            return call
        checked = await self.check.again(task, instant_ms, firing)
        if not checked.fire:
            run.put_aside(checked, self._set_aside)
            return None
        return Call(checked.fire[0], call.from_ms, call.probe)

    async def _checked(self, page: PageRun) -> Checked:
        """One business reads the timers of the page; the others use what it read."""
        async with page.checking:
            if not page.checked:
                check = self.check.of_page(page.occurrences, page.firing, page.earliest_ms)
                page.checked.append(await check)
        return page.checked[0]

    async def _set_aside(self, checked: list[Checked], run: BusinessRun) -> None:
        kept_seconds = run.business.retention_seconds
        for some in checked:
            await self.check.set_aside(some, kept_seconds, run.page.firing)
