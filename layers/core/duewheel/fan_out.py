"""Fan blocking calls out to threads.

Invariant: when `fan_out` returns or raises, none of its calls is still running. Lambda freezes an
environment when its handler returns and may thaw it minutes later: a running write would then be
carried out in a changed wheel.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")


def fan_out(
    pool: ThreadPoolExecutor, function: Callable[..., T], *arguments: Iterable[Any]
) -> list[T]:
    """`map` on threads. Makes every call, even if some fail; then raises the first failure, by the
    order of the arguments. An exception that ends the process (not an `Exception`) is raised at
    once."""
    calls = list(zip(*arguments, strict=True))
    if len(calls) == 1:
        return [function(*calls[0])]
    begun: list[Future[T]] = []
    try:
        for call in calls:
            begun.append(pool.submit(function, *call))
    except Exception:
        _wait(begun)
        raise
    _wait(begun)
    return [future.result() for future in begun]


def _wait(begun: Iterable[Future[T]]) -> None:
    left = set(begun)
    while left:
        ended, left = wait(left, return_when=FIRST_EXCEPTION)
        for future in ended:
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                for one in left:
                    one.cancel()
                raise error
