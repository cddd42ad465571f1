"""The wheel in an answer: its pointers, open places, and forecast; an audit."""

from collections.abc import Sequence

from duewheel.rules.instants import rfc3339
from duewheel.rules.sweep.audit import Finding
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.open_places import OpenPlace, age_seconds, oldest_first
from duewheel.workflows.sweep.audit import Audited
from duewheel.workflows.wheel.read_status import WheelState

OPEN_PLACES_SHOWN = 100


def wheel_view(state: WheelState) -> dict[str, object]:
    return {
        "now": rfc3339(state.now_ms),
        "profile": state.profile,
        "buckets": state.buckets,
        "origin": rfc3339(state.origin_second * 1000),
        "time_pointer": _pointer(state.time_pointer, state.now_ms),
        "sweep_pointer": _pointer(state.sweep_pointer, state.now_ms),
        "open_places": _open_places(state.open_places, state.now_ms),
        "leader": state.leader,
        "forecast": _forecast(state),
    }


def _open_places(places: Sequence[OpenPlace], now_ms: int) -> dict[str, object]:
    """Counts all, lists the oldest: a list has a bound, whatever the sweep has left open."""
    listed = oldest_first(places)
    return {
        "count": len(listed),
        "oldest_age_seconds": age_seconds(listed[0], now_ms) if listed else None,
        "places": [_open_place(place) for place in listed[:OPEN_PLACES_SHOWN]],
    }


def _open_place(place: OpenPlace) -> dict[str, object]:
    return {
        "at": rfc3339(place.second * 1000),
        "second": place.second,
        "shard": place.shard,
        "page": place.page or None,
        "since": rfc3339(place.since_ms),
        "why": place.why.value,
    }


def _forecast(state: WheelState) -> dict[str, object]:
    minutes = [load.after(state.now_ms // 1000) for load in state.forecast]
    known = [load for load in minutes if load.by_second]
    return {
        "tasks": round(sum(load.entries for load in known)),
        "minutes": [
            {
                "at": rfc3339(load.minute * 60_000),
                "tasks": round(load.entries),
                "seconds": {str(second): round(n) for second, n in load.by_second.items()},
            }
            for load in known
        ],
    }


def _pointer(second: int, now_ms: int) -> dict[str, object]:
    return {
        "at": rfc3339(second * 1000),
        "second": second,
        "lag_seconds": timing.lag_seconds(second, now_ms),
    }


def audit_view(audited: Audited) -> dict[str, object]:
    return {
        "from": rfc3339(audited.first_second * 1000),
        "to": rfc3339((audited.last_second + 1) * 1000),
        "audited_until": rfc3339(audited.audited_until_second * 1000),
        "checked": {"seconds": audited.seconds, "items": audited.items},
        "findings": [_finding(finding) for finding in audited.findings],
        "cursor": audited.cursor,
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "wrong": finding.wrong.value,
        "detail": finding.sentence,
        "task_id": finding.task_id,
        "biz_type": finding.biz_type,
        "at": finding.at,
        "attribute": finding.attribute,
    }
