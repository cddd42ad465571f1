# Made of _async/seen.py by make_sync.py; change that.
"""The record of tasks that are done, for receivers that are called at least once."""

from collections import OrderedDict
from threading import Lock
from typing import Protocol

from duewheel.verifying import Claim


class Seen(Protocol):
    """All receiving processes share it: for example a table with an item for each task id.

    `claim` has to be one atomic step. A claim has to end some time after the callback's timeout,
    since the process that made it may die.
    """

    def claim(self, task_id: str) -> Claim: ...

    def done(self, task_id: str) -> None: ...

    def release(self, task_id: str) -> None: ...


class SeenInMemory:
    """Keeps the latest `remembered_max` tasks, in this process."""

    def __init__(self, remembered_max: int = 100_000) -> None:
        self._remembered_max = remembered_max
        self._done: OrderedDict[str, None] = OrderedDict()
        self._busy: set[str] = set()
        self._lock = Lock()

    def claim(self, task_id: str) -> Claim:
        with self._lock:
            if task_id in self._done:
                return "done"
            if task_id in self._busy:
                return "busy"
            self._busy.add(task_id)
            return "mine"

    def done(self, task_id: str) -> None:
        with self._lock:
            self._busy.discard(task_id)
            self._done[task_id] = None
            if len(self._done) > self._remembered_max:
                self._done.popitem(last=False)

    def release(self, task_id: str) -> None:
        with self._lock:
            self._busy.discard(task_id)
