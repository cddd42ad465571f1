"""Statistics in an answer: the range, its total, and the minutes that are not empty."""

from typing import Annotated, Any

from msgspec import Struct, defstruct

from duewheel.rules.fields import Count, Instant, says
from duewheel.rules.instants import rfc3339
from duewheel.rules.names import BizType
from duewheel.rules.sweep.minute_statistics import LATENESS_BOUNDS_MS, Statistics, Tally

CLASSES = (*(f"up_to_{bound}_ms" for bound in LATENESS_BOUNDS_MS), "later")


class LatenessView(Struct):
    sum_ms: Count
    max_ms: Count
    counts: dict[Annotated[str, says(enum=list(CLASSES))], Count]


class TallyView(Struct, kw_only=True):
    created: Count
    pending: Count
    delivered: Count
    dead: Count
    expired: Count
    cancelled: Count
    failed_attempts: Count
    lateness: LatenessView


MinuteView: Any = defstruct(
    "MinuteView", [("at", Instant), *TallyView.__annotations__.items()], module=__name__
)


class StatisticsView(Struct, rename={"from_": "from"}, kw_only=True):
    biz_type: BizType
    from_: Instant
    to: Instant
    counted_until: Instant
    closed_until: Instant
    total: TallyView
    minutes: list[MinuteView]


def stats_view(biz_type: str, statistics: Statistics) -> StatisticsView:
    return StatisticsView(
        biz_type=biz_type,
        from_=_minute(statistics.first_minute),
        to=_minute(statistics.last_minute + 1),
        counted_until=rfc3339(statistics.counted_until_second * 1000),
        closed_until=rfc3339(statistics.closed_until_second * 1000),
        total=TallyView(**tally_members(statistics.total)),
        minutes=[
            MinuteView(at=_minute(stats.minute), **tally_members(stats.tally))
            for stats in statistics.minutes
        ],
    )


def tally_members(tally: Tally) -> dict[str, Any]:
    counts = zip(CLASSES, tally.lateness_classes, strict=True)
    return {
        "created": tally.created,
        "pending": tally.pending,
        "delivered": tally.delivered,
        "dead": tally.dead,
        "expired": tally.expired,
        "cancelled": tally.cancelled,
        "failed_attempts": tally.failed_attempts,
        "lateness": LatenessView(
            tally.lateness_sum_ms,
            tally.lateness_max_ms,
            {name: count for name, count in counts if count},
        ),
    }


def _minute(minute: int) -> str:
    return rfc3339(minute * 60_000)
