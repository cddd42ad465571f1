"""Time that passes only when nothing is left to do, and threads of which one runs at a time.

Coroutines run on one event loop whose clock jumps to the next timer. Blocking code runs in threads
that are handed the turn and hand it back when they sleep, so a sleep costs nothing and the order of
all that happens is the same in every run.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread, current_thread
from typing import Any, TypeVar

T = TypeVar("T")


class Stalled(Exception):
    """Everybody waits, and nothing is going to happen any more."""


class VirtualLoop(asyncio.SelectorEventLoop):
    steps = 0  # of all loops, since this process began

    def __init__(self) -> None:
        self.virtual_seconds = 0.0
        super().__init__(_JumpingSelector(self))
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self.virtual_seconds


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        VirtualLoop.steps += 1
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise Stalled
        self._loop.virtual_seconds += max(0.0, timeout)
        return []


class ReservedTurns:
    """Runs blocking functions, each in a thread of its own, never two at a time."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.tasks: set[asyncio.Task[Any]] = set()  # of what was spawned

    async def run(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """For coroutines: what `asyncio.to_thread` does, with turns."""
        self._loop = asyncio.get_running_loop()
        worker = self._idle.pop() if self._idle else _Worker()
        context = copy_context()
        worker.begin(lambda: context.run(function, *arguments, **named))
        while True:
            wanted = worker.wait()
            if wanted is None:
                self._idle.append(worker)
                return worker.result()  # type: ignore[no-any-return]
            try:
                worker.resume(await wanted)
            except BaseException as error:  # noqa: BLE001 - raised again in the worker
                worker.resume_with(error)

    def spawn(self, function: Callable[..., Any], *arguments: Any) -> None:
        """For blocking code: let something run in a thread of its own, at once with it."""
        # From a worker's turn: the loop stands still meanwhile, so this is safe.
        assert self._loop is not None
        task = self._loop.create_task(self.run(function, *arguments))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def is_given(self) -> bool:
        """Whether it is blocking code that asks, which has a turn that it may give away."""
        return isinstance(current_thread(), _Worker)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """For blocking code: let a coroutine run on the loop and wait for it."""
        worker = current_thread()
        assert isinstance(worker, _Worker), "only a worker may give its turn away"
        return worker.give_turn(work)  # type: ignore[no-any-return]

    def sleep(self, seconds: float) -> None:
        self.wait_for(asyncio.sleep(max(0.0, seconds)))

    def end(self) -> None:
        for worker in self._idle:
            worker.begin(None)
            worker.join()


class _Worker(Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._jobs: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._wanted: SimpleQueue[Coroutine[Any, Any, Any] | None] = SimpleQueue()
        self._granted: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._outcome: tuple[Any, BaseException | None] = (None, None)
        self.start()

    def begin(self, job: Callable[[], Any] | None) -> None:
        self._jobs.put(job)

    def wait(self) -> Coroutine[Any, Any, Any] | None:
        """What it wants done before it goes on; None when it has finished."""
        return self._wanted.get()

    def result(self) -> Any:
        value, error = self._outcome
        if error is not None:
            raise error
        return value

    def resume(self, value: Any) -> None:
        self._granted.put((value, None))

    def resume_with(self, error: BaseException) -> None:
        self._granted.put((None, error))

    def give_turn(self, work: Coroutine[Any, Any, Any]) -> Any:
        self._wanted.put(work)
        value, error = self._granted.get()
        if error is not None:
            raise error
        return value

    def run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._outcome = (job(), None)
            except BaseException as error:  # noqa: BLE001 - raised where it was begun
                self._outcome = (None, error)
            self._wanted.put(None)
