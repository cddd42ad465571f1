"""Whether a second is finished, and the actions for what is not.

One classifier for the sweep and the tests. It judges one slice of a second that is older than the
sweep lag: no direct message for it can still be in flight, and no notifier that began it before the
lag can still run. An unfinished page becomes an open place and delays no later second. If its end
is recorded, it does not even delay the next page of its slice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct, field

from duewheel.rules.businesses.settings import RETENTION_SECONDS_MIN
from duewheel.rules.delivery.page_lease import TRIES_MAX, PageLease
from duewheel.rules.tasks.task import Revival, Status, Task
from duewheel.rules.wheel.addresses import (
    SHARDS_MAX,
    Address,
    is_direct_page,
    is_slow_page,
    next_page,
    rest_page,
    slow_page,
)
from duewheel.rules.wheel.open_places import Why
from duewheel.rules.wheel.queue_messages import PageMessage

RESEND_EVERY_MS = 60_000
UNBEGUN_EVERY_MS_MAX = 8 * RESEND_EVERY_MS
# After the lease of the run that passed a page on: its message waits behind others, and stays
# hidden for so long when a batch is throttled.
PASSED_ON_BEGUN_WITHIN_MS = 90_000


class HomeState(Struct, frozen=True, kw_only=True):
    """The part of a task that the sweep reads."""

    home: Address
    entry: Address
    status: Status
    next_ms: int
    version: int
    biz_type: str
    lateness_ms: int | None = None
    failed_seconds: tuple[int, ...] = ()  # of the entries on which attempts failed
    revivals: tuple[Revival, ...] = ()
    parked: bool = False
    first_second: int | None = None
    is_plan: bool = False
    key: str | None = None
    redrives: int = 0
    expires_at: int | None = None


class SeenEntry(Struct, frozen=True):
    """An entry and the home it belongs to; None when that home is gone."""

    address: Address
    home: HomeState | None

    @property
    def is_home(self) -> bool:
        return self.home is not None and self.home.home == self.address


class Reentry(Struct, frozen=True):
    home: Address
    written_ms: int

    def is_orphan(self, now_ms: int) -> bool:
        """For an entry whose home is gone. It was written for a pending task, and an ended task is
        kept for at least a day: its home may be gone only after that."""
        return now_ms < self.written_ms + RETENTION_SECONDS_MIN * 1000


class EntryState(Enum):
    DUE = "due"  # pending, and named by nothing that the sweep is yet to look at
    FINISHED = "finished"  # settled, yet to be looked at elsewhere, or an entry that never fires


class Verdict(Struct):
    """What one slice still needs. It is finished when nothing is unfinished."""

    due: list[SeenEntry] = field(default_factory=list)  # give each a new entry
    resend: list[tuple[PageLease, PageMessage]] = field(default_factory=list)
    owners: dict[str, frozenset[str]] = field(default_factory=dict)  # businesses, by page to resend
    waits_for: list[str] = field(default_factory=list)  # pages
    take_apart: list[tuple[PageLease, list[SeenEntry]]] = field(default_factory=list)
    postponed: list[tuple[PageLease, list[SeenEntry]]] = field(default_factory=list)  # unbegun
    unfinished: list[tuple[str, Why]] = field(default_factory=list)  # pages, in their order


def is_seen_to(home: HomeState | Task, passed: int, is_open: Callable[[Address], bool]) -> bool:
    """True if the task has ended; or if the sweep will read the entry that it names, which is ahead
    of the second `passed`, or in an open place; or if it is parked, and its release will name such
    an entry."""
    if home.status is not Status.PENDING or home.parked:
        return True
    return home.entry.second > passed or is_open(home.entry)


class Waiting(Struct, frozen=True):
    """Where the homes of a slice may name entries that the sweep has yet to read: ahead of
    `passed`, or in an open slice, if they are there."""

    passed: int
    is_open: Callable[[Address], bool]
    present: Callable[[Address], bool]

    def sees_to(self, home: HomeState) -> bool:
        return is_seen_to(home, self.passed, lambda e: self.is_open(e) and self.present(e))


def entry_state(seen: SeenEntry, waiting: Waiting) -> EntryState:
    home = seen.home
    if home is None or home.status is not Status.PENDING or home.parked:
        return EntryState.FINISHED
    if home.entry == seen.address:
        return EntryState.DUE
    if not seen.is_home or waiting.sees_to(home):
        return EntryState.FINISHED
    return EntryState.DUE


def judge_slice(
    second: int,
    shard: int,
    entries: Iterable[SeenEntry],
    leases: Mapping[str, PageLease],
    *,
    waiting: Waiting,
    now_ms: int,
    page_size: int,
) -> Verdict:
    judging = _Judging(Verdict(), leases, now_ms, page_size)
    in_pages: list[SeenEntry] = []
    direct: list[SeenEntry] = []
    for seen in entries:
        match entry_state(seen, waiting):
            case EntryState.DUE if _names_another(seen):
                judging.verdict.due.append(seen)
            case EntryState.DUE:
                (direct if seen.address.direct else in_pages).append(seen)
            case EntryState.FINISHED:
                pass
    in_pages.sort(key=lambda seen: seen.address.place)
    judging.pages(PageLease(second, shard), in_pages)
    judging.direct(direct)
    return judging.verdict


def _names_another(seen: SeenEntry) -> bool:
    """A home whose named entry is lost: no page of this second would ever fire it."""
    return seen.home is not None and seen.home.entry != seen.address


class _PassedOn(Struct, frozen=True):
    """The entries that a page was passed, and until when the run that passed them may have
    worked."""

    places: tuple[str, ...]
    until_ms: int


class _Judging(Struct, frozen=True):
    verdict: Verdict
    leases: Mapping[str, PageLease]
    now_ms: int
    page_size: int

    def pages(self, first: PageLease, due: Sequence[SeenEntry]) -> None:
        """Follow the chain of pages as far as their ends are recorded: the last page has no end
        yet, and all that lies behind it."""
        page, remaining = first, list(due)
        while remaining:
            lease = self.leases.get(page.page) or page
            end = lease.end
            inside = [s for s in remaining if end is None or s.address.place <= end]
            remaining = remaining[len(inside) :]
            self._page(lease, inside)
            if end is None:
                return
            page = PageLease(lease.second, lease.shard, page=next_page(lease.page), after=end)

    def direct(self, due: list[SeenEntry]) -> None:
        """Direct entries are in no page but those that their messages passed to the slow lane."""
        for lease in self.leases.values():
            if is_direct_page(lease.page):
                passed, due = _split(due, lease.slow)
                self._passed_on(lease, slow_page(lease.page), lease.slow, passed)
        self.verdict.due.extend(due)

    def _page(self, lease: PageLease, due: list[SeenEntry], by: _PassedOn | None = None) -> None:
        """A page with all that it passed on; the rest, once all of its own is done."""
        slow, due = _split(due, lease.slow)
        self._passed_on(lease, slow_page(lease.page), lease.slow, slow)
        rest, own = _split(due, lease.rest)
        if lease.done:
            self.verdict.due.extend(own)
        elif own:
            self._open_page(lease, own, by)
            return
        self._passed_on(lease, rest_page(lease.page), lease.rest, rest)

    def _passed_on(
        self, parent: PageLease, page: str, places: tuple[str, ...], due: list[SeenEntry]
    ) -> None:
        """The same for the entries that a page passed on by id."""
        if due:
            lease = self.leases.get(page) or PageLease(parent.second, parent.shard, page=page)
            self._page(lease, due, _PassedOn(places, parent.until_ms))

    def _open_page(self, lease: PageLease, due: list[SeenEntry], by: _PassedOn | None) -> None:
        """A page with calls left: wait for it, resend it, or take it apart. An unbegun page that
        was passed on a moment ago waits behind others. After that the entries of one of the slow
        lane fall due again later, so that the sweep does not wait for that lane."""
        is_held = lease.owner is not None and self.now_ms < lease.until_ms
        why = Why.UNBEGUN
        passed_on = None if lease.tries else by
        if passed_on and self.now_ms < passed_on.until_ms + PASSED_ON_BEGUN_WITHIN_MS:
            self.verdict.waits_for.append(lease.page)
        elif passed_on and is_slow_page(lease.page):
            self.verdict.postponed.append((lease, due))
            return
        elif is_held or (self.now_ms < _resend_ms(lease) and lease.tries < TRIES_MAX):
            why = Why.HELD if is_held or lease.tries else Why.UNBEGUN
            self.verdict.waits_for.append(lease.page)
        elif max(lease.tries, lease.resends) >= TRIES_MAX:
            if lease.tries:
                why, due = Why.TAKEN_APART, due[: self.page_size]
            self.verdict.take_apart.append(
                (lease, due)
            )  # unbegun, so it crashed no notifier: all of it
        else:
            places = by.places if by is not None else ()
            message = PageMessage(
                lease.second,
                lease.shard,
                page=lease.page,
                after=lease.after,
                places=places,
                # Each shard of a second is judged, and sent again, by itself.
                shards=SHARDS_MAX if lease.shard == 0 and by is None else None,
            )
            self.verdict.resend.append((lease, message))
            self.verdict.owners[lease.page] = frozenset(s.home.biz_type for s in due if s.home)
        self.verdict.unfinished.append((lease.page, why))


def _resend_ms(lease: PageLease) -> int:
    """When the page may be resent. While no run begins it, messages only add to those that wait:
    the distance doubles."""
    if not lease.resends:
        return 0
    if lease.tries:
        return lease.resent_ms + RESEND_EVERY_MS
    doubled = RESEND_EVERY_MS << min(lease.resends - 1, TRIES_MAX)
    return lease.resent_ms + min(doubled, UNBEGUN_EVERY_MS_MAX)


def _split(
    due: list[SeenEntry], places: tuple[str, ...]
) -> tuple[list[SeenEntry], list[SeenEntry]]:
    """The entries at these places, and the others."""
    there = set(places)
    inside = [seen for seen in due if seen.address.place in there]
    return inside, [seen for seen in due if seen.address.place not in there]
