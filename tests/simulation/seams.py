"""What takes the place of threads, sleeps, chance and the network, in the SDK and in the wiring.

Invariant: while it does, what happens, and in which order, follows from the seed alone.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import botocore.endpoint

from duewheel.stores.keys import KeyStore
from duewheel.stores.tasks import TaskStore
from duewheel.wiring import api as api_wiring
from duewheel.wiring import creating as creating_wiring
from duewheel.wiring import notifier as notifier_wiring
from duewheel.wiring import scheduler as scheduler_wiring
from duewheel.wiring import sweeper as sweeper_wiring
from duewheel.wiring import wheel as wheel_wiring
from duewheel.workflows import limit_creates
from tests.simulation.receiver import Receiver
from tests.simulation.virtual_time import Turns

Sleep = Callable[[float], None]

_POOLED = (api_wiring, creating_wiring, notifier_wiring, scheduler_wiring, sweeper_wiring)


@contextmanager
def replaced(turns: Turns, sleep: Sleep, chance: Random, receiver: Receiver) -> Iterator[None]:
    with ExitStack() as stack:
        for target, name, replacement in _replacements(turns, sleep, chance, receiver):
            stack.enter_context(patch.object(target, name, replacement))
        yield


def _replacements(
    turns: Turns, sleep: Sleep, chance: Random, receiver: Receiver
) -> Iterator[tuple[Any, str, Any]]:
    yield asyncio, "to_thread", turns.run
    yield botocore.endpoint, "time", _Sleeper(sleep)
    yield notifier_wiring, "HttpTarget", receiver.target
    yield notifier_wiring.Notifier, "run", lambda _, work: turns.wait_for(work)
    yield notifier_wiring.random, "random", chance.random
    yield wheel_wiring.secrets, "token_bytes", chance.randbytes
    for module in _POOLED:
        yield module, "ThreadPoolExecutor", OneByOne
    yield wheel_wiring, "KeyStore", _key_store
    yield limit_creates, "Lock", lambda: _Lock(sleep)


class OneByOne:
    """A pool without threads: the order of things must not depend on them."""

    def __init__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        return map(function, *arguments)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001 - as a pool hands it on
            future.set_exception(error)
        return future


class _Lock:
    """For what is held during AWS calls: whoever waits for it gives its turn away. In AWS no two
    runs of a function share one, since each has a process of its own."""

    def __init__(self, sleep: Sleep) -> None:
        self._sleep = sleep
        self._is_held = False

    def __enter__(self) -> None:
        while self._is_held:
            self._sleep(0.001)
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False


class _Sleeper:
    """Stands where the SDK looks for `time`: it waits between its tries."""

    def __init__(self, sleep: Sleep) -> None:
        self.sleep = sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def _key_store(tasks: TaskStore) -> KeyStore:
    return KeyStore(tasks, OneByOne())  # type: ignore[arg-type]
