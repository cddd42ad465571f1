"""Limits of a test without a mark: AWS calls, steps of simulated time, processes of Python.

They are counted, since measured times depend on the machine's load. A test that needs more has a
mark with the reason, and only `make test-all` runs it.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

SECOND_OPINION = "SECOND_OPINION"  # the interpreter with ministack, where reads know no short way
LONG = ("exhaustive", "soak", "stack")
LIMITS: Mapping[str, int] = MappingProxyType(
    {"AWS calls": 2_500, "steps of simulated time": 10_000, "Python processes": 4}
)


def quick_first(cases: Iterable[Any], mark: pytest.MarkDecorator, quick: int = 1) -> list[Any]:
    """For `parametrize`: the first cases are run always, the others have the mark."""
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*value, marks=() if number < quick else mark)
        for number, value in enumerate(values)
    ]


class ProcessesBegun:
    """Counts the Python processes that this one has started, by an audit hook, which cannot be
    removed."""

    def __init__(self) -> None:
        self._count = 0
        sys.addaudithook(self._hear)

    def __call__(self) -> int:
        return self._count

    def _hear(self, event: str, of: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            self._count += "python" in str(of[0])


class Bounds:
    """`count_of` returns the current count for each limit."""

    def __init__(self, count_of: Mapping[str, Callable[[], int]]) -> None:
        self._count_of = count_of

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        before = {name: count() for name, count in self._count_of.items()}
        result = yield
        if not is_long(item) and SECOND_OPINION not in os.environ:
            spent = {name: count() - before[name] for name, count in self._count_of.items()}
            over = [f"{n} {name}" for name, n in spent.items() if n > LIMITS[name]]
            assert not over, f"{' and '.join(over)}: mark it as one of {', '.join(LONG)}"
        return result


def is_long(item: pytest.Item) -> bool:
    """Whether the test has a mark, or is a property with more examples than `make test` runs."""
    is_property = item.get_closest_marker("hypothesis") is not None
    if is_property and os.environ.get("HYPOTHESIS_PROFILE") != "quick":
        return True
    return any(item.get_closest_marker(mark) for mark in LONG)
