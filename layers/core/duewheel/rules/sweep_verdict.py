"""Whether a second is finished, and if not, what is to be done about it.

One classifier for the sweep, the audit and the tests. It looks at one slice of a
second that is older than the sweep lag: no direct message for it can still be under
way, and no notifier that began it before the lag can still be alive.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from duewheel.rules.addresses import Address, first_page, next_page, rest_page
from duewheel.rules.business import RETENTION_SECONDS_MIN
from duewheel.rules.messages import PageMessage
from duewheel.rules.page_lease import TRIES_MAX, PageLease
from duewheel.rules.task import Status, Task

RESEND_EVERY_MS = 60_000


@dataclass(frozen=True, slots=True)
class HomeState:
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


@dataclass(frozen=True, slots=True)
class SeenEntry:
    """An entry and the home it belongs to; None when that home is gone."""

    address: Address
    home: HomeState | None

    @property
    def is_home(self) -> bool:
        return self.home is not None and self.home.home == self.address


@dataclass(frozen=True, slots=True)
class Reentry:
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


@dataclass(slots=True)
class Verdict:
    """What one slice still needs. It is finished when nothing keeps the pointer waiting."""

    owed: list[SeenEntry] = field(default_factory=list)  # give each a new entry
    resend: list[tuple[PageLease, PageMessage]] = field(default_factory=list)
    waits_for: list[str] = field(default_factory=list)  # pages
    take_apart: list[tuple[PageLease, list[SeenEntry]]] = field(default_factory=list)

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
    verdict = Verdict()
    owed_in_pages: list[SeenEntry] = []
    for seen in entries:
        match entry_state(seen, present, second):
            case EntryState.OWED if seen.address.direct or _names_another(seen):
                verdict.owed.append(seen)
            case EntryState.OWED:
                owed_in_pages.append(seen)
            case EntryState.FINISHED:
                pass
    owed_in_pages.sort(key=lambda seen: seen.address.place)
    _judge_pages(verdict, second, shard, owed_in_pages, leases, now_ms, page_size)
    return verdict


def _names_another(seen: SeenEntry) -> bool:
    """A home whose named entry is lost: no page of this second would ever fire it."""
    return seen.home is not None and seen.home.entry != seen.address


def _judge_pages(
    verdict: Verdict,
    second: int,
    shard: int,
    owed: Sequence[SeenEntry],
    leases: Mapping[str, PageLease],
    now_ms: int,
    page_size: int,
) -> None:
    """Walk the chain of pages up to the first that is not finished."""
    page, after = first_page(), None
    remaining = list(owed)
    while remaining:
        lease = leases.get(page) or PageLease(second, shard, page, after)
        end = lease.end
        inside = [s for s in remaining if end is None or s.address.place <= end]
        remaining = remaining[len(inside) :]
        rest = set(lease.rest)
        own = [s for s in inside if s.address.place not in rest]
        passed_on = [s for s in inside if s.address.place in rest]
        if lease.done:
            verdict.owed.extend(own)
        elif own:
            _judge_open_page(verdict, lease, own, now_ms, page_size)
            return
        if passed_on and not _judge_rest(verdict, lease, passed_on, leases, now_ms, page_size):
            return
        if end is None:
            return
        page, after = next_page(page), end


def _judge_rest(
    verdict: Verdict,
    parent: PageLease,
    owed: list[SeenEntry],
    leases: Mapping[str, PageLease],
    now_ms: int,
    page_size: int,
) -> bool:
    """The same for what a page passed on by id; True when nothing keeps waiting."""
    page = rest_page(parent.page)
    lease = leases.get(page) or PageLease(parent.second, parent.shard, page)
    further = set(lease.rest)
    own = [s for s in owed if s.address.place not in further]
    passed_on = [s for s in owed if s.address.place in further]
    if lease.done:
        verdict.owed.extend(own)
    elif own:
        _judge_open_page(verdict, lease, own, now_ms, page_size, places=parent.rest)
        return False
    if passed_on:
        return _judge_rest(verdict, lease, passed_on, leases, now_ms, page_size)
    return True


def _judge_open_page(
    verdict: Verdict,
    lease: PageLease,
    owed: list[SeenEntry],
    now_ms: int,
    page_size: int,
    places: tuple[str, ...] = (),
) -> None:
    """A page that still owes calls: wait for it, send it again, or take it apart."""
    is_held = lease.owner is not None and now_ms < lease.until_ms
    was_just_resent = lease.resends > 0 and now_ms < lease.resent_ms + RESEND_EVERY_MS
    if is_held or (was_just_resent and lease.tries < TRIES_MAX):
        verdict.waits_for.append(lease.page)
    elif max(lease.tries, lease.resends) >= TRIES_MAX:
        verdict.take_apart.append((lease, owed[:page_size]))
    else:
        message = PageMessage(lease.second, lease.shard, lease.page, lease.after, places)
        verdict.resend.append((lease, message))
