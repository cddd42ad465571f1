"""Whether an event loop waits for nothing but the clock.

Invariant: `is_idle` is true only while the loop has no handle to run, no job on a thread, and no
timer but those that tidy up. What the loop's thread does is seen as it is, without a pause in which
it might have begun.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any


class LoopWatch:
    """Made on the thread of the loop, before the loop runs. `tidying`: functions, also methods as
    their class has them, whose timers change nothing that anybody waits for."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, tidying: Collection[Callable[..., None]] = ()
    ) -> None:
        self._in_threads = 0  # counted on the loop's thread, so it stays while the loop selects
        self._is_selecting = False
        watched: Any = loop
        run, selector = watched.run_in_executor, watched._selector
        select = selector.select

        def run_in_executor(executor: Any, function: Any, *arguments: Any) -> Any:
            future = run(executor, function, *arguments)
            self._in_threads += 1
            future.add_done_callback(self._ended)
            return future

        def only_tidies() -> bool:
            live = (timer._callback for timer in watched._scheduled if not timer.cancelled())
            return all(getattr(call, "__func__", call) in tidying for call in live)

        def watched_select(timeout: float | None = None) -> Any:
            self._is_selecting = timeout is None or (timeout > 0 and only_tidies())
            try:
                return select(timeout)
            finally:
                self._is_selecting = False

        watched.run_in_executor, selector.select = run_in_executor, watched_select

    @property
    def is_idle(self) -> bool:
        return self._is_selecting and not self._in_threads

    def _ended(self, _: Any) -> None:
        self._in_threads -= 1
