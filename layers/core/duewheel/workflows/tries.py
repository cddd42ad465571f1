"""Retries of writes that lost a race, or that DynamoDB throttled.

A lost race shows that another writer was first: its change counts. Of writes for many tasks, side
by side, DynamoDB may throttle some. Successful writes are not repeated: another try makes only the
others.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from duewheel.log import report_lost_race
from duewheel.rules.tasks.task import Task
from duewheel.stores.dynamodb import Throttled
from duewheel.stores.tasks.tasks import TaskStore

X = TypeVar("X")
Outcome = bool | Exception  # True unless another writer was first; or why that is unknown


def until_won(try_once: Callable[[], X | None], tries: int, lost: Exception) -> X:
    """Read and write again while another writer is first, which `try_once` says by None; after so
    many tries raise `lost`."""
    for _ in range(tries):
        if (won := try_once()) is not None:
            return won
    raise lost


def changed_or_logged(tasks: TaskStore, before: Task, after: Task) -> bool:
    """Change the task if it is as it was read; a lost race is logged."""
    is_changed = tasks.change(before, after)
    if not is_changed:
        report_lost_race(before.task_id, before.biz_type)
    return is_changed


class Tries(Generic[X]):
    """Call it until it raises no Throttled. `once` makes one try, and returns the result of each
    write; if it raises, no write was made."""

    def __init__(self, wanted: Sequence[X], once: Callable[[Sequence[X]], list[Outcome]]) -> None:
        self._wanted = wanted
        self._once = once
        self._ended: dict[int, bool] = {}  # by position

    def __call__(self) -> list[bool]:
        left = [number for number in range(len(self._wanted)) if number not in self._ended]
        failures: list[Exception] = []
        outcomes = self._once([self._wanted[number] for number in left]) if left else []
        for number, outcome in zip(left, outcomes, strict=True):
            if isinstance(outcome, Exception):
                failures.append(outcome)
            else:
                self._ended[number] = outcome
        failures.sort(key=_is_refusal)
        if failures:
            raise failures[0]
        return [self._ended[number] for number in range(len(self._wanted))]


def tried(write: Callable[[X], bool]) -> Callable[[X], Outcome]:
    def outcome_of(wanted: X) -> Outcome:
        try:
            return write(wanted)
        except Exception as error:  # noqa: BLE001 - `Tries` raises it when the others are through
            return error

    return outcome_of


def may_be_written(outcome: Outcome) -> bool:
    """A throttled write was not made; after any other failure that is unknown."""
    return outcome is not False and not _is_refusal(outcome)


def _is_refusal(outcome: Outcome) -> bool:
    return isinstance(outcome, Throttled)
