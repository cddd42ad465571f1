"""What this process has done and not said yet: whoever does something counts it here.

One for the whole process, as the logger is: a run says at its end what was counted since the last
one did. Where one process plays several functions, as on one machine, each thing is said once,
by whichever of them ends first.
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
        """What has come together; from here on it is counted anew."""
        with self._lock:
            taken = Counted(self._counts, self._values)
            self._counts, self._values = Counter(), defaultdict(list)
            return taken


counts = Counts()
