"""The handlers on moto, as in tests/functions, and a summary at the end of a run."""

import logging
from collections import Counter

import pytest

from duewheel.log import logger
from tests.functions.conftest import wired

__all__ = ["wired"]


@pytest.fixture(autouse=True)
def _logging_off(caplog: pytest.LogCaptureFixture) -> None:
    """A line for each of thousands of calls would hide the findings."""
    caplog.set_level(logging.CRITICAL, logger=logger.name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    calls = [
        dict(report.user_properties)["fuzz"]
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if "fuzz" in dict(report.user_properties)
    ]
    if not calls:
        return
    from tests.fuzz.refusals import ROWS

    counts: Counter[str] = sum(map(Counter, calls), Counter())
    of_requests = {name: counts.pop(name, 0) for name in ("requests", "allowed", "forbidden")}
    counted = ", ".join(f"{count:,} {name}" for name, count in of_requests.items())
    terminalreporter.write_line(f"fuzzed {len(calls)} calls: {counted}")
    rows = {f"{row.problem}: {row.why}" for row in ROWS}
    for name, count in sorted(counts.items()):
        terminalreporter.write_line(f"  {count:6,} {name}")
    if unused := sorted(rows - set(counts)):
        terminalreporter.write_line(f"  not needed: {', '.join(unused)}")
