"""The compared systems, each with its server, its worker and a driver that creates jobs.

They run in an environment of their own, `.venv-bench`, which `make bench` makes.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.one_machine import servers
from bench.one_machine.contenders import Call, Cancelled, Cpu, Created
from bench.one_machine.processes import ROOT, Process

PYTHON = ROOT / ".venv-bench/bin/python"
_MODULES = "bench.one_machine.compared"
THREADS = "64"
PREPARED_SECONDS = 60

Server = Callable[[Path], AbstractContextManager[tuple[Process, str]]]


@dataclass(frozen=True, slots=True)
class Compared:
    """`worker` is None where the driver itself runs the tasks."""

    name: str
    settings: str
    server: Server
    url_variable: str
    driver: str
    needs: Callable[[], str | None]
    worker: tuple[str, ...] | None = None
    prepare: tuple[str, ...] | None = None
    has_batches: bool = False
    recovers_seconds: int = 15
    environment: Mapping[str, str] = field(default_factory=dict)

    def missing(self) -> str | None:
        return self.needs()

    @contextmanager
    def up(self, folder: Path) -> Iterator["RunningCompared"]:
        with self.server(folder) as (server, url):
            running = RunningCompared(self, server, folder, {self.url_variable: url})
            try:
                running.start()
                yield running
            finally:
                running.stop()


class RunningCompared:
    def __init__(
        self, system: Compared, server: Process, folder: Path, environment: dict[str, str]
    ) -> None:
        self._system, self._server, self._folder = system, server, folder
        self._environment = {**environment, **system.environment}
        self._driver: Process | None = None
        self._worker: Process | None = None

    def start(self) -> None:
        if self._system.prepare is not None:
            self._process(self._system.prepare, "prepare").must_succeed(PREPARED_SECONDS)
        self._start_driver()
        self._start_worker()

    def create(self, calls: Sequence[Call], *, batch: bool = False, pace_ms: float = 0) -> Created:
        pairs = [(call.due_ms, call.url) for call in calls]
        command = {"do": "create", "calls": pairs, "batch": batch, "pace_ms": pace_ms}
        return Created(**self._ask(command))

    def cancel(self, ids: Sequence[Any]) -> Cancelled:
        return Cancelled(**self._ask({"do": "cancel", "ids": [*ids]}))

    def waiting(self, ids: Sequence[Any]) -> int:
        return int(self._ask({"do": "waiting"})["number"])

    def mend(self) -> int:
        return int(self._ask({"do": "mend"})["number"])

    def kill(self) -> None:
        self._works().kill()

    def revive(self) -> None:
        if self._system.worker is None:
            self._start_driver()
        self._start_worker()

    def cpu(self) -> Cpu:
        return Cpu(self._works().cpu_seconds(), self._server.cpu_seconds())

    def stop(self) -> None:
        for process in (self._worker, self._driver):
            if process is not None:
                process.stop()

    def _works(self) -> Process:
        """Starts the process that runs the tasks."""
        works = self._worker or self._driver
        assert works is not None
        return works

    def _start_driver(self) -> None:
        module = f"{_MODULES}.{self._system.driver}"
        self._driver = self._process(("-m", module), "driver", speaks=True)
        self._driver.line()  # it is ready

    def _start_worker(self) -> None:
        if self._system.worker is not None:
            self._worker = self._process(self._system.worker, "worker")

    def _process(self, command: tuple[str, ...], name: str, *, speaks: bool = False) -> Process:
        return Process(
            [PYTHON, *command],
            self._folder / f"{name}.log",
            environment=self._environment,
            speaks=speaks,
        )

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._driver is not None
        self._driver.tell(json.dumps(command))
        answer: dict[str, Any] = json.loads(self._driver.line())
        return answer


def _needs_redis() -> str | None:
    return None if servers.redis_binary() else f"Debian's package {servers.REDIS_PACKAGE}"


def _needs_postgres() -> str | None:
    return None if servers.postgres_folder() else f"Debian's package {servers.POSTGRES_PACKAGE}"


def celery(name: str = "Celery", **environment: str) -> Compared:
    visibility = environment.get("VISIBILITY_SECONDS", "3600")
    acks = "when it is done (`acks_late`)" if "ACKS_LATE" in environment else "when it begins"
    return Compared(
        name=name,
        settings=(
            "Redis with an append-only file synced every second, "
            f"visibility timeout {visibility} s, a pool of {THREADS} threads, "
            f"a task is acknowledged {acks}"
        ),
        server=servers.redis,
        url_variable="REDIS_URL",
        driver="celery_system",
        needs=_needs_redis,
        worker=(
            *("-m", "celery", "-A", f"{_MODULES}.celery_system", "worker"),
            *("--pool", "threads", "--concurrency", THREADS, "--loglevel", "WARNING"),
        ),
        recovers_seconds=int(visibility) + 25,
        environment=environment,
    )


PROCRASTINATE = Compared(
    name="Procrastinate",
    settings=(
        f"PostgreSQL as it comes, {THREADS} tasks at once, asks for due jobs every 0.5 s "
        "(by default 5 s)"
    ),
    server=servers.postgres,
    url_variable="POSTGRES_URL",
    driver="procrastinate_system",
    needs=_needs_postgres,
    prepare=(
        "-m",
        "procrastinate",
        "--app",
        f"{_MODULES}.procrastinate_system.app",
        "schema",
        "--apply",
    ),
    worker=(
        *("-m", "procrastinate", "--app", f"{_MODULES}.procrastinate_system.app", "worker"),
        *("--concurrency", THREADS, "--fetch-job-polling-interval", "0.5"),
    ),
    has_batches=True,
    recovers_seconds=40,
)


def apscheduler(name: str = "APScheduler 3", **environment: str) -> Compared:
    grace = "dropped when a second late" if "MISFIRE" in environment else "no misfire grace"
    return Compared(
        name=name,
        settings=f"PostgreSQL as it comes, {THREADS} threads, {grace}, one process for all",
        server=servers.postgres,
        url_variable="POSTGRES_URL",
        driver="apscheduler_system",
        needs=_needs_postgres,
        environment=environment,
    )
