"""The two links to the notifiers. SQS: its pollers, their number and their batches.

The number of pollers grows while messages wait, as fast as AWS documents, up to the maximum of the
mapping.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from random import Random

from bench import limits
from bench.cloud.assumed import (
    ASYNCHRONOUS,
    INVOKED_AGAIN_MS,
    QUEUE,
    RAMP_STEP_MS,
    SEND,
    Knobs,
)
from bench.cloud.functions import Failed, Functions
from bench.cloud.loop import Loop, Story
from duewheel.rules.wheel.queue_messages import Message


@dataclass(frozen=True)
class Ramp:
    """The number of invocations that pollers may run at once."""

    at_first: float
    a_minute: float
    most: float


def ramp_of(knobs: Knobs) -> Ramp:
    if knobs.provisioned_pollers:
        each = limits.PROVISIONED_INVOCATIONS_EACH.value
        at_first = knobs.provisioned_pollers * each
        ramp = Ramp(at_first, 0, at_first)  # the minimum and maximum in template.yaml
    else:
        most = min(limits.POLLERS_MOST.value, knobs.notifiers_max)
        at_first = min(limits.POLLERS_AT_FIRST.value, most)
        ramp = Ramp(at_first, limits.POLLERS_A_MINUTE.value, most)
    return Ramp(ramp.most, ramp.a_minute, ramp.most) if knobs.is_warm else ramp


class Queue:
    def __init__(self, loop: Loop, random: Random, knobs: Knobs, functions: Functions) -> None:
        self._loop = loop
        self._random = random
        self._knobs = knobs
        self._functions = functions
        self._ramp = ramp_of(knobs)
        self._allowed = self._ramp.at_first
        self._running = 0
        self._visible: deque[Message] = deque()
        self._is_growing = False
        self.lost = 0

    def send(self, messages: Sequence[Message], delays_ms: Sequence[int] = ()) -> Story[None]:
        """The messages of one request, at once or each with its delay."""
        yield self._loop.now_ms + SEND.drawn(self._random)
        accepted: dict[int, list[Message]] = {}
        for message, delay_ms in zip(messages, delays_ms or repeat(0), strict=False):
            if self._random.random() < self._knobs.lost_messages:
                self.lost += 1
            else:
                accepted.setdefault(delay_ms, []).append(message)
        for delay_ms, together in accepted.items():
            if delay_ms:
                self._loop.at(self._loop.now_ms + delay_ms, self._appear, *together)
            else:
                self._appear(*together)

    def _poll(self) -> None:
        while self._visible and self._running < int(self._allowed):
            size = min(len(self._visible), self._knobs.messages_per_run)
            batch = [self._visible.popleft() for _ in range(size)]
            self._running += 1
            arrives_ms = self._loop.now_ms + QUEUE.drawn(self._random)
            self._loop.at(arrives_ms, self._functions.invoke, batch, self._ended)
        if self._visible and not self._is_growing and self._allowed < self._ramp.most:
            self._is_growing = True
            self._loop.at(self._loop.now_ms + RAMP_STEP_MS, self._grow)

    def _grow(self) -> None:
        """While messages wait; if none waits, the number stays."""
        self._is_growing = False
        if self._visible:
            grown = self._ramp.a_minute * RAMP_STEP_MS / 60_000
            self._allowed = min(self._ramp.most, self._allowed + grown)
        self._poll()

    def _ended(self, failed: Sequence[Failed]) -> None:
        """The end of one run. Failed messages become visible again at their instants."""
        self._running -= 1
        for one in failed:
            self._loop.at(self._loop.now_ms + one.again_after_ms, self._appear, one.message)
        self._poll()

    def _appear(self, *messages: Message) -> None:
        self._visible.extend(messages)
        self._poll()


class DirectLink:
    """Asynchronous invocation: no pollers, no growth but Lambda's own, and each run is a request.
    Lambda repeats a failed run after a minute."""

    def __init__(self, loop: Loop, random: Random, knobs: Knobs, functions: Functions) -> None:
        self._loop = loop
        self._random = random
        self._knobs = knobs
        self._functions = functions

    def send(self, messages: Sequence[Message], delays_ms: Sequence[int] = ()) -> Story[None]:
        """The messages of one run. There is no delay: an early message waits in the notifier."""
        yield self._loop.now_ms + SEND.drawn(self._random)
        self._arrive(messages)

    def _arrive(self, messages: Sequence[Message], after_ms: float = 0) -> None:
        arrives_ms = self._loop.now_ms + after_ms + ASYNCHRONOUS.drawn(self._random)
        self._loop.at(arrives_ms, self._functions.invoke, messages, self._ended)

    def _ended(self, failed: Sequence[Failed]) -> None:
        if failed:
            self._arrive([one.message for one in failed], INVOKED_AGAIN_MS)
