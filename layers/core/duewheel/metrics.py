"""Counters of this process, one object as the logger is: a run writes at its end all that was
counted since the last run ended.

Where one process plays several functions, as the local stack does, each count is written once, by
whichever function ends first.
"""

from collections import Counter, defaultdict
from threading import Lock

from duewheel.rules.embedded_metrics import Counted, Metric


class Counts:
    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[Metric] = Counter()
        self._values: defaultdict[Metric, list[int]] = defaultdict(list)

    def add(self, metric: Metric, number: int = 1) -> None:
        if number:
            with self._lock:
                self._counts[metric] += number

    def measured(self, metric: Metric, value: int) -> None:
        with self._lock:
            self._values[metric].append(value)

    def take(self) -> Counted:
        """All counts so far; then count anew."""
        with self._lock:
            taken = Counted(self._counts, self._values)
            self._counts, self._values = Counter(), defaultdict(list)
            return taken


counts = Counts()
