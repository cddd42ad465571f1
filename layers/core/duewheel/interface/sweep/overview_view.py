"""The overview in an answer: what holds tasks back, the last hour, the latest deaths."""

from typing import Annotated

from msgspec import Struct

from duewheel.interface.bulk.operation_view import OperationView, operation_view
from duewheel.interface.businesses.business_view import (
    BreakerView,
    CallRateView,
    PermitsView,
    breaker_views,
    call_rate_view,
    permits_view,
)
from duewheel.interface.sweep.stats_view import MinuteView, TallyView, tally_members
from duewheel.rules.businesses.lanes import BusinessLane
from duewheel.rules.callbacks.retry import number_said
from duewheel.rules.fields import Count, Cursor, Instant, says
from duewheel.rules.instants import rfc3339
from duewheel.rules.names import BizType
from duewheel.rules.tasks.death_groups import DeathGroup
from duewheel.workflows.sweep.read_overview import BusinessNow, Deaths, Overview


class InUseView(Struct):
    """Null where there is no such limit."""

    calls: CallRateView | None
    calls_in_flight: PermitsView | None


class BusinessNowView(Struct, kw_only=True):
    biz_type: BizType
    paused: bool
    paused_flow_keys: Annotated[Count, says("How many there are.")]
    lane: BusinessLane
    breakers: list[BreakerView]
    calls_per_second: float | None
    calls_in_flight: Count | None
    usage: InUseView
    hour: Annotated[TallyView, says("Of the tasks of `minutes`, and with their words.")]
    died_since: Annotated[Count, says("Deaths that were found since `to`, and are not in `hour`.")]


class DeathsOfView(Struct):
    biz_type: BizType
    tasks: Count


class DeathGroupView(Struct, kw_only=True):
    last_error: str | None
    reason: str | None
    tasks: Count
    businesses: Annotated[list[DeathsOfView], says("Those with most come first.")]
    last_died_at: Instant
    last_task_id: str


class DeathsView(Struct, kw_only=True):
    since: Instant
    businesses: Annotated[Count, says("In how many of them dead tasks were looked for.")]
    tasks: Annotated[Count, says("How many were looked at: the latest of each business.")]
    more: Annotated[bool, says("There are more deaths, or businesses to look for them in.")]
    groups: Annotated[list[DeathGroupView], says("The one with the latest death comes first.")]


class BusinessesLookedAtView(Struct):
    businesses: Count


class OverviewView(Struct, rename={"from_": "from"}, kw_only=True):
    now: Instant
    from_: Annotated[Instant, says("Inclusive.")]
    to: Annotated[Instant, says("Exclusive: the end of the last minute that is counted.")]
    minutes: Annotated[list[MinuteView], says("Of all businesses together, as in statistics.")]
    businesses: Annotated[
        list[BusinessNowView],
        says("In the order of their names, without those that have nothing to show."),
    ]
    deaths: DeathsView
    operations: Annotated[
        list[OperationView], says("The open ones within reach, on the first page.")
    ]
    looked_at: BusinessesLookedAtView
    cursor: Cursor


def overview_view(overview: Overview) -> OverviewView:
    return OverviewView(
        now=rfc3339(overview.now_ms),
        from_=_minute(overview.first_minute),
        to=_minute(overview.last_minute + 1),
        minutes=[
            MinuteView(at=_minute(stats.minute), **tally_members(stats.tally))
            for stats in overview.minutes
        ],
        businesses=[_business(one, overview.now_ms) for one in overview.businesses],
        deaths=_deaths(overview.deaths),
        operations=[operation_view(one) for one in overview.operations],
        looked_at=BusinessesLookedAtView(overview.looked_at),
        cursor=overview.cursor,
    )


def _business(one: BusinessNow, now_ms: int) -> BusinessNowView:
    business = one.business
    rate = business.own.calls_per_second
    return BusinessNowView(
        biz_type=business.biz_type,
        paused=business.paused,
        paused_flow_keys=len(business.paused_flow_keys),
        lane=business.lane_at(now_ms),
        breakers=breaker_views(business),
        calls_per_second=None if rate is None else number_said(rate),
        calls_in_flight=business.own.calls_in_flight,
        usage=InUseView(call_rate_view(one.usage), permits_view(one.usage)),
        hour=TallyView(**tally_members(one.hour)),
        died_since=one.died_since,
    )


def _deaths(deaths: Deaths) -> DeathsView:
    return DeathsView(
        since=rfc3339(deaths.since_ms),
        businesses=deaths.businesses,
        tasks=deaths.tasks,
        more=deaths.goes_on,
        groups=[_group(group) for group in deaths.groups],
    )


def _group(group: DeathGroup) -> DeathGroupView:
    return DeathGroupView(
        last_error=group.last_error,
        reason=group.reason,
        tasks=group.count,
        businesses=[DeathsOfView(name, count) for name, count in group.businesses.items()],
        last_died_at=rfc3339(group.last.settled_ms or 0),
        last_task_id=group.last.home.task_id,
    )


def _minute(minute: int) -> str:
    return rfc3339(minute * 60_000)
