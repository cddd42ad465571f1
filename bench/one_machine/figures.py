"""Evaluates arrivals: which tasks were called, how often, how late. Pure.

Invariant: every task that had to be called is counted, as delivered or as lost. Delivered: a call
of it was answered; the first answered call gives the lateness.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CURVE_POINTS = 100

Arrival = tuple[int, float, bool]  # the task's number, when it came, whether it was answered


class NothingCalled(Exception):
    """There is no lateness."""


@dataclass(frozen=True, slots=True)
class Arrived:
    delivered: int
    lost: int
    repeated: int
    early: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    last_ms: float  # the last first call, by the sink's clock
    curve_ms: tuple[float, ...]  # lateness from the least to the most, at equal shares


def arrived(due_ms: Mapping[int, int], arrivals: Sequence[Arrival]) -> Arrived:
    """`due_ms` by the number of each task; arrivals in their order."""
    first: dict[int, float] = {}
    for number, at_ms, answered in arrivals:
        if answered:
            first.setdefault(number, at_ms)
    times = Counter(number for number, _, _ in arrivals)
    if unknown := times.keys() - due_ms.keys():
        raise ValueError(f"unexpected calls: {sorted(unknown)[:5]}")
    late = sorted(at_ms - due_ms[number] for number, at_ms in first.items())
    if not late:
        raise NothingCalled("nothing was called at all")
    return Arrived(
        delivered=len(first),
        lost=len(due_ms) - len(first),
        repeated=sum(calls > 1 for calls in times.values()),
        early=sum(ms < 0 for ms in late),
        p50_ms=percentile(late, 50),
        p99_ms=percentile(late, 99),
        max_ms=late[-1],
        last_ms=max(first.values()),
        curve_ms=tuple(
            round(percentile(late, 100 * n / CURVE_POINTS), 1) for n in range(CURVE_POINTS + 1)
        ),
    )


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The nearest rank: a measured value."""
    rank = -(-len(ascending) * percent // 100)  # rounded up
    return ascending[max(0, int(rank) - 1)]
