"""Writes for many tasks, side by side, of which DynamoDB may throttle some.

Successful writes are not made again: another try goes on with the others.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from duewheel.stores.conditional_writes import Throttled

X = TypeVar("X")
Outcome = bool | Exception  # whether no other writer was faster, or why that is unknown


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
