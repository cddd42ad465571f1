"""The lease of a page: the run that works on it, until when, where the page ends, and the entries
that it passed on.

A lease is short, and renewed until its run ends. Entries to pass on are recorded before they are
sent, so a run that takes the page over skips them.
"""

from msgspec import Struct

from duewheel.rules.wheel.addresses import first_page
from duewheel.rules.wheel.timing import SKEW_MS

LEASE_MS = 14_000
HIDDEN_MS = 15_000  # a message, from other runs: it comes when the lease of its page is over
FIRST_RENEWAL_MS = 10_000  # after it was taken; most pages are done by then
RENEWED_EVERY_MS = 5_000
LEASE_MS_MAX = 3_600_000  # longer than any that this service writes
UNMARKED_MAX = 20  # entries: to read so few again costs less than the mark
TRIES_MAX = 5  # after so many runs or resends a page is left to the sweep to take apart


class PageLease(Struct, frozen=True):
    second: int
    shard: int
    page: str = first_page()
    after: str | None = None
    owner: str | None = None
    until_ms: int = 0
    done: bool = False
    end: str | None = None  # the last place of the page, if the slice continues behind it
    rest: tuple[str, ...] = ()  # places passed on to the rest page
    slow: tuple[str, ...] = ()  # places passed on to the slow lane; once there are some, these
    tries: int = 0  # how often it was begun
    resends: int = 0
    resent_ms: int = 0
    begun_ms: int | None = None  # by the present owner


class LeaseLost(Exception):
    """Another run took the page over, and delivers the rest of it."""


def still_ours(lease: PageLease | None) -> PageLease:
    if lease is None:
        raise LeaseLost
    return lease


def is_implausible(lease: PageLease, now_ms: int) -> bool:
    """It would block the page, and with it the sweep pointer, for longer than any run lasts."""
    return max(lease.until_ms, lease.resent_ms) > now_ms + LEASE_MS_MAX


def calls_begin_until_ms(until_ms: int) -> int:
    """From this instant on a run whose clock is ahead may take the hold over."""
    return until_ms - SKEW_MS


def renewal_ms(begun_ms: int, renewed_ms: int) -> int:
    """When a hold that was begun and renewed at these instants is renewed next."""
    return max(begun_ms + FIRST_RENEWAL_MS, renewed_ms + RENEWED_EVERY_MS)


def needs_done_mark(lease: PageLease, entries: int, delivered: int, shards: int) -> bool:
    """Whether the end of this page has to be recorded. It need not, if the page is all of its
    slice, and each of its entries was delivered and settled at the first try. Then its tasks show
    it: another run calls none of them, and the sweep finds none pending. A page that was begun or
    sent again is marked, so that no more than one further run begins it, and one that has sent the
    messages of other pages or shards, so that no run sends them again."""
    is_whole = lease.page == first_page() and lease.end is None and shards == 1
    is_first = lease.tries == 1 and not lease.resends
    is_delivered = 0 < entries == delivered <= UNMARKED_MAX
    return not (is_whole and is_first and is_delivered)


class LeaseHeld(Struct, frozen=True):
    """Another run works on it; come back after `until_ms`."""

    until_ms: int


class PageFinished(Struct, frozen=True):
    """Nothing is left to do for this message."""
