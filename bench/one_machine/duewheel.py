"""Duewheel on this machine: its functions in one process, and emulated AWS in another.

Without `is_apart` both are in one process, as in `make local`: then the service cannot be killed
alone, but the clock can be moved.
"""

import http.client
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.one_machine.contenders import Call, Cancelled, Cpu, Created
from bench.one_machine.pacing import paced
from bench.one_machine.processes import GaveUp, Process, python
from bench.one_machine.servers import free_port

BATCH = 500
UP_SECONDS = 120
NOTE = "x" * 250


@dataclass(frozen=True, slots=True)
class Duewheel:
    is_apart: bool = True
    has_batches = True
    recovers_seconds = (
        300  # a page's lease, then the queue's visibility, and the sweep for the rest
    )

    @property
    def name(self) -> str:
        return "Duewheel" if self.is_apart else "Duewheel, `make local`"

    @property
    def settings(self) -> str:
        where = "in a process of its own" if self.is_apart else "in the same process"
        return f"functions in one process, DynamoDB and SQS played by moto, in memory, {where}"

    def missing(self) -> str | None:
        return None

    @contextmanager
    def up(self, folder: Path) -> Iterator["RunningDuewheel"]:
        emulator = None
        try:
            if self.is_apart:
                emulated = python("bench.one_machine.emulated_aws")
                emulator = Process(emulated, folder / "emulator.log", speaks=True)
            running = RunningDuewheel(folder, emulator)
            try:
                running.revive()
                yield running
            finally:
                running.stop()
        finally:
            if emulator is not None:
                emulator.stop()


class RunningDuewheel:
    def __init__(self, folder: Path, emulator: Process | None) -> None:
        self._emulator = emulator
        self._endpoint = f"http://127.0.0.1:{emulator.line()}" if emulator else ""
        self._folder = folder
        self._service: Process | None = None

    def revive(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        environment = {"PORT": str(port), "AWS_ENDPOINT_URL": self._endpoint}
        self._service = Process(
            python("local"), self._folder / "service.log", environment=environment
        )
        self._api = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        give_up = time.monotonic() + UP_SECONDS
        while not self._is_healthy():
            self._service.must_run()
            if time.monotonic() > give_up:
                raise GaveUp(f"the service does not answer:\n{self._service.last_words()}")
            time.sleep(0.05)

    def kill(self) -> None:
        assert self._service is not None
        self._api.close()
        self._service.kill()

    def stop(self) -> None:
        if self._service is not None:
            self._api.close()
            self._service.stop()

    def create(self, calls: Sequence[Call], *, batch: bool = False, pace_ms: float = 0) -> Created:
        self._api.close()  # idle connections are closed
        begun = time.perf_counter()
        if batch:
            starts = range(0, len(calls), BATCH)
            answers = [self._create_batch(calls[start : start + BATCH]) for start in starts]
            ids = [result["task"]["task_id"] for results in answers for result in results]
        else:
            ids = paced(calls, pace_ms, self._create_one)
        return Created(time.perf_counter() - begun, ids)

    def cancel(self, ids: Sequence[Any]) -> Cancelled:
        begun = time.perf_counter()
        statuses = [self.call("DELETE", f"/v1/tasks/{task_id}")[0] for task_id in ids]
        said_yes = sum(status == 200 for status in statuses)
        return Cancelled(time.perf_counter() - begun, said_yes)

    def waiting(self, ids: Sequence[Any]) -> int:
        tasks = [self.call("GET", f"/v1/tasks/{task_id}")[1] for task_id in ids]
        return sum(task["status"] == "pending" for task in tasks)

    def mend(self) -> int:
        return 0  # no recipe is needed

    def cpu(self) -> Cpu:
        server = self._emulator.cpu_seconds() if self._emulator else 0.0
        assert self._service is not None
        return Cpu(self._service.cpu_seconds(), server)

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body)
        self._api.request(method, path, data, {"content-type": "application/json"})
        reply = self._api.getresponse()
        return reply.status, json.loads(reply.read())

    def _create_one(self, call: Call) -> str:
        status, task = self.call("POST", "/v1/tasks", _task(call))
        _must_be(status, 201, task)
        return str(task["task_id"])

    def _create_batch(self, calls: Sequence[Call]) -> list[dict[str, Any]]:
        status, answer = self.call("POST", "/v1/tasks/batch", {"tasks": [*map(_task, calls)]})
        _must_be(status, 200, answer)
        results: list[dict[str, Any]] = answer["results"]
        for result in results:
            _must_be(result["status"], 201, result)
        return results

    def _is_healthy(self) -> bool:
        try:
            return self.call("GET", "/v1/health")[0] == 200
        except OSError:
            self._api.close()
            return False


def _task(call: Call) -> dict[str, Any]:
    return {
        "biz_type": "bench",
        "due_ms": call.due_ms,
        "payload": {"order": 17, "note": NOTE},
        "callback": {"url": call.url},
    }


def _must_be(status: int, wanted: int, answer: object) -> None:
    if status != wanted:
        raise GaveUp(f"{status} and not {wanted}: {answer}")
