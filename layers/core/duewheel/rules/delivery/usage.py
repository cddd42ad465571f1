"""How much of its limits a business uses, by the records that all processes share."""

from msgspec import Struct

from duewheel.rules.businesses.rate_limit import US_PER_MS, Cursors, RateLimit
from duewheel.rules.delivery.permits import Permits


class RateUsage(Struct, frozen=True):
    """`taken`: turns that are reserved and still ahead. `free_in_ms`: until the next free turn.
    `waiting`: about how many tasks have places in the lines."""

    taken: int = 0
    free_in_ms: int = 0
    waiting: int = 0


class PermitUsage(Struct, frozen=True):
    """Of a limit of calls in flight: permits that are held, and about how many tasks wait for one,
    in a run or in the line."""

    used: int
    waiting: int


class Usage(Struct, frozen=True, kw_only=True):
    """None: there is no such limit, or its record is damaged. `dispatch_lag_seconds`,
    `oldest_open_seconds`: of the whole service: how far the time pointer is behind, and how old the
    oldest open place is."""

    calls: RateUsage | None = None
    creates: RateUsage | None = None
    permits: PermitUsage | None = None
    dispatch_lag_seconds: int = 0
    oldest_open_seconds: int | None = None


def rate_usage(rate: RateLimit | None, cursors: Cursors | None, now_ms: int) -> RateUsage | None:
    """Cursors of older settings say nothing: the turns begin anew."""
    if rate is None:
        return None
    if cursors is None or cursors.version < rate.version:
        return RateUsage()
    now_us, interval_us = now_ms * US_PER_MS, max(1, cursors.interval_us)
    free_us = max(now_us, cursors.free_us)
    lines = [max(0, end_us - free_us) for end_us in (cursors.line_us, cursors.late_us)]
    return RateUsage(
        taken=-(-(free_us - now_us) // interval_us),
        free_in_ms=-(-(free_us - now_us) // US_PER_MS),
        waiting=sum(-(-line_us // interval_us) for line_us in lines),
    )


def permit_usage(limit: int | None, permits: Permits, now_ms: int) -> PermitUsage | None:
    if limit is None:
        return None
    held = [one for one in permits.held.values() if one.counts_at(now_ms)]
    ends_us = (permits.line_us, permits.late_us)
    in_line = sum(places_ahead(end_us, now_ms, permits.interval_us(limit)) for end_us in ends_us)
    return PermitUsage(
        used=sum(one.count for one in held), waiting=sum(one.waiting for one in held) + in_line
    )


def places_ahead(end_us: int, now_ms: int, interval_us: int) -> int:
    return max(0, -(-(end_us - now_ms * US_PER_MS) // interval_us))
