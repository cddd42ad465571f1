"""A mark says that an operation has changed the task, also beside those of others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.bulk.marks import MARKS_MAX, AlreadyMarked, is_marked, marked
from duewheel.rules.bulk.requests import mark_at
from duewheel.rules.refusals import VersionMismatch
from tests.support.limited_business import a_task

TASK = a_task(1, 60_000)


def of(number: int) -> str:
    return mark_at(number, bytes(4))


def test_a_task_that_no_operation_has_changed_has_no_mark() -> None:
    assert TASK.marks is None
    assert not is_marked(TASK, of(1))


@given(st.lists(st.integers(0, 20), max_size=6 * MARKS_MAX))
def test_no_operation_changes_a_task_twice_in_whatever_order_they_come(numbers: list[int]) -> None:
    task, changed = TASK, set[int]()
    for number in numbers:
        try:
            task = marked(task, of(number))
        except AlreadyMarked:
            assert number in changed
        except VersionMismatch:
            assert sum(other > number for other in changed) >= MARKS_MAX
        else:
            assert number not in changed
            changed.add(number)


def test_as_many_marks_are_kept_as_there_may_be_open_operations() -> None:
    task = TASK
    for number in range(1, MARKS_MAX + 2):
        task = marked(task, of(number))
    assert not is_marked(task, of(1))
    assert all(is_marked(task, of(number)) for number in range(2, MARKS_MAX + 2))
    with pytest.raises(VersionMismatch):
        marked(task, of(1))
