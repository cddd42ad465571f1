"""Batched calls: tasks of a page that go in one request (`rules/delivery/batches.py`).

The last task of a batch is due last, and heads it: the call waits for its instant, takes its turn
and its slot, and the others ride with it. Each task passes the other gates alone.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.batches import grouped, still_together
from duewheel.rules.tasks.task import Task
from duewheel.workflows.delivery.gates import BusinessRun, Call, Gate


class BatchGate(Gate):
    """It stands before the gates that give a call its turn or its place."""

    async def admit(self, calls: list[Call], run: BusinessRun) -> list[Call]:
        if run.business.own.batch is None:
            return calls
        single = [call for call in calls if call.probe is not None]
        tasks = [call.task for call in calls if call.probe is None]
        groups = grouped(sorted(tasks, key=lambda task: task.next_ms), run.business)
        batches = [call_of(group, group[-1].next_ms) for group in groups]
        return sorted([*single, *batches], key=lambda call: call.from_ms)


def call_of(tasks: Sequence[Task], from_ms: int) -> Call:
    """`tasks`: in the order of their instants."""
    return Call(tasks[-1], from_ms, others=tuple(tasks[:-1]))


def confirmed_together(
    calls: Sequence[Call | None], from_ms: int, business: Business
) -> tuple[Call | None, list[Task]]:
    """The batch of the calls that were confirmed one by one, and those that it cannot take any
    more."""
    tasks = [call.task for call in calls if call is not None]
    if not tasks:
        return None, []
    excess: list[Task] = []
    if any(task.occurrence for task in tasks):  # the check of its timer may have changed it
        tasks, excess = still_together(tasks, business)
    return call_of(tasks, from_ms), excess


def after_all(count: int, then: Callable[[], object]) -> Callable[[], None]:
    """A function that calls `then` when it is called for the last of `count` times."""
    left = count

    def one() -> None:
        nonlocal left
        left -= 1
        if not left:
            then()

    return one


def without(call: Call, ended: Sequence[Task]) -> Call | None:
    """The call without these tasks; None if none is left."""
    gone = {task.home for task in ended}
    tasks = [task for task in (*call.others, call.task) if task.home not in gone]
    if not tasks:
        return None
    return replace(call_of(tasks, call.from_ms), probe=call.probe)
