"""Looks at a world after each request that may have changed something."""

from collections.abc import Callable

from tests.support.recorder import Call
from tests.support.world import World

_READS = ("Query", "GetItem", "BatchGetItem", "ReceiveMessage")


class Looks:
    """`found` is to be empty, whatever the request was."""

    def __init__(self, world: World, found: Callable[[World], object]) -> None:
        self.number = 0
        self._world = world
        self._found = found
        world.recorder.after = self._look

    def _look(self, call: Call) -> None:
        if call.operation in _READS:
            return
        self._world.recorder.after = None  # not at what the look itself asks for
        assert self._found(self._world) == [], call.operation
        self._world.recorder.after = self._look
        self.number += 1
