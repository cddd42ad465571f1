"""Checks a world after each request that may have changed an item."""

from collections.abc import Callable

from tests.support.recorder import Call
from tests.support.world import World

_READS = ("Query", "GetItem", "BatchGetItem", "ReceiveMessage")


class Looks:
    """`found` has to return an empty list after every request."""

    def __init__(self, world: World, found: Callable[[World], object]) -> None:
        self.number = 0
        self._world = world
        self._found = found
        world.recorder.after = self._look

    def _look(self, call: Call) -> None:
        if call.operation in _READS:
            return
        self._world.recorder.after = None  # not after requests of the check itself
        assert self._found(self._world) == [], call.operation
        self._world.recorder.after = self._look
        self.number += 1
