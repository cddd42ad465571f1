"""How much of its limits a business uses, by the records that all processes share."""

from msgspec import Struct

from duewheel.rules.businesses.rate_limit import US_PER_MS, Cursors, RateLimit


class RateUsage(Struct, frozen=True):
    """`taken`: turns that are reserved and still ahead. `free_in_ms`: until the next free turn.
    `waiting`: about how many tasks have places in the lines."""

    taken: int = 0
    free_in_ms: int = 0
    waiting: int = 0


class PermitUsage(Struct, frozen=True):
    """Of a limit of calls in flight."""

    used: int
    waiting: int


class Usage(Struct, frozen=True, kw_only=True):
    """None: there is no such limit. `permits`: filled in by the limit of calls in flight, once it
    is kept over all notifiers. `dispatch_lag_seconds`, `oldest_open_seconds`: of the whole
    service: how far the time pointer is behind, and how old the oldest open place is."""

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
