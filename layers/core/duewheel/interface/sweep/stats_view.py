"""Statistics in an answer: the range, its total, and the minutes in which there was something."""

from duewheel.rules.instants import rfc3339
from duewheel.rules.sweep.minute_statistics import LATENESS_BOUNDS_MS, Statistics, Tally

CLASSES = (*(f"up_to_{bound}_ms" for bound in LATENESS_BOUNDS_MS), "later")


def stats_view(biz_type: str, statistics: Statistics) -> dict[str, object]:
    return {
        "biz_type": biz_type,
        "from": _minute(statistics.first_minute),
        "to": _minute(statistics.last_minute + 1),
        "counted_until": rfc3339(statistics.counted_until_second * 1000),
        "closed_until": rfc3339(statistics.closed_until_second * 1000),
        "total": _tally(statistics.total),
        "minutes": [
            {"at": _minute(stats.minute), **_tally(stats.tally)} for stats in statistics.minutes
        ],
    }


def _tally(tally: Tally) -> dict[str, object]:
    counts = zip(CLASSES, tally.lateness_classes, strict=True)
    return {
        "created": tally.created,
        "pending": tally.pending,
        "delivered": tally.delivered,
        "dead": tally.dead,
        "expired": tally.expired,
        "cancelled": tally.cancelled,
        "failed_attempts": tally.failed_attempts,
        "lateness": {
            "sum_ms": tally.lateness_sum_ms,
            "max_ms": tally.lateness_max_ms,
            "counts": {name: count for name, count in counts if count},
        },
    }


def _minute(minute: int) -> str:
    return rfc3339(minute * 60_000)
