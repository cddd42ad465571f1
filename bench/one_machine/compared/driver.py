"""The commands to each of the compared systems, a line of JSON each, and its answers.

Runs in the environment of the compared packages; nothing of Duewheel is imported here.

    {"do": "create", "calls": [[due_ms, url], ...], "batch": false, "pace_ms": 0}
        -> {"seconds": ..., "ids": [...]}
    {"do": "cancel", "ids": [...]} -> {"seconds": ..., "said_yes": n}
    {"do": "waiting"}              -> {"number": n}, of jobs stored and not begun
    {"do": "mend"}                 -> {"number": n}, of jobs that its documented recipe gave back
"""

import json
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from bench.one_machine.pacing import paced

BATCH = 500


class System(Protocol):
    def create(self, due_ms: int, url: str) -> Any:
        """The id that it is cancelled by."""

    def cancel(self, identifier: Any) -> bool:
        """Whether the system answers that the call will not be made."""

    def waiting(self) -> int: ...

    def mend(self) -> int: ...


@runtime_checkable
class Batching(System, Protocol):
    def create_batch(self, due_ms: int, urls: Sequence[str]) -> None: ...


def serve(system: System) -> None:
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(system, json.loads(line))), flush=True)


def _answer(system: System, command: dict[str, Any]) -> dict[str, Any]:
    begun = time.perf_counter()
    match command["do"]:
        case "create" if command["batch"]:
            ids: list[Any] = []
            assert isinstance(system, Batching)
            for due_ms, urls in _batches(command["calls"]):
                system.create_batch(due_ms, urls)
        case "create":
            ids = paced(command["calls"], command["pace_ms"], lambda call: system.create(*call))
        case "cancel":
            yes = sum(map(system.cancel, command["ids"]))
            return {"seconds": time.perf_counter() - begun, "said_yes": yes}
        case "waiting":
            return {"number": system.waiting()}
        case "mend":
            return {"number": system.mend()}
        case unknown:
            raise ValueError(unknown)
    return {"seconds": time.perf_counter() - begun, "ids": ids}


def _batches(calls: Sequence[Sequence[Any]]) -> list[tuple[int, list[str]]]:
    """All calls of a batch are due at the same instant."""
    (due_ms,) = {due_ms for due_ms, _ in calls}
    urls = [url for _, url in calls]
    return [(due_ms, urls[start : start + BATCH]) for start in range(0, len(urls), BATCH)]
