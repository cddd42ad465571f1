"""The open operations of all callers: how many there may be, and which one has the next turn.

A caller has numbers for its open operations, and a create takes one that is free: so creates at the
same time make no more. Workers take seats. Each has an operation for a turn, and goes on with one
of the caller whose operations were worked on longest ago.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from operator import attrgetter

from msgspec import Struct

from duewheel.rules.bulk.operation import OPEN_MAX, Operation
from duewheel.rules.refusals import TooManyOperations

OPEN_OF_CALLER_MAX = 20
OPEN_IN_ALL_MAX = 200

WORKERS = 3  # at once, also in an account with ten invocations at once
WORKERS_OF_CALLER_MAX = 2  # so that one is left for the others
# A worker without an operation waits for one whose pace lets it go on so soon.
WAIT_MS_MAX = 2_000

_caller, _biz_type = attrgetter("created_by"), attrgetter("biz_type")
_worked_on_ms = attrgetter("worked_on_ms")


class Marker(Struct, frozen=True):
    """That an operation is open, under a number of its caller."""

    caller: str
    number: int
    operation_id: str


class OpenOnes(Struct, frozen=True):
    """The open operations, and the markers of those that have ended."""

    operations: list[Operation]
    ended: list[Marker]


def free_numbers(markers: Sequence[Marker], caller: str, biz_type: str) -> list[int]:
    """Those under which the caller may make an operation of the business."""
    of_business = sum(one.operation_id.startswith(f"{biz_type}~") for one in markers)
    taken = {one.number for one in markers if one.caller == caller}
    free = [number for number in range(OPEN_OF_CALLER_MAX) if number not in taken]
    if of_business >= OPEN_MAX:
        raise _too_many(f"{OPEN_MAX} of a business")
    if not free:
        raise _too_many(f"{OPEN_OF_CALLER_MAX} of a caller")
    if len(markers) >= OPEN_IN_ALL_MAX:
        raise _too_many(f"{OPEN_IN_ALL_MAX} in all")
    return free


def _too_many(most: str) -> TooManyOperations:
    return TooManyOperations(f"At most {most} may be open. Wait for one, or stop one.")


def in_turn(operations: Iterable[Operation]) -> list[Operation]:
    """One of each caller, then another of each, and so on, those first that were worked on longest
    ago. Likewise the businesses of a caller."""
    return _in_rounds(
        _in_rounds(sorted(some, key=_worked_on_ms) for some in _groups(of_caller, _biz_type))
        for of_caller in _groups(operations, _caller)
    )


def free_ones(operations: Sequence[Operation], now_ms: int) -> list[Operation]:
    """Those that a worker may take, in turn."""
    busy = Counter(one.created_by for one in operations if one.has_worker(now_ms))
    return [
        one
        for one in in_turn(operations)
        if one.is_free(now_ms) and busy[one.created_by] < WORKERS_OF_CALLER_MAX
    ]


def wait_ms(operations: Iterable[Operation], now_ms: int) -> int | None:
    """Until the next turn of an operation without a worker; None if none comes soon."""
    waits = [one.lease_until_ms - now_ms for one in operations if one.owner is None]
    return min((wait for wait in waits if 0 < wait <= WAIT_MS_MAX), default=None)


def _groups(
    operations: Iterable[Operation], name_of: Callable[[Operation], str]
) -> list[list[Operation]]:
    groups: dict[str, list[Operation]] = {}
    for one in operations:
        groups.setdefault(name_of(one), []).append(one)
    return list(groups.values())


def _in_rounds(groups: Iterable[list[Operation]]) -> list[Operation]:
    ordered = sorted(groups, key=lambda some: max(map(_worked_on_ms, some)))
    return [one for some in zip_longest(*ordered) for one in some if one is not None]
