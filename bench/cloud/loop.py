"""A small event loop on virtual time: the clock moves from event to event.

A story is a generator that yields the instant at which it continues, or a signal to wait for.
"""

import heapq
from collections.abc import Callable, Generator
from itertools import count
from typing import Any, TypeVar


class Signal:
    """After it has fired, waiting stories continue, and later ones do not wait."""

    def __init__(self) -> None:
        self.is_fired = False
        self.waiting: list[Story[Any]] = []


T = TypeVar("T")
Story = Generator[float | Signal, None, T]


class Loop:
    def __init__(self) -> None:
        self.now_ms = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()  # orders events of the same instant by their creation

    def at(self, when_ms: float, step: Callable[..., None], *arguments: Any) -> None:
        when_ms = max(when_ms, self.now_ms)
        heapq.heappush(self._events, (when_ms, next(self._numbers), step, arguments))

    def start(self, story: Story[Any]) -> None:
        try:
            wait = next(story)
        except StopIteration:
            return
        if not isinstance(wait, Signal):
            self.at(wait, self.start, story)
        elif wait.is_fired:
            self.at(self.now_ms, self.start, story)
        else:
            wait.waiting.append(story)

    def fire(self, signal: Signal) -> None:
        signal.is_fired = True
        for story in signal.waiting:
            self.at(self.now_ms, self.start, story)
        signal.waiting.clear()

    def run(self, until_ms: float) -> None:
        while self._events and self._events[0][0] <= until_ms:
            self.now_ms, _, step, arguments = heapq.heappop(self._events)
            step(*arguments)
