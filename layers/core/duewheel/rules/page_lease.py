"""A page's lease: who works on it until when, where it ends, what it passed on.

What it passed on is recorded before it is sent, so whoever comes by later leaves it alone.
"""

from msgspec import Struct

from duewheel.rules.addresses import first_page

LEASE_MS_MAX = 3_600_000  # longer than any notifier's timeout and what is added to it
TRIES_MAX = 5  # after so many runs or resends a page is left to the sweep to take apart


class PageLease(Struct, frozen=True):
    second: int
    shard: int
    page: str = first_page()
    after: str | None = None
    owner: str | None = None
    until_ms: int = 0
    done: bool = False
    end: str | None = None  # the last place of the page, when the slice goes on behind it
    rest: tuple[str, ...] = ()  # places passed on to the rest page
    slow: tuple[str, ...] = ()  # places passed on to the slow lane; once there are some, these
    tries: int = 0  # how often it was begun
    resends: int = 0
    resent_ms: int = 0


class LeaseLost(Exception):
    """Another invocation took the page over; what is left of it is theirs."""


def still_ours(lease: PageLease | None) -> PageLease:
    if lease is None:
        raise LeaseLost
    return lease


def is_absurd(lease: PageLease, now_ms: int) -> bool:
    """It would keep the page, and the sweep pointer with it, for longer than anybody works."""
    return max(lease.until_ms, lease.resent_ms) > now_ms + LEASE_MS_MAX


class Held(Struct, frozen=True):
    """Somebody else works on it; come back after `until_ms`."""

    until_ms: int


class Finished(Struct, frozen=True):
    """Nothing is left to do for this message."""
