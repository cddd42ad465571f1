"""Statistics in an answer: the range, its total, and the minutes in which there was something."""

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


class TallyView(Struct):
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


class StatisticsView(Struct, rename={"from_": "from"}):
    biz_type: BizType
    from_: Instant
    to: Instant
    counted_until: Instant
    closed_until: Instant
    total: TallyView
    minutes: list[MinuteView]


def stats_view(biz_type: str, statistics: Statistics) -> StatisticsView:
    return StatisticsView(
        biz_type,
        _minute(statistics.first_minute),
        _minute(statistics.last_minute + 1),
        rfc3339(statistics.counted_until_second * 1000),
        rfc3339(statistics.closed_until_second * 1000),
        TallyView(*_tally(statistics.total)),
        [MinuteView(_minute(stats.minute), *_tally(stats.tally)) for stats in statistics.minutes],
    )


def _tally(tally: Tally) -> tuple[int, int, int, int, int, int, int, LatenessView]:
    counts = zip(CLASSES, tally.lateness_classes, strict=True)
    return (
        tally.created,
        tally.pending,
        tally.delivered,
        tally.dead,
        tally.expired,
        tally.cancelled,
        tally.failed_attempts,
        LatenessView(
            tally.lateness_sum_ms,
            tally.lateness_max_ms,
            {name: count for name, count in counts if count},
        ),
    )


def _minute(minute: int) -> str:
    return rfc3339(minute * 60_000)
