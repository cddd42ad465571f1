"""Redis and PostgreSQL from Debian's packages, each on a port and in a directory of its own.

Invariant: nothing outside the directory given is written, only loopback is listened on, and both
keep their data through a crash: Redis in an append-only file that is synced every second,
PostgreSQL as it comes, synced at every commit.
"""

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.one_machine.processes import GaveUp, Process, as_user

UP_SECONDS = 30
DATABASE = "postgres"
REDIS_PACKAGE, POSTGRES_PACKAGE = "redis-server", "postgresql"


def redis_binary() -> Path | None:
    found = shutil.which("redis-server")
    return Path(found) if found else None


def postgres_folder() -> Path | None:
    """The folder of `initdb` and `postgres`: Debian installs them outside the path, by version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if found:
        return found[-1].parent
    in_path = shutil.which("initdb")
    return Path(in_path).resolve().parent if in_path else None


@contextmanager
def redis(folder: Path) -> Iterator[tuple[Process, str]]:
    """The server and its URL."""
    binary, port = redis_binary(), free_port()
    assert binary is not None
    command: list[str | Path] = [
        binary,
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        folder,
        "--save",
        "",
    ]
    command += ["--appendonly", "yes", "--appendfsync", "everysec"]
    process = Process(command, folder / "redis.log")
    try:
        _await_port(process, port)
        yield process, f"redis://127.0.0.1:{port}/0"
    finally:
        process.stop()


@contextmanager
def postgres(folder: Path) -> Iterator[tuple[Process, str]]:
    """The server and its URL. It does not run as root, so root starts it as another user."""
    binaries, port, user = postgres_folder(), free_port(), _somebody()
    assert binaries is not None
    data = folder / "postgres"
    data.mkdir(mode=0o700)
    if user is not None:
        shutil.chown(data, user)
    _as(user, [binaries / "initdb", "-D", data, "-U", "bench", "--auth=trust", "--no-sync"])
    command: list[str | Path] = [binaries / "postgres", "-D", data, "-p", str(port), "-k", data]
    command += ["-c", "listen_addresses=127.0.0.1"]
    process = Process(command, folder / "postgres.log", user=user)

    def takes_connections() -> bool:
        ready: list[str | Path] = [
            binaries / "pg_isready",
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            str(port),
        ]
        return subprocess.run(ready, check=False).returncode == 0

    try:
        _await(process, takes_connections)
        yield process, f"postgresql://bench@127.0.0.1:{port}/{DATABASE}"
    finally:
        process.stop()


def version_of(binary: Path) -> str:
    done = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _version(initdb: Path) -> int:
    return int(initdb.parent.parent.name)


def _somebody() -> str | None:
    """None: the present user."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _as(user: str | None, command: list[Path | str]) -> None:
    made = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd="/", **as_user(user)
    )
    if made.returncode:
        raise GaveUp(f"{command[0]} failed:\n{made.stderr}")


def _await_port(process: Process, port: int) -> None:
    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    _await(process, answers)


def _await(process: Process, is_up: Callable[[], bool]) -> None:
    give_up = time.monotonic() + UP_SECONDS
    while not is_up():
        process.must_run()
        if time.monotonic() > give_up:
            raise GaveUp(f"{process.name} did not start:\n{process.last_words()}")
        time.sleep(0.1)
