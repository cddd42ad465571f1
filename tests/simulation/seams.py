"""What takes the place of threads, sleeps, chance and the network, in the SDK and in the wiring.

Invariant: while it does, what happens, and in which order, follows from the seed alone.
"""

import asyncio
import concurrent.futures
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random
from types import ModuleType
from typing import Any
from unittest.mock import patch

import botocore.endpoint

from duewheel.stores.tasks.keys import KeyStore
from duewheel.wiring import notifier, wheel
from duewheel.workflows.delivery import hold
from duewheel.workflows.tasks import check_admission
from tests.simulation.invocation import at_work
from tests.simulation.receiver import Receiver
from tests.simulation.turn_pool import TurnPool, awaited
from tests.simulation.virtual_time import ReservedTurns

Sleep = Callable[[float], None]
KEY_READERS = 8


@contextmanager
def replaced(
    turns: ReservedTurns,
    sleep: Sleep,
    chance: Random,
    receiver: Receiver,
) -> Iterator[None]:
    with ExitStack() as stack:
        replacements = [*_of_libraries(turns, sleep, chance), *_of_service(turns, sleep, receiver)]
        for target, name, replacement in replacements:
            stack.enter_context(patch.object(target, name, replacement))
        yield


def _of_libraries(
    turns: ReservedTurns, sleep: Sleep, chance: Random
) -> Iterator[tuple[Any, str, Any]]:
    yield asyncio, "to_thread", partial(_in_thread, turns)
    yield botocore.endpoint, "time", _Sleeper(sleep)
    yield random, "random", chance.random
    yield secrets, "token_bytes", chance.randbytes
    yield secrets, "randbelow", chance.randrange


def _of_service(
    turns: ReservedTurns, sleep: Sleep, receiver: Receiver
) -> Iterator[tuple[Any, str, Any]]:
    yield notifier, "HttpTarget", receiver.target
    yield notifier.Notifier, "run", lambda _, work: turns.wait_for(work)
    yield notifier, "in_threads_of", lambda _: partial(_in_thread, turns)
    pool = partial(TurnPool, turns)
    for module in modules():
        if vars(module).get("ThreadPoolExecutor") is ThreadPoolExecutor:
            yield module, "ThreadPoolExecutor", pool
        if vars(module).get("wait") is concurrent.futures.wait:
            yield module, "wait", awaited
    yield wheel, "KeyStore", lambda tasks: KeyStore(tasks, pool(KEY_READERS))
    for module in (check_admission, hold):
        yield module, "Lock", lambda: _Lock(sleep)


def modules() -> list[ModuleType]:
    """What calls go through; the targets are stood in for as a whole."""
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("duewheel.") and not name.startswith("duewheel.targets")
    ]


async def _in_thread(turns: ReservedTurns, function: Callable[..., Any], /, *arguments: Any) -> Any:
    def work() -> Any:
        with at_work():
            return function(*arguments)

    return await turns.run(work)


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
