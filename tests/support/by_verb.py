"""For tests that a verb of the Makefile runs with what it has built, by paths in the environment.

What they put into `said` is printed at the end.
"""

import os
from pathlib import Path
from typing import Any

import pytest

said: list[str] = []


def given(variable: str, verb: str) -> Path:
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set: these tests are run by `make {verb}`")
    return Path(os.environ[variable])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A hook of every conftest that imports it."""
    for line in said:
        terminalreporter.write_line(line)
