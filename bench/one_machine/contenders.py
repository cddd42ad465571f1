"""The measured systems, with one interface.

Invariant: a system has ports and a folder of its own, and is removed afterwards. `kill` is a `kill
-9` of its workers; the server that stores the tasks runs on.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Call:
    due_ms: int
    url: str


@dataclass(frozen=True, slots=True)
class Created:
    seconds: float
    ids: list[Any]


@dataclass(frozen=True, slots=True)
class Cancelled:
    seconds: float
    said_yes: int


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU seconds of the process that runs the tasks, and of the server that stores them."""

    own: float
    server: float

    def since(self, before: "Cpu") -> "Cpu":
        return Cpu(self.own - before.own, self.server - before.server)


class Running(Protocol):
    def create(
        self, calls: Sequence[Call], *, batch: bool = False, pace_ms: float = 0
    ) -> Created: ...

    def cancel(self, ids: Sequence[Any]) -> Cancelled: ...

    def waiting(self, ids: Sequence[Any]) -> int:
        """How many of these tasks are still pending. There must be no others."""

    def mend(self) -> int:
        """The recipe of its documentation after the crash of a worker. Returns the number of tasks
        given back."""

    def kill(self) -> None: ...

    def revive(self) -> None: ...

    def cpu(self) -> Cpu: ...


class Contender(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> str: ...

    @property
    def has_batches(self) -> bool: ...

    @property
    def recovers_seconds(self) -> int:
        """How long after a kill calls may still be made without help."""

    def missing(self) -> str | None:
        """The packages that are missing."""

    def up(self, folder: Path) -> AbstractContextManager[Running]: ...
