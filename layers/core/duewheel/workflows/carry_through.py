"""Carry several things through side by side: what fails does not stand in the way of the rest."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TypeVar

T = TypeVar("T")


async def all_of(work: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Whatever fails, everything else is carried through before the first failure is raised."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
