"""What the verdict says of bulk operations."""

from msgspec.structs import replace

from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import address_at
from tests.simulation.operators import BULKED, SHIFT_SECONDS, Bulk, Ended, judged_bulk
from tests.support.clock import NOON_MS

DUE_MS = NOON_MS + 60_000
TASK = Task.at(address_at(DUE_MS, b"8 bytes!"), BULKED, DUE_MS, NOON_MS)
ID = TASK.task_id
MOVED = replace(TASK, due_ms=DUE_MS + SHIFT_SECONDS * 1000)
TWICE = replace(TASK, due_ms=DUE_MS + 2 * SHIFT_SECONDS * 1000)
CANCELLED = replace(TASK, status=Status.CANCELLED)


def wrong(action: str, task: Task, ended: Ended) -> int:
    return len(list(judged_bulk(Bulk(action, "bulked~1", {ID: DUE_MS}), ended, {ID: task}, [])))


def test_a_task_that_was_changed_once_and_counted_is_right() -> None:
    assert wrong("reschedule", MOVED, Ended("done", 1, 0, [])) == 0
    assert wrong("cancel", CANCELLED, Ended("done", 1, 0, [])) == 0
    assert wrong("cancel", TASK, Ended("done", 0, 0, [ID])) == 0


def test_a_task_that_was_changed_twice_or_not_at_all_is_wrong() -> None:
    assert wrong("reschedule", TWICE, Ended("done", 1, 0, [])) == 1
    assert wrong("reschedule", TASK, Ended("done", 1, 0, [])) == 1
    assert wrong("cancel", TASK, Ended("done", 1, 0, [])) == 1


def test_a_task_that_is_counted_twice_is_wrong() -> None:
    assert wrong("cancel", CANCELLED, Ended("done", 1, 1, [])) == 1
    assert wrong("cancel", TASK, Ended("done", 0, 0, [ID, ID])) == 1


def test_an_operation_that_has_not_ended_is_wrong() -> None:
    assert wrong("cancel", CANCELLED, Ended("running", 1, 0, [])) == 1
