"""Metrics: their names, the counts of this process, and the log lines that CloudWatch reads.

The lines are in the embedded metric format, within its bounds. There are no dimensions: each stack
has a namespace of its own, so the number of metrics does not grow with businesses, tasks or hosts.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

from msgspec import Struct, field

from duewheel.rules.instants import rfc3339

VALUES_PER_LINE = 100  # of one metric, by the format

_COUNT = "Count"


class Metric(Struct, frozen=True):
    name: str
    unit: str = _COUNT
    least: int = 0  # smaller values are usual, and not published


# Of the notifier
LATENESS = Metric("Lateness", "Milliseconds")
DELIVERED = Metric("Delivered")
FAILED_ATTEMPTS = Metric("FailedAttempts")
DEAD = Metric("Dead")
EXPIRED = Metric("Expired")
PAGES = Metric("Pages")
PARKED = Metric("Parked")
LIMITER_WAITS = Metric("LimiterWaits")
BREAKERS_OPENED = Metric("BreakersOpened")
TIMERS_DISABLED = Metric("TimersDisabled")  # by the service; of the api as well
# Of the api
CREATED = Metric("Created")
CREATES_REFUSED = Metric("CreatesRefused")
# Of the scheduler
POINTER_LAG = Metric("PointerLag", "Seconds", least=11)  # of the sweeper as well
# Of the sweeper
SWEEP_LAG = Metric("SweepLag", "Seconds", least=301)  # the sweep delay, and three minutes
OPEN_PLACES = Metric("OpenPlaces")
OPEN_PLACE_AGE = Metric("OpenPlaceAge", "Seconds")  # of the oldest
SWEPT = Metric("Swept")
# Of notifier and ingest
FAILED_MESSAGES = Metric("FailedMessages")
# Of all
THROTTLES = Metric("Throttles")

METRICS = (
    LATENESS,
    DELIVERED,
    FAILED_ATTEMPTS,
    DEAD,
    EXPIRED,
    PAGES,
    PARKED,
    LIMITER_WAITS,
    BREAKERS_OPENED,
    TIMERS_DISABLED,
    CREATED,
    CREATES_REFUSED,
    POINTER_LAG,
    SWEEP_LAG,
    OPEN_PLACES,
    OPEN_PLACE_AGE,
    SWEPT,
    FAILED_MESSAGES,
    THROTTLES,
)


class Counted(Struct, frozen=True):
    """Counts, none of them zero, and measured values, each by itself, so that CloudWatch computes
    percentiles."""

    counts: Mapping[Metric, int] = field(default_factory=dict)
    values: Mapping[Metric, Sequence[int]] = field(default_factory=dict)


class Source(Struct, frozen=True):
    """The function that writes the lines."""

    stack: str
    version: str

    @property
    def namespace(self) -> str:
        return f"Duewheel/{self.stack}"


def metric_lines(counted: Counted, source: Source, now_ms: int) -> Iterator[str]:
    """As few lines as the format allows; none if there are no metrics. The first has the counts."""
    shown: dict[Metric, int | Sequence[int]] = dict(counted.counts)
    longest = max(map(len, counted.values.values()), default=0)
    for start in range(0, max(longest, 1), VALUES_PER_LINE):
        for metric, values in counted.values.items():
            if some := values[start : start + VALUES_PER_LINE]:
                shown[metric] = some
        if shown:
            yield _line(shown, source, now_ms)
        shown = {}


def _line(shown: Mapping[Metric, int | Sequence[int]], source: Source, now_ms: int) -> str:
    directive = {
        "Namespace": source.namespace,
        "Dimensions": [[]],
        "Metrics": [{"Name": metric.name, "Unit": metric.unit} for metric in shown],
    }
    members = {
        "level": "INFO",
        "timestamp": rfc3339(now_ms),
        "action": "metrics",
        "version": source.version,
        "_aws": {"Timestamp": now_ms, "CloudWatchMetrics": [directive]},
        **{metric.name: value for metric, value in shown.items()},
    }
    return json.dumps(members, separators=(",", ":"))


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
        if value >= metric.least:
            with self._lock:
                self._values[metric].append(value)

    def take(self) -> Counted:
        """Return all counts so far, and reset them."""
        with self._lock:
            taken = Counted(self._counts, self._values)
            self._counts, self._values = Counter(), defaultdict(list)
            return taken


counts = Counts()
