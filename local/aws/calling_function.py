"""Which function asks for what is being done: one process plays them all, with one set of clients.

Invariant: whoever asks is known wherever a run is at work, in its coroutines and in its pools'
threads too. Where nobody is known, nothing is asked of AWS.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar
from unittest.mock import patch

from local.aws.policies import Role

T = TypeVar("T")

# None: somebody who looks on, as a test does, and may do anything.
asking: ContextVar[Role | None] = ContextVar("asking")


def as_function(role: Role, handler: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same handler, whose AWS calls are asked for by this role."""

    def asked(event: Any, context: Any) -> Any:
        token = asking.set(role)
        try:
            return handler(event, context)
        finally:
            asking.reset(token)

    return asked


def as_onlooker(work: Callable[[], T]) -> T:
    """What is done for the operator, past the functions."""
    context = copy_context()
    context.run(asking.set, None)
    return context.run(work)


@contextmanager
def pools_keep_the_context() -> Iterator[None]:
    """A pool's threads work for whoever handed the work in. Coroutines and `asyncio.to_thread`
    need no help."""
    submit = ThreadPoolExecutor.submit

    def submit_with_context(
        pool: ThreadPoolExecutor, work: Callable[..., Any], /, *arguments: Any, **named: Any
    ) -> "Future[Any]":
        return submit(pool, copy_context().run, work, *arguments, **named)

    with patch.object(ThreadPoolExecutor, "submit", submit_with_context):
        yield
