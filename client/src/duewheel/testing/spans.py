"""Spans of time as tests write them: `30d`, `1h30m`, a timedelta, seconds."""

import re
from datetime import timedelta

from duewheel.instants import Seconds, seconds_of

UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
SPAN = re.compile(rf"(?:[0-9]+[{''.join(UNITS)}])+")


def span_seconds(span: str | Seconds) -> float:
    if not isinstance(span, str):
        return seconds_of(span)
    if SPAN.fullmatch(span) is None:
        raise ValueError(f"{span!r} is no span of time, such as 30d or 1h30m (w, d, h, m, s)")
    parts = (timedelta(**{UNITS[part[-1]]: int(part[:-1])}) for part in re.findall(r"\d+\w", span))
    return sum(parts, timedelta()).total_seconds()
