"""Fan out on the event loop, by the rule of `fan_out`: nothing that was begun here is still running
when the caller goes on."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def all_of(work: Iterable[Coroutine[None, None, T]]) -> list[T]:
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
    work = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        raise
