"""Fan out on the event loop, by the rule of `fan_out`: no coroutine begun here is still running
when the caller continues.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def gather_all(work: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Await all coroutines, even if some fail; then raise the first failure."""
    results = await outcomes_of(work)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


async def outcomes_of(work: Iterable[Coroutine[None, None, T]]) -> list[T | BaseException]:
    """Await all coroutines; what each returned or raised."""
    return await asyncio.gather(*work, return_exceptions=True)


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a blocking function on a thread. A thread cannot be stopped: if the caller is cancelled,
    its cancellation waits for the end of the function."""
    return await _to_its_end(asyncio.ensure_future(asyncio.to_thread(function, *arguments)))


def in_threads_of(pool: Executor) -> Callable[[Callable[[], T]], Awaitable[T]]:
    """The same on the threads of a pool, for work that must not wait for a shared thread."""

    async def run(function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await _to_its_end(loop.run_in_executor(pool, copy_context().run, function))

    return run


async def _to_its_end(work: "asyncio.Future[T]") -> T:
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        raise


@asynccontextmanager
async def beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run a coroutine beside the block, and await it at the end: the block has to end it."""
    running = asyncio.create_task(work)
    try:
        yield
    finally:
        await running


async def is_over_before(wait: Coroutine[None, None, None], end: asyncio.Event) -> bool:
    """True if a wait is over before `end` is set."""
    waiting, ending = asyncio.create_task(wait), asyncio.create_task(end.wait())
    await asyncio.wait((waiting, ending), return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if end.is_set():
        waiting.cancel()
    await asyncio.wait((waiting, ending))
    return not end.is_set() and waiting.result() is None


class SideBySide(Generic[T]):
    """Coroutines that are begun one by one. The caller that begins them awaits all outcomes."""

    def __init__(self) -> None:
        self._begun: list[asyncio.Task[T]] = []

    def begin(self, work: Coroutine[None, None, T]) -> None:
        self._begun.append(asyncio.create_task(work))

    async def outcomes(self) -> list[T | BaseException]:
        return await asyncio.gather(*self._begun, return_exceptions=True)
