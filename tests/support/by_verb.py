"""For tests that a target of the Makefile runs on its build results, by paths in the environment.

The lines of `said` are printed at the end of the run.
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
    """pytest calls this hook in each conftest that imports it."""
    for line in said:
        terminalreporter.write_line(line)
