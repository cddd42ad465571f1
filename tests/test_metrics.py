"""What a process counts, whoever counts it, is taken once."""

from concurrent.futures import ThreadPoolExecutor

from duewheel.metrics import Counts
from duewheel.rules.embedded_metrics import DEAD, DELIVERED, LATENESS


def test_what_is_taken_is_counted_anew() -> None:
    counts = Counts()
    counts.add(DELIVERED, 2)
    counts.add(DELIVERED)
    counts.add(DEAD, 0)
    counts.measured(LATENESS, 0)
    taken = counts.take()
    assert (dict(taken.counts), dict(taken.values)) == ({DELIVERED: 3}, {LATENESS: [0]})
    again = counts.take()
    assert (dict(again.counts), dict(again.values)) == ({}, {})


def test_nothing_is_lost_or_counted_twice_when_threads_count_and_take() -> None:
    counts = Counts()

    def work(_: int) -> int:
        for _ in range(200):
            counts.add(DELIVERED)
            counts.measured(LATENESS, 1)
        return counts.take().counts.get(DELIVERED, 0)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(40))) == 40 * 200
