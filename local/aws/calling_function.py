"""The function that makes an AWS call: one process runs all functions, with one set of clients.

Invariant: the function is known everywhere in a run, also in its coroutines and in the threads of
its pools. Without a known function no AWS call is made.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar
from unittest.mock import patch

from local.aws.policies import Role

T = TypeVar("T")

# None: an observer, such as a test, who may do anything.
asking: ContextVar[Role | None] = ContextVar("asking")


def as_function(role: Role, handler: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same handler, whose AWS calls are made by this role."""

    def run(event: Any, context: Any) -> Any:
        token = asking.set(role)
        try:
            return handler(event, context)
        finally:
            asking.reset(token)

    return run


def as_onlooker(work: Callable[[], T]) -> T:
    """Work for the operator, by no function."""
    context = copy_context()
    context.run(asking.set, None)
    return context.run(work)


@contextmanager
def pools_keep_the_context() -> Iterator[None]:
    """A pool's threads keep the context of the submitter. Coroutines and `asyncio.to_thread` do so
    anyway."""
    submit = ThreadPoolExecutor.submit

    def submit_with_context(
        pool: ThreadPoolExecutor, work: Callable[..., Any], /, *arguments: Any, **named: Any
    ) -> "Future[Any]":
        return submit(pool, copy_context().run, work, *arguments, **named)

    with patch.object(ThreadPoolExecutor, "submit", submit_with_context):
        yield
