"""The local stack, in a separate process, since the service's package has the same name as this
one.

The wheel contains it, and `duewheel[local]` its requirements; in a checkout, it is the checkout's
stack.
"""

import os
import re
import subprocess
import sys
from collections import deque
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

from duewheel.errors import DuewheelError
from duewheel.instants import rfc3339

IN_WHEEL = Path(__file__).parent / "_stack"
IN_CHECKOUT = Path(__file__).parents[3]
START_SECONDS = 60.0
STOP_SECONDS = 10.0
LINES_KEPT = 50
IS_UP = re.compile(r"Duewheel is up on (http://\S+),")
# Variables that would change which stack is started.
NOT_INHERITED = (
    "PORT",
    "FAULTS",
    "SEED",
    "PYTHONPATH",
    "LOCAL_AUTH",
    "FROZEN_AT",
    "END_WITH_STDIN",
)


class LocalStackFailed(DuewheelError):
    """The stack did not start; the message is its output."""


def stack_root() -> Path:
    for root in (IN_WHEEL, IN_CHECKOUT):
        if (root / "template.yaml").is_file() and (root / "local/__main__.py").is_file():
            return root
    raise LocalStackFailed("This installation carries no local stack")


def stack_environment(port: int) -> dict[str, str]:
    """Its path has the service's core before all installed packages, this one among them."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if name not in NOT_INHERITED and not name.startswith("AWS_")
    }
    core = str(stack_root() / "layers/core")
    return {**kept, "PORT": str(port), "PYTHONPATH": core, "PYTHONUNBUFFERED": "1"}


class LocalStack:
    """`with LocalStack() as stack:` runs it on a free port until the block or this process ends.
    With `frozen_at` its clock is frozen there from the start."""

    def __init__(self, port: int = 0, *, frozen_at: datetime | None = None) -> None:
        self._port = port
        self._frozen_at = "" if frozen_at is None else rfc3339(frozen_at)
        self._is_up_or_over = Event()
        self._output_lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.url = ""

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "local"],
            cwd=stack_root(),
            env={
                **stack_environment(self._port),
                "FROZEN_AT": self._frozen_at,
                "END_WITH_STDIN": "on",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a Ctrl-C is for the parent, which may still need the stack
        )
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._is_up_or_over.wait(START_SECONDS)
        if not self.url:
            self.stop()
            raise LocalStackFailed("The local stack did not start:\n" + "".join(self._output_lines))

    def _listen(self) -> None:
        """Read to the end: a process whose output is not read blocks once the pipe is full."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._output_lines.append(line)
            if not self.url and (up := IS_UP.match(line)):
                self.url = up[1]
                self._is_up_or_over.set()
        self._is_up_or_over.set()

    def stop(self) -> None:
        """A stack that does not end by itself is killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(STOP_SECONDS)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
