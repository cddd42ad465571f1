"""Slices of one second whose true state is known from their construction."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.delivery.page_lease import TRIES_MAX, PageLease
from duewheel.rules.sweep.verdict import (
    RESEND_EVERY_MS,
    EntryState,
    HomeState,
    SeenEntry,
    Verdict,
    Waiting,
    judge_slice,
)
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import (
    TOKEN_BYTES,
    Address,
    address_at,
    direct_page,
    first_page,
    is_slow_page,
    next_page,
    rest_page,
    slow_page,
)

SECOND = 1_900_000_000
SHARD = 3
NOW_MS = (SECOND + 600) * 1000
PAGE_SIZE = 3
JUST_NOW = NOW_MS - RESEND_EVERY_MS + 1  # too recent to send a page again
LONG_AGO = NOW_MS - RESEND_EVERY_MS
SETTLED = [status for status in Status if status is not Status.PENDING]


def at(second: int, number: int, *, direct: bool = False) -> Address:
    token = number.to_bytes(TOKEN_BYTES, "big")
    return address_at(second * 1000 + number % 1000, token, shard=SHARD, direct=direct)


def here(number: int, *, direct: bool = False) -> Address:
    return at(SECOND, number, direct=direct)


AHEAD = at(SECOND + 60, 900)
BEHIND = at(SECOND - 60, 901)
ELSEWHERE = at(SECOND - 3_600, 902)


@dataclass
class Slice:
    """The items of one slice: homes by address, and entries with their homes."""

    homes: dict[Address, HomeState] = field(default_factory=dict)
    entries: dict[Address, Address] = field(default_factory=dict)
    states: dict[Address, EntryState] = field(default_factory=dict)  # the true state of each entry
    leases: dict[str, PageLease] = field(default_factory=dict)

    def add_home(
        self, home: Address, entry: Address, state: EntryState, status: Status = Status.PENDING
    ) -> None:
        self.add_entry(home, home, entry, state, status)

    def add_entry(
        self,
        address: Address,
        home: Address,
        named: Address | None,
        state: EntryState,
        status: Status = Status.PENDING,
    ) -> None:
        """`named` is the entry that the home names; None if the home no longer exists."""
        if named is not None:
            self.homes[home] = HomeState(
                home=home,
                entry=named,
                status=status,
                next_ms=home.instant_ms,
                version=1,
                biz_type="orders",
            )
        self.entries[address] = home
        self.states[address] = state

    def add_pair(self, home: Address, named: Address) -> None:
        """Add a home and its named entry, both of this second."""
        self.add_home(home, named, EntryState.FINISHED)
        self.add_entry(named, home, named, EntryState.DUE)

    def of_state(self, state: EntryState) -> set[Address]:
        return {address for address, found in self.states.items() if found is state}

    @property
    def places(self) -> list[str]:
        return sorted(address.place for address in self.entries if not address.direct)

    def verdict(self, now_ms: int = NOW_MS) -> Verdict:
        seen = [SeenEntry(entry, self.homes.get(home)) for entry, home in self.entries.items()]
        return judge_slice(
            SECOND,
            SHARD,
            reversed(seen),  # the sweep does not rely on their order
            self.leases,
            waiting=Waiting(SECOND, lambda e: e.second == SECOND, self.entries.__contains__),
            now_ms=now_ms,
            page_size=PAGE_SIZE,
        )


def addresses_of(seen: list[SeenEntry]) -> list[Address]:
    return [one.address for one in seen]


def taken_apart(verdict: Verdict) -> list[Address]:
    return [address for _, owed in verdict.take_apart for address in addresses_of(owed)]


def postponed(verdict: Verdict) -> list[Address]:
    return [address for _, owed in verdict.postponed for address in addresses_of(owed)]


# The states of an entry by the rule of named entries alone; `far` homes are in another second.
KINDS: dict[str, Callable[[Slice, Address, Status], None]] = {
    "home, owed": lambda made, own, _: made.add_home(own, own, EntryState.DUE),
    "home, settled": lambda made, own, settled: made.add_home(
        own, own, EntryState.FINISHED, settled
    ),
    "home, named ahead": lambda made, own, _: made.add_home(own, AHEAD, EntryState.FINISHED),
    "home, named entry lost": lambda made, own, _: made.add_home(own, BEHIND, EntryState.DUE),
    "home, named entry of this second lost": lambda made, own, _: made.add_home(
        own, here(500 + own.ms), EntryState.DUE
    ),
    "re-entry, owed": lambda made, own, _: made.add_entry(own, far(own), own, EntryState.DUE),
    "re-entry, unnamed": lambda made, own, _: made.add_entry(
        own, far(own), far(own), EntryState.FINISHED
    ),
    "re-entry, settled": lambda made, own, settled: made.add_entry(
        own, far(own), own, EntryState.FINISHED, settled
    ),
    "re-entry, home gone": lambda made, own, _: made.add_entry(
        own, far(own), None, EntryState.FINISHED
    ),
    "re-entry and its home": lambda made, own, _: made.add_pair(here(500 + own.ms), own),
}


def far(entry: Address) -> Address:
    return at(SECOND - 3_600, entry.ms)


_around_now = st.sampled_from([NOW_MS - 120_000, JUST_NOW, LONG_AGO, NOW_MS, NOW_MS + 1]) | (
    st.integers(NOW_MS - 120_000, NOW_MS + 75_000)
)


def _some_of(places: list[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(places), unique=True).map(tuple) if places else st.just(())


@st.composite
def _page_leases(draw: st.DrawFn, page: str, inside: list[str]) -> PageLease:
    resends = draw(st.integers(0, TRIES_MAX + 1))
    slow = () if is_slow_page(page) else draw(_some_of(inside))
    owner = draw(st.sampled_from([None, "somebody"]))
    tries = draw(st.integers(1, TRIES_MAX)) if owner else 0
    # A slow page that is not begun passes no entries on.
    kept = inside if is_slow_page(page) and not tries else slow
    return PageLease(
        SECOND,
        SHARD,
        page=page,
        owner=owner,
        until_ms=draw(_around_now) if owner else 0,
        done=draw(st.booleans()),
        rest=draw(_some_of([place for place in inside if place not in kept])),
        slow=slow,
        tries=tries,
        resends=resends,
        resent_ms=min(draw(_around_now), NOW_MS) if resends else 0,
    )


@st.composite
def slices(draw: st.DrawFn) -> Slice:
    made = Slice()
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)) | st.just("home, owed"), max_size=12))
    for number, kind in enumerate(kinds):
        address = here(number, direct=draw(st.integers(0, 5)) == 0)
        KINDS[kind](made, address, draw(st.sampled_from(SETTLED)))
    ends = sorted(draw(st.sets(st.sampled_from(made.places), max_size=4))) if made.places else []
    page, after = first_page(), None
    for end in [*ends, None]:
        inside = [
            place
            for place in made.places
            if (after is None or place > after) and (end is None or place <= end)
        ]
        if draw(st.integers(0, 3)):
            found = replace(draw(_page_leases(page, inside)), after=after, end=end)
            made.leases[page] = found
            draw(_passed_on(made, found))
        page, after = next_page(page), end
    _pass_direct_on(draw, made)
    return made


@st.composite
def _passed_on(draw: st.DrawFn, made: Slice, found: PageLease) -> None:
    """Add leases of the pages that this page passed on; some of them are not begun yet."""
    for page, places in (
        (rest_page(found.page), found.rest),
        (slow_page(found.page), found.slow),
    ):
        if places and draw(st.booleans()):
            made.leases[page] = draw(_page_leases(page, list(places)))
            draw(_passed_on(made, made.leases[page]))


def _pass_direct_on(draw: st.DrawFn, made: Slice) -> None:
    """Add direct messages that passed some of their entries to the slow lane."""
    direct = sorted(address.place for address in made.entries if address.direct)
    slow = draw(_some_of(direct))
    if slow:
        parent = PageLease(
            SECOND, SHARD, page=direct_page(slow), until_ms=draw(_around_now), slow=slow
        )
        made.leases[parent.page] = parent
        draw(_passed_on(made, parent))
