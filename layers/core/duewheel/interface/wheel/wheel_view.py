"""The wheel in an answer: its pointers, open places, and forecast; an audit; health."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from duewheel.rules.fields import Count, Cursor, Instant, says
from duewheel.rules.instants import rfc3339
from duewheel.rules.sweep.audit import Finding, Wrong
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.open_places import (
    OPEN_PLACES_MAX,
    OpenPlace,
    Why,
    age_seconds,
    oldest_first,
)
from duewheel.rules.wheel.sharding import FORECAST_TOLD_MIN
from duewheel.workflows.sweep.audit import Audited
from duewheel.workflows.wheel.read_status import WheelState

OPEN_PLACES_SHOWN = 100


class PointerView(Struct):
    at: Instant
    second: Count
    lag_seconds: Count


class OpenPlaceView(Struct, kw_only=True):
    at: Annotated[Instant, says("The second.")]
    second: Count
    shard: Count
    page: Annotated[str, says("The first page that is not finished, if it is one.")] | None
    since: Annotated[Instant, says("When the sweep left the place open.")]
    why: Annotated[Why, says("docs/api.md says what each word means.")]


class OpenPlacesView(Struct):
    """Places that the sweep could not finish. Each run reads them again."""

    count: Annotated[int, Meta(ge=0, le=OPEN_PLACES_MAX)]
    oldest_age_seconds: Count | None
    places: Annotated[
        list[OpenPlaceView],
        Meta(max_length=OPEN_PLACES_SHOWN, description="The oldest come first."),
    ]


class LoadView(Struct):
    at: Instant
    tasks: Count
    seconds: Annotated[dict[str, Count], says("The crowded seconds of the minute.")]


class ForecastView(Struct):
    tasks: Count
    minutes: list[LoadView]


class WheelView(Struct, kw_only=True):
    now: Instant
    buckets: Count
    origin: Instant
    time_pointer: PointerView
    sweep_pointer: PointerView
    open_places: OpenPlacesView
    leader: str | None
    forecast: ForecastView


class CheckedView(Struct):
    seconds: Count
    items: Count


class FindingView(Struct, kw_only=True):
    wrong: Wrong
    detail: str
    task_id: str | None
    biz_type: str | None
    at: str | None
    attribute: str | None


class AuditView(Struct, rename={"from_": "from"}, kw_only=True):
    from_: Instant
    to: Instant
    audited_until: Instant
    checked: CheckedView
    findings: list[FindingView]
    cursor: Cursor


class HealthView(Struct):
    status: Literal["ok"]
    version: str


def wheel_view(state: WheelState) -> WheelView:
    return WheelView(
        now=rfc3339(state.now_ms),
        buckets=state.buckets,
        origin=rfc3339(state.origin_second * 1000),
        time_pointer=_pointer(state.time_pointer, state.now_ms),
        sweep_pointer=_pointer(state.sweep_pointer, state.now_ms),
        open_places=_open_places(state.open_places, state.now_ms),
        leader=state.leader,
        forecast=_forecast(state),
    )


def _open_places(places: Sequence[OpenPlace], now_ms: int) -> OpenPlacesView:
    """The number of all open places, and a list of the oldest: the list is bounded."""
    listed = oldest_first(places)
    oldest = age_seconds(listed[0], now_ms) if listed else None
    shown = [_open_place(place) for place in listed[:OPEN_PLACES_SHOWN]]
    return OpenPlacesView(len(listed), oldest, shown)


def _open_place(place: OpenPlace) -> OpenPlaceView:
    return OpenPlaceView(
        at=rfc3339(place.second * 1000),
        second=place.second,
        shard=place.shard,
        page=place.page or None,
        since=rfc3339(place.since_ms),
        why=place.why,
    )


def _forecast(state: WheelState) -> ForecastView:
    minutes = [load.after(state.now_ms // 1000) for load in state.forecast]
    known = [load for load in minutes if load.entries >= FORECAST_TOLD_MIN]
    return ForecastView(
        round(sum(load.entries for load in known)),
        [
            LoadView(
                rfc3339(load.minute * 60_000),
                round(load.entries),
                {str(s): round(n) for s, n in load.by_second.items() if n >= FORECAST_TOLD_MIN},
            )
            for load in known
        ],
    )


def _pointer(second: int, now_ms: int) -> PointerView:
    return PointerView(rfc3339(second * 1000), second, timing.lag_seconds(second, now_ms))


def audit_view(audited: Audited) -> AuditView:
    return AuditView(
        from_=rfc3339(audited.first_second * 1000),
        to=rfc3339((audited.last_second + 1) * 1000),
        audited_until=rfc3339(audited.audited_until_second * 1000),
        checked=CheckedView(audited.seconds, audited.items),
        findings=[_finding(finding) for finding in audited.findings],
        cursor=audited.cursor,
    )


def _finding(finding: Finding) -> FindingView:
    return FindingView(
        wrong=finding.wrong,
        detail=finding.sentence,
        task_id=finding.task_id,
        biz_type=finding.biz_type,
        at=finding.at,
        attribute=finding.attribute,
    )
