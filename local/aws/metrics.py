"""Emulates CloudWatch's metrics, from the functions' lines and the template's filters.

Invariant: only the last day by the stack's clock is kept, and a bounded number of values of each
minute.
"""

import json
import logging
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from duewheel.rules.instants import rfc3339
from local.aws.intrinsics import TemplateError
from local.aws.resources import Resources

MINUTES_KEPT = 24 * 60
VALUES_KEPT = 1_000
_MINUTE_MS = 60_000
_TERM = re.compile(r'\(?\$\.action = "([a-z-]+)"\)?')


@dataclass(slots=True)
class Minute:
    """One metric in one minute, with its latest values."""

    sum: float = 0
    count: int = 0
    min: float = 0
    max: float = 0
    values: deque[float] = field(default_factory=lambda: deque(maxlen=VALUES_KEPT))

    def add(self, value: float) -> None:
        self.min = min(self.min, value) if self.count else value
        self.max = max(self.max, value) if self.count else value
        self.sum += value
        self.count += 1
        self.values.append(value)

    def as_json(self) -> dict[str, Any]:
        return {"sum": self.sum, "count": self.count, "min": self.min, "max": self.max}


class Metrics:
    def __init__(self) -> None:
        self._lock = Lock()
        self._units: dict[str, str] = {}
        self._minutes: dict[str, dict[int, Minute]] = {}  # by name and minute

    def take_line(self, line: str) -> None:
        """A line of a function's log in the embedded metric format."""
        members = json.loads(line)
        for directive in members["_aws"]["CloudWatchMetrics"]:
            for metric in directive["Metrics"]:
                value = members[metric["Name"]]
                values = value if isinstance(value, list) else [value]
                self.add(metric["Name"], metric["Unit"], values, members["_aws"]["Timestamp"])

    def add(self, name: str, unit: str, values: list[float], at_ms: int) -> None:
        with self._lock:
            self._units[name] = unit
            minutes, at = self._minutes.setdefault(name, {}), at_ms // _MINUTE_MS
            minute = minutes.get(at)
            if minute is None:
                minute = minutes[at] = Minute()
                latest = max(minutes)
                for old in [each for each in minutes if each <= latest - MINUTES_KEPT]:
                    del minutes[old]
            for value in values:
                minute.add(value)

    def minutes(self, name: str) -> dict[int, Minute]:
        """By minute since the epoch, the earliest first."""
        with self._lock:
            return dict(sorted(self._minutes.get(name, {}).items()))

    def overview(self) -> dict[str, Any]:
        with self._lock:
            names = sorted(self._minutes)
        return {"metrics": {name: self._overview_of(name) for name in names}}

    def detail(self, name: str) -> dict[str, Any]:
        minutes = [
            {"at": _text(at), **minute.as_json(), "values": list(minute.values)}
            for at, minute in self.minutes(name).items()
        ]
        return {"name": name, "unit": self._units.get(name), "minutes": minutes}

    def _overview_of(self, name: str) -> dict[str, Any]:
        minutes = self.minutes(name)
        latest = max(minutes)
        return {
            "unit": self._units[name],
            "sum": sum(minute.sum for minute in minutes.values()),
            "latest": {"at": _text(latest), **minutes[latest].as_json()},
        }


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of the template on a log: the actions that it matches, and the metric that it
    counts."""

    actions: frozenset[str]
    metric: str
    unit: str
    value: str


class FilteredLog(logging.Handler):
    """Receives the logs of all functions."""

    def __init__(self, filters: set[Filter], metrics: Metrics, now_ms: Callable[[], int]) -> None:
        super().__init__()
        self._filters = filters
        self._metrics = metrics
        self._now_ms = now_ms

    def emit(self, record: logging.LogRecord) -> None:
        for each in self._filters:
            if getattr(record, "action", None) in each.actions:
                member = each.value.removeprefix("$.")
                value = float(each.value if member == each.value else getattr(record, member))
                self._metrics.add(each.metric, each.unit, [value], self._now_ms())

    @contextmanager
    def attached(self, logger: logging.Logger) -> Iterator[None]:
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)


def filters_of(resources: Resources) -> set[Filter]:
    """Equal filters on several logs are one here, since there is one log."""
    return {
        Filter(
            _actions(resource.properties["FilterPattern"]),
            each["MetricName"],
            each.get("Unit", "None"),
            each["MetricValue"],
        )
        for resource in resources.template.of_type("AWS::Logs::MetricFilter")
        for each in resource.properties["MetricTransformations"]
    }


def _actions(pattern: str) -> frozenset[str]:
    terms = pattern.removeprefix("{").removesuffix("}").strip().split(" || ")
    found = [_TERM.fullmatch(term) for term in terms]
    if None in found:
        raise TemplateError(f"the filter {pattern} is not understood")
    return frozenset(term[1] for term in found if term is not None)


def _text(minute: int) -> str:
    return rfc3339(minute * _MINUTE_MS)
