"""A mark says that an operation has changed the task, also beside those of others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.bulk.marks import MARKS_MAX, AlreadyMarked, is_marked, marked
from duewheel.rules.bulk.requests import mark_at
from duewheel.rules.tasks.task import Task
from tests.support.limited_business import a_task

TASK = a_task(1, 60_000)


def of(number: int) -> str:
    return mark_at(number, bytes(4))


def after(numbers: list[int]) -> Task:
    task = TASK
    for number in numbers:
        task = marked(task, of(number))
    return task


def test_a_task_that_no_operation_has_changed_has_no_mark() -> None:
    assert TASK.marks is None
    assert not is_marked(TASK, of(1))


@given(st.lists(st.integers(0, 50), unique=True, max_size=2 * MARKS_MAX), st.integers(0, 50))
def test_the_last_marks_are_kept_and_none_is_made_twice(numbers: list[int], another: int) -> None:
    task, kept = after(numbers), numbers[-MARKS_MAX:]
    assert [number for number in range(51) if is_marked(task, of(number))] == sorted(kept)
    if another in kept:
        with pytest.raises(AlreadyMarked):
            marked(task, of(another))
    else:
        assert is_marked(marked(task, of(another)), of(another))
