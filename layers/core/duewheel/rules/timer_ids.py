"""The ids of timers: whole numbers, so that a client that reads JSON into doubles keeps them."""

import re

from duewheel.rules.refusals import UnknownTimer

_SMALLEST = 2**40
_BEYOND = 2**53
ID_RANGE = _BEYOND - _SMALLEST

_DECIMAL = re.compile("[1-9][0-9]{12,15}")


def timer_id_of(random_number: int) -> str:
    """`random_number`: from 0, below `ID_RANGE`."""
    return str(_SMALLEST + random_number)


def checked_timer_id(text: str) -> str:
    """What is no id is the id of no timer."""
    if not _DECIMAL.fullmatch(text) or not _SMALLEST <= int(text) < _BEYOND:
        raise no_such_timer()
    return text


def no_such_timer() -> UnknownTimer:
    return UnknownTimer("There is no timer with this id.", "timer_id")
