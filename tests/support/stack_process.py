"""The local stack as a separate process, which ends with its standard input."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.page_blocks import ROOT

_IS_UP = re.compile(r"Duewheel is up on (http://\S+),")
_NOT_INHERITED = ("AWS_", "DUEWHEEL_", "PYTEST_")


def clean_environment() -> dict[str, str]:
    """The environment of this process, without variables that name a service or an account."""
    return {name: text for name, text in os.environ.items() if not name.startswith(_NOT_INHERITED)}


@contextmanager
def local_stack(settings: Mapping[str, str]) -> Iterator[str]:
    """Run a stack until the block ends; yields its address."""
    lines: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-m", "local"],
        cwd=ROOT,
        env={
            **clean_environment(),
            "PORT": "0",
            **settings,
            "PYTHONPATH": "layers/core",
            "PYTHONUNBUFFERED": "1",
            "END_WITH_STDIN": "on",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if up := _IS_UP.match(line):
                yield up[1]
                break
        else:
            raise AssertionError("The local stack did not start: " + "".join(lines))
        process.stdin.close()
        process.stdout.read()
