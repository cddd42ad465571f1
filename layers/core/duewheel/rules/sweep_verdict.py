"""Whether a second is finished, and if not, what is to be done about it.

One classifier for the sweep, the audit and the tests. It looks at one slice of a
second that is older than the sweep lag: no direct message for it can still be under
way, and no notifier that began it before the lag can still be alive.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct, field

from duewheel.rules.addresses import (
    Address,
    is_direct_page,
    is_slow_page,
    next_page,
    rest_page,
    slow_page,
)
from duewheel.rules.business import RETENTION_SECONDS_MIN
from duewheel.rules.messages import PageMessage
from duewheel.rules.page_lease import TRIES_MAX, PageLease
from duewheel.rules.task import Status, Task

RESEND_EVERY_MS = 60_000


class HomeState(Struct, frozen=True):
    """What the sweep needs to know of a task."""

    home: Address
    entry: Address
    status: Status
    next_ms: int
    version: int
    biz_type: str
    lateness_ms: int | None = None
    failed_seconds: tuple[int, ...] = ()  # of the entries on which attempts failed
    revivals: tuple[tuple[int, int], ...] = ()
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
    written_ms: int | None

    def is_orphan(self, now_ms: int) -> bool:
        """Of one whose home is gone. It was written for a pending task, and a task is kept for a
        day at least after it has ended: only after that may it be gone."""
        if self.written_ms is None:
            return True
        return now_ms < self.written_ms + RETENTION_SECONDS_MIN * 1000


class EntryState(Enum):
    OWED = "owed"  # pending, and named by nothing ahead of the sweep pointer
    FINISHED = "finished"  # settled, named elsewhere ahead, or an entry that may never fire


class Verdict(Struct):
    """What one slice still needs. It is finished when nothing keeps the pointer waiting."""

    owed: list[SeenEntry] = field(default_factory=list)  # give each a new entry
    resend: list[tuple[PageLease, PageMessage]] = field(default_factory=list)
    waits_for: list[str] = field(default_factory=list)  # pages
    take_apart: list[tuple[PageLease, list[SeenEntry]]] = field(default_factory=list)
    put_off: list[tuple[PageLease, list[SeenEntry]]] = field(default_factory=list)  # unbegun

    @property
    def keeps_waiting(self) -> bool:
        return bool(self.resend or self.waits_for or self.take_apart)


def is_seen_to(home: HomeState | Task, second: int) -> bool:
    """Once the sweep pointer is at this second: the task has ended, or is named ahead of it, or
    is parked, and its release will name an entry ahead."""
    return home.status is not Status.PENDING or home.entry.second > second or home.parked


def entry_state(seen: SeenEntry, present: Callable[[Address], bool], second: int) -> EntryState:
    """`present` tells which addresses of this very second the sweep has in hand."""
    home = seen.home
    if home is None or is_seen_to(home, second):
        return EntryState.FINISHED
    if home.entry == seen.address:
        return EntryState.OWED
    if not seen.is_home:
        return EntryState.FINISHED
    named_is_here = home.entry.second == second and present(home.entry)
    return EntryState.FINISHED if named_is_here else EntryState.OWED


def judge_slice(
    second: int,
    shard: int,
    entries: Iterable[SeenEntry],
    leases: Mapping[str, PageLease],
    *,
    present: Callable[[Address], bool],
    now_ms: int,
    page_size: int,
) -> Verdict:
    judging = _Judging(Verdict(), leases, now_ms, page_size)
    in_pages: list[SeenEntry] = []
    direct: list[SeenEntry] = []
    for seen in entries:
        match entry_state(seen, present, second):
            case EntryState.OWED if _names_another(seen):
                judging.verdict.owed.append(seen)
            case EntryState.OWED:
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
    """What a page was given, and until when whoever gave it may have worked."""

    places: tuple[str, ...]
    until_ms: int


class _Judging(Struct, frozen=True):
    verdict: Verdict
    leases: Mapping[str, PageLease]
    now_ms: int
    page_size: int

    def pages(self, first: PageLease, owed: Sequence[SeenEntry]) -> None:
        """Walk the chain of pages up to the first that is not finished. What was passed to the
        slow lane does not count for that: nobody waits behind it."""
        page, remaining = first, list(owed)
        while remaining:
            lease = self.leases.get(page.page) or page
            end = lease.end
            inside = [s for s in remaining if end is None or s.address.place <= end]
            remaining = remaining[len(inside) :]
            if not self._page(lease, inside) or end is None:
                return
            page = PageLease(lease.second, lease.shard, next_page(lease.page), end)

    def direct(self, owed: list[SeenEntry]) -> None:
        """Direct entries are in no page but those that their messages passed to the slow lane."""
        for lease in self.leases.values():
            if is_direct_page(lease.page):
                passed, owed = _split(owed, lease.slow)
                self._passed_on(lease, slow_page(lease.page), lease.slow, passed)
        self.verdict.owed.extend(owed)

    def _page(self, lease: PageLease, owed: list[SeenEntry], by: _PassedOn | None = None) -> bool:
        """A page with all that it passed on; True when nothing of its own lane keeps waiting."""
        slow, owed = _split(owed, lease.slow)
        self._passed_on(lease, slow_page(lease.page), lease.slow, slow)
        rest, own = _split(owed, lease.rest)
        if lease.done:
            self.verdict.owed.extend(own)
        elif own:
            self._open_page(lease, own, by)
            return False
        return self._passed_on(lease, rest_page(lease.page), lease.rest, rest)

    def _passed_on(
        self, parent: PageLease, page: str, places: tuple[str, ...], owed: list[SeenEntry]
    ) -> bool:
        """The same for what a page passed on by id."""
        if not owed:
            return True
        lease = self.leases.get(page) or PageLease(parent.second, parent.shard, page)
        return self._page(lease, owed, _PassedOn(places, parent.until_ms))

    def _open_page(self, lease: PageLease, owed: list[SeenEntry], by: _PassedOn | None) -> None:
        """A page that still owes calls: wait for it, send it again, or take it apart.

        In the slow lane one that nobody has begun in all this time waits behind others: its
        entries are to come up again, so that the sweep does not wait for that lane.
        """
        is_held = lease.owner is not None and self.now_ms < lease.until_ms
        was_just_resent = lease.resends > 0 and self.now_ms < lease.resent_ms + RESEND_EVERY_MS
        if by is not None and is_slow_page(lease.page) and not lease.tries:
            if self.now_ms < by.until_ms:  # it was passed on a moment ago
                self.verdict.waits_for.append(lease.page)
            else:
                self.verdict.put_off.append((lease, owed))
        elif is_held or (was_just_resent and lease.tries < TRIES_MAX):
            self.verdict.waits_for.append(lease.page)
        elif max(lease.tries, lease.resends) >= TRIES_MAX:
            self.verdict.take_apart.append((lease, owed[: self.page_size]))
        else:
            places = by.places if by is not None else ()
            message = PageMessage(lease.second, lease.shard, lease.page, lease.after, places)
            self.verdict.resend.append((lease, message))


def _split(
    owed: list[SeenEntry], places: tuple[str, ...]
) -> tuple[list[SeenEntry], list[SeenEntry]]:
    """Those that stand at these places, and the others."""
    there = set(places)
    inside = [seen for seen in owed if seen.address.place in there]
    return inside, [seen for seen in owed if seen.address.place not in there]
