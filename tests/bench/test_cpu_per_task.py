"""`make bench-cpu` measures something: tasks are created, called and settled on its way."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
def test_it_runs_to_its_end_and_prints_both_sides_of_the_ratio() -> None:
    """In a process of its own, whose environment it fills."""
    printed = subprocess.run(
        [sys.executable, "-m", "bench.cpu_per_task", "--rounds", "1", "--tasks", "101"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/core"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for row in (
        "a delivered task",
        "a delivered task, on a new connection",
        "a create",
        "a create, in a batch of 500",
        "a task read, in a page of 100",
        "a task settled, of 25",
        "an UpdateItem of boto3",
    ):
        found = re.findall(rf"^\| {row} \| ([0-9.]+) ms \| ([0-9.]+) \|", printed, re.MULTILINE)
        ((own, ratio),) = found
        assert float(own) > 0
        assert float(ratio) > 0
