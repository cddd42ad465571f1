"""Actions in sequence, not faster than a given pace; the same for all contenders."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Subject = TypeVar("Thing")
Done = TypeVar("Done")


def paced(things: Sequence[Subject], pace_ms: float, do: Callable[[Subject], Done]) -> list[Done]:
    """The nth is begun no earlier than n times the pace after the first; late ones at once."""
    begun, done = time.perf_counter(), []
    for number, thing in enumerate(things):
        time.sleep(max(0.0, begun + number * pace_ms / 1000 - time.perf_counter()))
        done.append(do(thing))
    return done
