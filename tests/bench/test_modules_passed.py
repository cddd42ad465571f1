"""A warm create, and the delivery of a page, pass no more modules than they do today."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = {"POST /v1/tasks": 35, "the delivery of a page": 53}


@pytest.mark.soak
def test_a_create_and_a_delivery_pass_no_more_modules_than_today() -> None:
    """In a process of its own, whose environment it fills."""
    printed = subprocess.run(
        [sys.executable, "-m", "bench.modules_passed"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/core"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    passed = dict(re.findall(r"^(.+) passes ([0-9]+) modules", printed, re.MULTILINE))
    assert passed.keys() == MOST.keys()
    for name, most in MOST.items():
        assert int(passed[name]) <= most
