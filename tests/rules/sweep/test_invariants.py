"""Invariants of every verdict on any slice: above all, no due entry is left out.

They are checked on slices whose true state is known from their construction.
"""

from hypothesis import given, settings
from msgspec.structs import replace

from duewheel.rules.delivery.page_lease import TRIES_MAX, PageLease
from duewheel.rules.sweep.verdict import (
    PASSED_ON_BEGUN_WITHIN_MS,
    RESEND_EVERY_MS,
    EntryState,
    Verdict,
)
from duewheel.rules.wheel.addresses import (
    Address,
    first_page,
    is_direct_page,
    is_passed_on,
    is_slow_page,
    next_page,
    rest_page,
    slow_page,
)
from tests.support.known_slices import (
    AHEAD,
    NOW_MS,
    PAGE_SIZE,
    SECOND,
    SHARD,
    Slice,
    addresses_of,
    postponed,
    slices,
    taken_apart,
)

many_slices = settings(max_examples=settings().max_examples * 5 // 2)


@many_slices
@given(slices())
def test_no_due_entry_is_ever_left_behind(made: Slice) -> None:
    """A verdict that lets the pointer move on gives every due task a new entry."""
    verdict = made.verdict()
    if not verdict.unfinished:
        entered = {*addresses_of(verdict.due), *postponed(verdict)}
        assert entered == made.of_state(EntryState.DUE)


@given(slices())
def test_only_due_tasks_get_new_entries_and_only_once(made: Slice) -> None:
    verdict = made.verdict()
    entered = addresses_of(verdict.due) + taken_apart(verdict) + postponed(verdict)
    assert len(set(entered)) == len(entered)
    assert set(entered) <= made.of_state(EntryState.DUE)


@given(slices())
def test_due_direct_entries_wait_only_for_pages_of_the_slow_lane(made: Slice) -> None:
    slow = {place for lease in made.leases.values() for place in lease.slow}
    due = made.of_state(EntryState.DUE)
    direct = {address for address in due if address.direct and address.place not in slow}
    assert direct <= set(addresses_of(made.verdict().due))


@given(slices())
def test_each_page_is_worked_on_once_and_a_slice_is_open_while_any_is(made: Slice) -> None:
    verdict = made.verdict()
    worked_on = [found.page for found, _ in [*verdict.resend, *verdict.take_apart]]
    unfinished = [page for page, _ in verdict.unfinished]
    assert sorted(worked_on + verdict.waits_for) == sorted(unfinished)
    assert len(set(unfinished)) == len(unfinished)


@given(slices())
def test_every_due_entry_gets_a_new_entry_or_is_in_an_open_page(made: Slice) -> None:
    """If a page is held, the due entries of a page behind it are not left out."""
    verdict = made.verdict()
    due = made.of_state(EntryState.DUE) - {*addresses_of(verdict.due)}
    left = due - {*taken_apart(verdict), *postponed(verdict)}
    page_of = _pages_of(made, due)
    assert {page_of[address.place] for address in left} <= {page for page, _ in verdict.unfinished}


def _pages_of(made: Slice, due: set[Address]) -> dict[str, str]:
    """Maps the due places to pages, by the ends of the leases and by the entries that pages passed
    on. A page keeps its rest until it has no due entry of its own."""
    found: dict[str, str] = {}

    def keep(page: str, places: list[str]) -> None:
        lease = made.leases.get(page)
        slow = [place for place in places if lease and place in lease.slow]
        rest = [place for place in places if lease and place in lease.rest]
        own = [place for place in places if place not in (*slow, *rest)]
        found.update(dict.fromkeys(own, page))
        if slow:
            keep(slow_page(page), slow)
        if rest and lease and own and not lease.done:
            found.update(dict.fromkeys(rest, page))
        elif rest:
            keep(rest_page(page), rest)

    left, page = sorted(address.place for address in due if not address.direct), first_page()
    while left:
        end = made.leases[page].end if page in made.leases else None
        inside = [place for place in left if end is None or place <= end]
        keep(page, inside)
        left, page = left[len(inside) :], next_page(page)
    direct = {address.place for address in due if address.direct}
    for page, lease in made.leases.items():
        if is_direct_page(page):
            keep(slow_page(page), sorted(direct.intersection(lease.slow)))
    return found


@given(slices())
def test_only_slow_pages_that_have_not_begun_are_postponed(made: Slice) -> None:
    for found, _ in made.verdict().postponed:
        assert is_slow_page(found.page)
        assert not found.done
        assert not found.tries


@given(slices())
def test_a_finished_or_held_page_is_neither_sent_again_nor_taken_apart(made: Slice) -> None:
    verdict = made.verdict()
    for found, _ in [*verdict.resend, *verdict.take_apart]:
        assert not found.done
        assert found.owner is None or found.until_ms <= NOW_MS
    for found, _ in verdict.resend:
        assert not (found.resends and found.resent_ms + RESEND_EVERY_MS > NOW_MS)
        assert max(found.tries, found.resends) < TRIES_MAX
    for page in verdict.waits_for:
        if is_passed_on(page) and page not in made.leases:  # a moment ago
            assert made.leases[page[:-1]].until_ms > NOW_MS - PASSED_ON_BEGUN_WITHIN_MS
            continue
        assert not made.leases[page].done


@given(slices())
def test_a_page_is_sent_again_with_its_range_and_contains_a_due_entry(made: Slice) -> None:
    due = {address.place for address in made.of_state(EntryState.DUE)}
    for found, message in made.verdict().resend:
        assert (message.second, message.shard, message.page) == (SECOND, SHARD, found.page)
        if is_passed_on(message.page):
            parent = made.leases[message.page[:-1]]
            assert message.places == (parent.slow if message.page[-1] == "s" else parent.rest)
            assert due & set(message.places)
        else:
            before = [
                one.end for one in made.leases.values() if next_page_or_none(one) == message.page
            ]
            assert message.places == ()
            assert message.after == (before[0] if before else None)
            assert any(message.after is None or place > message.after for place in due)


@given(slices())
def test_a_begun_page_is_taken_apart_into_at_most_one_page_of_due_entries_in_order(
    made: Slice,
) -> None:
    for found, due in made.verdict().take_apart:
        places = [one.address.place for one in due]
        assert len(places) >= 1
        assert len(places) <= PAGE_SIZE or not found.tries
        assert places == sorted(places)


@many_slices
@given(slices())
def test_the_sweep_finishes_any_slice_without_notifiers(made: Slice) -> None:
    """No notifier is alive: each minute's verdict is carried out. In the end every due task has
    exactly one new entry, and each page got one message a minute at most."""
    due = {made.entries[address] for address in made.of_state(EntryState.DUE)}
    entered: list[Address] = []
    for minute in range(200):
        now_ms = NOW_MS + minute * RESEND_EVERY_MS
        verdict = made.verdict(now_ms)
        assert len({found.page for found, _ in verdict.resend}) == len(verdict.resend)
        entered += carry_out(made, verdict, now_ms)
        if not verdict.unfinished:
            break
    assert not verdict.unfinished
    assert sorted(entered, key=str) == sorted(due, key=str)
    assert made.verdict(NOW_MS + 10**9) == Verdict(), "another read finds nothing more"


def next_page_or_none(found: PageLease) -> str | None:
    return next_page(found.page) if found.page.isdecimal() else None


def carry_out(made: Slice, verdict: Verdict, now_ms: int) -> list[Address]:
    """The sweeper's work for a verdict. Returns the homes that got a new entry."""
    apart = [seen for _, due in [*verdict.take_apart, *verdict.postponed] for seen in due]
    entered = []
    for seen in [*verdict.due, *apart]:
        assert seen.home is not None
        home = seen.home.home
        made.homes[home] = replace(made.homes[home], entry=AHEAD)
        entered.append(home)
        if home != seen.address:
            del made.entries[seen.address]
    for found, _ in verdict.resend:
        made.leases[found.page] = replace(found, resends=found.resends + 1, resent_ms=now_ms)
    for found, due in verdict.take_apart:
        end = found.end or due[-1].address.place
        made.leases[found.page] = replace(found, done=True, end=end)
    for found, _ in verdict.postponed:
        made.leases[found.page] = replace(found, done=True)
    return entered
