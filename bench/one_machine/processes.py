"""Processes that the benchmark starts: each in a session of its own, ended with all its children.

Invariant: processes that were started here are ended here; no other process is touched.
"""

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
END_SECONDS = 15
_TICKS = os.sysconf("SC_CLK_TCK")


class GaveUp(Exception):
    """A measured system failed; the others are still measured."""


class Process:
    """Its output goes to `log`, or is read by `line` if it `speaks`. It runs as `user`."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
        speaks: bool = False,
    ) -> None:
        self._log: IO[bytes] = log.open("ab")
        self.running: subprocess.Popen[bytes] = subprocess.Popen(
            [str(part) for part in command],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'layers/core'}:{ROOT}",
                **(environment or {}),
            },
            stdin=subprocess.PIPE if speaks else subprocess.DEVNULL,
            stdout=subprocess.PIPE if speaks else self._log,
            stderr=self._log,
            start_new_session=True,
            **as_user(user),
        )
        self.name = " ".join(map(str, command))
        self.log = log

    def line(self) -> str:
        """The next line that it prints."""
        assert self.running.stdout is not None
        line = self.running.stdout.readline().decode()
        if not line:
            raise GaveUp(f"{self.name} ended:\n{self.last_words()}")
        return line.rstrip("\n")

    def tell(self, line: str) -> None:
        assert self.running.stdin is not None
        self.running.stdin.write(line.encode() + b"\n")
        self.running.stdin.flush()

    def must_run(self) -> None:
        if self.running.poll() is not None:
            raise GaveUp(f"{self.name} ended:\n{self.last_words()}")

    def must_succeed(self, within_seconds: float) -> None:
        try:
            status = self.running.wait(within_seconds)
        except subprocess.TimeoutExpired:
            status = None
        self.stop()
        if status != 0:
            raise GaveUp(f"{self.name} did not succeed:\n{self.last_words()}")

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])

    def kill(self) -> None:
        """`kill -9`, its children included."""
        self._signal(signal.SIGKILL)
        self.running.wait(END_SECONDS)
        self._close()

    def stop(self) -> None:
        if self.running.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self.running.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self.running.wait(END_SECONDS)
        self._close()

    def cpu_seconds(self) -> float:
        """CPU time of it and its children so far; ended children are in their parent's sum."""
        return sum(_used(stat) for stat in _tree(self.running.pid))

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.running.pid, number)
        except ProcessLookupError:
            return  # it has ended by itself

    def _close(self) -> None:
        for pipe in (self.running.stdin, self.running.stdout, self._log):
            if pipe is not None:
                pipe.close()


def python(module: str, *arguments: str) -> list[str]:
    """A module of this repository, in the environment that this runs in."""
    return [sys.executable, "-m", module, *arguments]


def as_user(user: str | None) -> dict[str, Any]:
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _tree(root: int) -> list[list[str]]:
    """The fields of /proc of a process and its descendants, from the state on."""
    stats: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                text = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            stats[int(entry.name)] = text.rpartition(")")[2].split()
    found = [root]
    for pid in found:
        found += [child for child, stat in stats.items() if int(stat[1]) == pid]
    return [stats[pid] for pid in found if pid in stats]


def _used(stat: list[str]) -> float:
    return sum(int(ticks) for ticks in stat[11:15]) / _TICKS
