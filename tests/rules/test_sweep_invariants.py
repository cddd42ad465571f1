"""What holds of every verdict, whatever a slice looks like: above all, nothing owed is passed over.

Held against slices whose true state is known from how they were made.
"""

from dataclasses import replace

from hypothesis import given, settings

from duewheel.rules.addresses import Address, is_passed_on, next_page
from duewheel.rules.page_lease import TRIES_MAX, PageLease
from duewheel.rules.sweep_verdict import RESEND_EVERY_MS, EntryState, Verdict
from tests.support.known_slices import (
    AHEAD,
    NOW_MS,
    PAGE_SIZE,
    SECOND,
    SHARD,
    Slice,
    addresses_of,
    slices,
    taken_apart,
)

many_slices = settings(max_examples=150)


@many_slices
@given(slices())
def test_nothing_owed_is_ever_passed_over(made: Slice) -> None:
    """A verdict that lets the pointer go on gives every owed task a new entry."""
    verdict = made.verdict()
    if not verdict.keeps_waiting:
        assert set(addresses_of(verdict.owed)) == made.of_state(EntryState.OWED)


@given(slices())
def test_only_what_is_owed_is_entered_anew_and_only_once(made: Slice) -> None:
    verdict = made.verdict()
    entered = addresses_of(verdict.owed) + taken_apart(verdict)
    assert len(set(entered)) == len(entered)
    assert set(entered) <= made.of_state(EntryState.OWED)


@given(slices())
def test_direct_entries_wait_for_no_page(made: Slice) -> None:
    direct = {address for address in made.of_state(EntryState.OWED) if address.direct}
    assert direct <= set(addresses_of(made.verdict().owed))


@given(slices())
def test_at_most_one_page_of_a_slice_is_worked_on_at_a_time(made: Slice) -> None:
    verdict = made.verdict()
    assert len(verdict.resend) + len(verdict.waits_for) + len(verdict.take_apart) <= 1


@given(slices())
def test_a_page_that_is_done_or_held_is_left_in_peace(made: Slice) -> None:
    verdict = made.verdict()
    for found, _ in [*verdict.resend, *verdict.take_apart]:
        assert not found.done
        assert found.owner is None or found.until_ms <= NOW_MS
    for found, _ in verdict.resend:
        assert not (found.resends and found.resent_ms + RESEND_EVERY_MS > NOW_MS)
        assert max(found.tries, found.resends) < TRIES_MAX
    for page in verdict.waits_for:
        assert page in made.leases
        assert not made.leases[page].done


@given(slices())
def test_a_page_is_sent_again_as_it_was_cut_and_covers_something_owed(made: Slice) -> None:
    owed = {address.place for address in made.of_state(EntryState.OWED)}
    for found, message in made.verdict().resend:
        assert (message.second, message.shard, message.page) == (SECOND, SHARD, found.page)
        if is_passed_on(message.page):
            assert message.places == made.leases[message.page[:-1]].rest
            assert owed & set(message.places)
        else:
            before = [
                one.end for one in made.leases.values() if next_page_or_none(one) == message.page
            ]
            assert message.places == ()
            assert message.after == (before[0] if before else None)
            assert any(message.after is None or place > message.after for place in owed)


@given(slices())
def test_a_page_is_taken_apart_into_a_pages_worth_of_owed_entries_in_order(made: Slice) -> None:
    for _, owed in made.verdict().take_apart:
        places = [one.address.place for one in owed]
        assert 1 <= len(places) <= PAGE_SIZE
        assert places == sorted(places)


@many_slices
@given(slices())
def test_the_sweep_alone_brings_any_slice_to_its_end(made: Slice) -> None:
    """No notifier is alive: each minute's verdict is carried out, and after some of them
    every owed task has got exactly one new entry, with one message a minute at most."""
    owed = {made.entries[address] for address in made.of_state(EntryState.OWED)}
    entered: list[Address] = []
    for minute in range(200):
        now_ms = NOW_MS + minute * RESEND_EVERY_MS
        verdict = made.verdict(now_ms)
        assert len(verdict.resend) <= 1
        entered += carry_out(made, verdict, now_ms)
        if not verdict.keeps_waiting:
            break
    assert not verdict.keeps_waiting
    assert sorted(entered, key=str) == sorted(owed, key=str)
    assert made.verdict(NOW_MS + 10**9) == Verdict(), "a second look finds nothing more"


def next_page_or_none(found: PageLease) -> str | None:
    return None if is_passed_on(found.page) else next_page(found.page)


def carry_out(made: Slice, verdict: Verdict, now_ms: int) -> list[Address]:
    """What the sweeper does with a verdict; returns the homes that got a new entry."""
    apart = [seen for _, owed in verdict.take_apart for seen in owed]
    entered = []
    for seen in [*verdict.owed, *apart]:
        assert seen.home is not None
        home = seen.home.home
        made.homes[home] = replace(made.homes[home], entry=AHEAD)
        entered.append(home)
        if home != seen.address:
            del made.entries[seen.address]
    for found, _ in verdict.resend:
        made.leases[found.page] = replace(found, resends=found.resends + 1, resent_ms=now_ms)
    for found, owed in verdict.take_apart:
        end = found.end or owed[-1].address.place
        made.leases[found.page] = replace(found, done=True, end=end)
    return entered
