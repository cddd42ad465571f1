"""The machine and versions of a measurement."""

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.one_machine import servers
from bench.one_machine.compared_systems import PYTHON

BUSY_LOAD = 0.5
PACKAGES = ("celery", "redis", "procrastinate", "apscheduler", "sqlalchemy", "psycopg")


@dataclass(frozen=True, slots=True)
class Conditions:
    day: str
    cores: int
    processor: str
    python: str
    load_before: float
    servers: tuple[str, ...]
    packages: dict[str, str]

    @property
    def is_busy(self) -> bool:
        """Other processes were busy when the run began."""
        return self.load_before > BUSY_LOAD


def of_this_machine() -> Conditions:
    postgres, redis = servers.postgres_folder(), servers.redis_binary()
    binaries = [redis, postgres / "postgres" if postgres else None]
    return Conditions(
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        python=platform.python_version(),
        load_before=round(os.getloadavg()[0], 1),
        servers=tuple(servers.version_of(binary) for binary in binaries if binary),
        packages=_versions(),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _versions() -> dict[str, str]:
    code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
    done = subprocess.run(
        [PYTHON, "-c", code, *PACKAGES], check=True, capture_output=True, text=True
    )
    return dict(zip(PACKAGES, done.stdout.split(), strict=True))
