"""Whether a second is finished, and the work that it still needs: a table for each branch."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.delivery.page_lease import TRIES_MAX, PageLease
from duewheel.rules.sweep.verdict import (
    PASSED_ON_BEGUN_WITHIN_MS,
    RESEND_EVERY_MS,
    UNBEGUN_EVERY_MS_MAX,
    EntryState,
    Verdict,
)
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import Address, direct_page, first_page, rest_page, slow_page
from duewheel.rules.wheel.open_places import Why
from tests.support.cases import each_case
from tests.support.known_slices import (
    AHEAD,
    BEHIND,
    ELSEWHERE,
    JUST_NOW,
    LONG_AGO,
    NOW_MS,
    PAGE_SIZE,
    SECOND,
    SETTLED,
    SHARD,
    Slice,
    addresses_of,
    at,
    here,
    taken_apart,
)


def due_homes(count: int) -> Slice:
    made = Slice()
    for number in range(count):
        made.add_home(here(number), here(number), EntryState.DUE)
    return made


def lease(page: str = first_page(), **changes: Any) -> PageLease:
    return replace(PageLease(SECOND, SHARD, page=page), **changes)


def with_leases(made: Slice, *leases: PageLease) -> Slice:
    made.leases = {one.page: one for one in leases}
    return made


# One entry


def test_a_pending_home_that_names_itself_is_due() -> None:
    made = Slice()
    made.add_home(here(1, direct=True), here(1, direct=True), EntryState.DUE)
    assert addresses_of(made.verdict().due) == [here(1, direct=True)]


@each_case("status", SETTLED)
def test_a_settled_home_is_finished_and_never_deleted(status: Status) -> None:
    made = Slice()
    made.add_home(here(1), here(1), EntryState.FINISHED, status)
    assert made.verdict() == Verdict()


@each_case("named", [AHEAD, at(SECOND + 1, 0)])
def test_a_home_that_names_an_entry_ahead_is_finished(named: Address) -> None:
    made = Slice()
    made.add_home(here(1), named, EntryState.FINISHED)
    assert made.verdict() == Verdict()


@each_case("named", [BEHIND, here(999), here(1, direct=True)])
def test_a_home_whose_named_entry_is_lost_is_due_without_waiting_for_a_page(named: Address) -> None:
    made = with_leases(Slice(), lease(owner="alive", until_ms=NOW_MS + 1))
    made.add_home(here(1), named, EntryState.DUE)
    verdict = made.verdict()
    assert addresses_of(verdict.due) == [here(1)]
    assert not verdict.unfinished


def test_only_the_named_entry_is_due_when_its_home_is_in_the_same_second() -> None:
    made = Slice()
    named = here(2, direct=True)
    made.add_pair(here(1), named)
    assert addresses_of(made.verdict().due) == [named]


@each_case(
    ("named", "status"),
    [
        (None, Status.PENDING),  # the home is missing
        (ELSEWHERE, Status.PENDING),
        (AHEAD, Status.PENDING),
        *((here(1), status) for status in SETTLED),  # worked off, but not deleted
    ],
)
def test_a_reentry_that_may_never_fire_is_deleted(named: Address | None, status: Status) -> None:
    made = Slice()
    made.add_entry(here(1), ELSEWHERE, named, EntryState.FINISHED, status)
    assert made.verdict() == Verdict()


def test_an_empty_slice_is_finished() -> None:
    assert Slice().verdict() == Verdict()
    assert not Slice().verdict().unfinished


# One page


@each_case(
    ("found", "action"),
    [
        (None, "resend"),  # never begun
        (lease(), "resend"),
        (lease(owner="dead", until_ms=NOW_MS, tries=1), "resend"),
        (lease(owner="alive", until_ms=NOW_MS + 1, tries=1), "wait"),
        (lease(owner="alive", until_ms=NOW_MS + 1, tries=TRIES_MAX), "wait"),
        (lease(resends=1, resent_ms=JUST_NOW), "wait"),
        (lease(resends=1, resent_ms=LONG_AGO), "resend"),
        (lease(resends=TRIES_MAX, resent_ms=JUST_NOW), "wait"),  # the fifth may still arrive
        (lease(resends=TRIES_MAX, resent_ms=LONG_AGO), "wait"),  # the pause grows with each message
        (lease(resends=TRIES_MAX, resent_ms=NOW_MS - UNBEGUN_EVERY_MS_MAX), "take apart"),
        (lease(resends=2, resent_ms=LONG_AGO), "wait"),
        (lease(resends=2, resent_ms=NOW_MS - 2 * RESEND_EVERY_MS), "resend"),
        (lease(owner="dead", until_ms=0, tries=1, resends=3, resent_ms=LONG_AGO), "resend"),
        (lease(owner="dead", until_ms=NOW_MS, tries=TRIES_MAX), "take apart"),
        (
            lease(owner="dead", until_ms=0, tries=TRIES_MAX, resends=1, resent_ms=JUST_NOW),
            "take apart",  # it has used up its tries
        ),
        (lease(done=True), "rescue"),
        (lease(done=True, tries=TRIES_MAX, resends=TRIES_MAX, resent_ms=LONG_AGO), "rescue"),
        (lease(done=True, owner="alive", until_ms=NOW_MS + 1), "rescue"),
    ],
)
def test_each_state_of_a_page_with_due_entries_has_its_action(
    found: PageLease | None, action: str
) -> None:
    made = with_leases(due_homes(2), *(() if found is None else (found,)))
    verdict = made.verdict()
    assert {
        "resend": [one.page for one, _ in verdict.resend],
        "wait": verdict.waits_for,
        "take apart": [one.page for one, _ in verdict.take_apart],
        "rescue": [first_page()] if verdict.due else [],
    } == {
        name: ["0"] if name == action else [] for name in ("resend", "wait", "take apart", "rescue")
    }
    assert (not verdict.unfinished) == (action == "rescue")


def test_a_page_without_due_entries_is_finished() -> None:
    made = with_leases(Slice(), lease(owner="alive", until_ms=NOW_MS + 1))
    made.add_home(here(1), here(1), EntryState.FINISHED, Status.DELIVERED)
    assert not made.verdict().unfinished


def test_a_begun_page_is_taken_apart_one_page_at_a_time() -> None:
    made = with_leases(due_homes(PAGE_SIZE + 2), lease(owner="dead", tries=TRIES_MAX))
    assert taken_apart(made.verdict()) == [here(number) for number in range(PAGE_SIZE)]


def test_a_page_that_never_began_is_taken_apart_with_all_entries_behind_it() -> None:
    made = with_leases(due_homes(PAGE_SIZE + 2), lease(resends=TRIES_MAX, resent_ms=0))
    assert taken_apart(made.verdict()) == [here(number) for number in range(PAGE_SIZE + 2)]


# Several pages


def test_pages_behind_a_finished_page_are_checked() -> None:
    made = with_leases(
        due_homes(4),
        lease("0", done=True, end=here(1).place),
        lease("1", after=here(1).place),
    )
    verdict = made.verdict()
    assert addresses_of(verdict.due) == [here(0), here(1)]
    ((_, message),) = verdict.resend
    assert (message.page, message.after) == ("1", here(1).place)


def test_a_page_without_a_lease_is_sent_from_the_end_of_the_page_before() -> None:
    made = with_leases(due_homes(4), lease("0", done=True, end=here(2).place))
    ((_, message),) = made.verdict().resend
    assert (message.page, message.after, message.places) == ("1", here(2).place, ())


def test_pages_behind_a_held_page_are_checked() -> None:
    made = with_leases(
        due_homes(6),
        lease("0", owner="alive", until_ms=NOW_MS + 1, tries=1, end=here(1).place),
        lease("1", after=here(1).place, end=here(3).place, done=True),
        lease("2", after=here(3).place),
    )
    verdict = made.verdict()
    assert verdict.unfinished == [("0", Why.HELD), ("2", Why.UNBEGUN)]
    assert addresses_of(verdict.due) == [here(2), here(3)]
    assert [message.page for _, message in verdict.resend] == ["2"]


def test_entries_behind_a_page_without_a_recorded_end_belong_to_it() -> None:
    made = with_leases(due_homes(6), lease("0", owner="alive", until_ms=NOW_MS + 1, tries=1))
    assert made.verdict().unfinished == [("0", Why.HELD)]


def test_a_lost_message_of_a_rest_page_is_sent_again_with_all_its_places() -> None:
    rest = (here(0).place, here(2).place)
    made = with_leases(due_homes(3), lease(done=True, rest=rest))
    verdict = made.verdict()
    assert addresses_of(verdict.due) == [here(1)]
    ((_, message),) = verdict.resend
    assert (message.page, message.places) == (rest_page("0"), rest)


def test_the_rest_page_of_a_rest_page_is_checked() -> None:
    first = (here(0).place, here(1).place, here(2).place)
    second = (here(2).place,)
    made = with_leases(
        due_homes(3),
        lease("0", done=True, rest=first),
        lease("0r", done=True, rest=second),
    )
    verdict = made.verdict()
    assert addresses_of(verdict.due) == [here(0), here(1)]
    ((_, message),) = verdict.resend
    assert (message.page, message.places) == ("0rr", second)


# The slow lane


SLOW = (here(0).place, here(1).place)


@each_case(
    ("found", "action"),
    [
        (None, "postpone"),  # never begun
        (lease("0s"), "postpone"),
        (lease("0s", owner="alive", until_ms=NOW_MS + 1, tries=1), "wait"),
        (lease("0s", owner="dead", until_ms=NOW_MS, tries=1), "resend"),
        (lease("0s", owner="dead", until_ms=NOW_MS, tries=TRIES_MAX), "take apart"),
        (lease("0s", done=True), "rescue"),
    ],
)
def test_each_state_of_a_slow_page_has_its_action(found: PageLease | None, action: str) -> None:
    parent = lease(done=True, slow=SLOW, until_ms=NOW_MS - PASSED_ON_BEGUN_WITHIN_MS)
    verdict = with_leases(due_homes(2), parent, *(() if found is None else (found,))).verdict()
    assert {
        "postpone": [one.page for one, _ in verdict.postponed],
        "wait": verdict.waits_for,
        "resend": [message.page for _, message in verdict.resend if message.places == SLOW],
        "take apart": [one.page for one, _ in verdict.take_apart],
        "rescue": ["0s"] if verdict.due else [],
    } == {
        name: ["0s"] if name == action else []
        for name in ("postpone", "wait", "resend", "take apart", "rescue")
    }
    assert (not verdict.unfinished) == (action in ("postpone", "rescue"))


@pytest.mark.parametrize(("passed", "page"), [("slow", "0s"), ("rest", "0r")])
def test_a_page_that_was_passed_on_is_left_for_as_long_as_its_queue_may_hide_the_message(
    passed: str, page: str
) -> None:
    until_ms = NOW_MS - PASSED_ON_BEGUN_WITHIN_MS + 1
    parent = replace(lease(done=True, until_ms=until_ms), **{passed: SLOW})
    verdict = with_leases(due_homes(2), parent).verdict()
    assert verdict == Verdict(waits_for=[page], unfinished=[(page, Why.UNBEGUN)])


def test_pages_behind_a_slow_page_are_checked() -> None:
    made = with_leases(
        due_homes(4),
        lease("0", done=True, end=here(1).place, slow=SLOW),
        lease("0s", owner="alive", until_ms=NOW_MS + 1, tries=1),
        lease("1", after=here(1).place),
    )
    verdict = made.verdict()
    assert verdict.waits_for == ["0s"]
    assert [message.page for _, message in verdict.resend] == ["1"]


def test_direct_entries_that_were_passed_to_the_slow_lane_are_checked_with_their_slow_page() -> (
    None
):
    made = Slice()
    for number in range(3):
        address = here(number, direct=True)
        made.add_home(address, address, EntryState.DUE)
    passed = tuple(here(number, direct=True).place for number in (0, 2))
    page = direct_page(passed)
    verdict = with_leases(made, lease(page, slow=passed)).verdict()
    assert addresses_of(verdict.due) == [here(1, direct=True)]
    ((found, due),) = verdict.postponed
    assert (found.page, len(due)) == (slow_page(page), 2)
