"""Tests without a mark are quick, according to counts; the Makefile leaves out exactly the marked
tests."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.bounds import LIMITS, LONG, Bounds, ProcessesBegun
from tests.support.cases import each_case
from tests.support.rights_in_use import LONG_PART, QUICK_PART

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text("utf-8")
CALLS = "AWS calls"


def run(spent: int, *marks: str) -> None:
    """A test that makes so many calls, under a bound."""
    made = 0
    item: Any = SimpleNamespace(get_closest_marker=lambda name: name if name in marks else None)
    hook = Bounds({CALLS: lambda: made}).pytest_runtest_call(item)
    next(hook)
    made = spent
    with pytest.raises(StopIteration):
        hook.send(None)


def test_a_test_without_a_mark_may_make_as_many_calls_as_the_limit() -> None:
    run(LIMITS[CALLS])


def test_a_test_without_a_mark_that_makes_more_calls_fails() -> None:
    with pytest.raises(AssertionError, match=f"{LIMITS[CALLS] + 1} {CALLS}"):
        run(LIMITS[CALLS] + 1)


@each_case("mark", LONG)
def test_a_test_with_a_mark_for_long_tests_may_make_more_calls(mark: str) -> None:
    run(LIMITS[CALLS] + 1, mark)


def test_a_property_may_make_more_calls_with_more_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "suite")
    run(LIMITS[CALLS] + 1, "hypothesis")
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "quick")
    with pytest.raises(AssertionError):
        run(LIMITS[CALLS] + 1, "hypothesis")


def test_only_processes_of_python_are_counted() -> None:
    begun = ProcessesBegun()
    subprocess.run(["true"], check=True)
    assert begun() == 0
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert begun() == 1


def test_make_leaves_out_and_runs_later_the_tests_with_these_marks() -> None:
    assert f'QUICK := -m "{QUICK_PART}"' in MAKEFILE
    assert f'LONG := -m "{LONG_PART}"' in MAKEFILE
