"""Processes side by side, each a world of its own.

Invariant: none outlives the one that began them, however that one ends; being killed is no
exception.
"""

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


def in_worlds(work: Callable[..., T], each: Sequence[Any], *more: Sequence[Any]) -> list[T]:
    """As `map`, with a process for each piece of work."""
    # As an exception an interrupt would have to wait here until the worlds are done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(len(each), get_context("spawn"), _end_with_the_parent) as worlds:
        return list(worlds.map(work, each, *more))


def _end_with_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, too
    Thread(target=_await_its_end, daemon=True).start()


def _await_its_end() -> None:
    """The system closes what the parent holds open, whatever ended it."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
