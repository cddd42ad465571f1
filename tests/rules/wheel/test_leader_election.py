"""Who moves the pointer: the table of states, what two schedulers may do, and timelines."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.wheel.leader_election import (
    LEASE_MS,
    POINTER_WRITE_EVERY_MS,
    STANDBY_GRACE_MS,
    WATCH_SECONDS,
    WATCH_SECONDS_AT_HANDOVER,
    Pointer,
    Step,
    next_step,
    standby_after_claim,
    watch_seconds,
)
from duewheel.rules.wheel.timing import SKEW_MS
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_000
LIVE = {"owner": "leader", "lease_until_ms": NOW_MS + 1}
LAPSED = {"owner": "leader", "lease_until_ms": NOW_MS}
RELEASED = {"owner": None, "lease_until_ms": NOW_MS}
LAPSED_WITHIN_GRACE = {"owner": "leader", "lease_until_ms": NOW_MS - STANDBY_GRACE_MS + 1}
LAPSED_BEYOND_GRACE = {"owner": "leader", "lease_until_ms": NOW_MS - STANDBY_GRACE_MS}
NEVER_CLAIMED = {"owner": None, "lease_until_ms": 0}

CLAIM, WAIT = Step.CLAIM, Step.WAIT
AS_STANDBY, AS_CANDIDATE = Step.REGISTER_AS_STANDBY, Step.REGISTER_AS_CANDIDATE


def pointer(**state: Any) -> Pointer:
    return replace(Pointer("time", 0, epoch=1), **state)


# The table


@each_case(
    ("lease", "standby", "candidate", "step"),
    [
        (LIVE, None, None, AS_STANDBY),
        (LIVE, "me", None, WAIT),
        (LIVE, "other", None, AS_CANDIDATE),
        (LIVE, "other", "me", WAIT),
        (LIVE, "me", "other", WAIT),
        (LIVE, "other", "third", WAIT),
        (LIVE, None, "me", WAIT),
        (LAPSED, None, None, CLAIM),
        (LAPSED, "me", None, CLAIM),
        (LAPSED, "me", "other", CLAIM),
        (LAPSED, "other", None, WAIT),
        (LAPSED, "other", "me", WAIT),
        (LAPSED_WITHIN_GRACE, "other", "me", WAIT),
        (LAPSED_BEYOND_GRACE, "other", "me", CLAIM),
        (LAPSED_BEYOND_GRACE, "other", "third", CLAIM),
        (LAPSED_BEYOND_GRACE, "other", None, CLAIM),
        (RELEASED, None, None, CLAIM),
        (RELEASED, "me", None, CLAIM),
        (RELEASED, "other", "me", WAIT),
        (NEVER_CLAIMED, None, None, CLAIM),
    ],
)
def test_what_a_waiting_scheduler_does(
    lease: dict[str, Any], standby: str | None, candidate: str | None, step: Step
) -> None:
    assert next_step(pointer(**lease, standby=standby, candidate=candidate), "me", NOW_MS) is step


def test_a_lease_released_by_a_clock_that_is_ahead_is_free_at_once() -> None:
    released = pointer(owner=None, lease_until_ms=NOW_MS + SKEW_MS, standby="me")
    assert next_step(released, "me", NOW_MS) is CLAIM


@each_case(
    ("standby", "candidate", "claimant", "next_standby"),
    [
        (None, None, "me", None),
        ("me", None, "me", None),
        ("me", "other", "me", "other"),  # who waited behind is next
        ("other", "me", "me", None),  # the old standby let its grace pass: it is gone
        ("other", "third", "me", "third"),
    ],
)
def test_who_waits_behind_whoever_claims(
    standby: str | None, candidate: str | None, claimant: str, next_standby: str | None
) -> None:
    assert (
        standby_after_claim(pointer(standby=standby, candidate=candidate), claimant) == next_standby
    )


def test_everyone_looks_more_often_once_a_hand_over_is_near() -> None:
    assert watch_seconds(pointer(**LIVE, standby="me")) == WATCH_SECONDS
    assert (
        watch_seconds(pointer(**LIVE, standby="me", candidate="other")) == WATCH_SECONDS_AT_HANDOVER
    )


def test_the_lease_outlives_the_pauses_between_its_renewals_and_the_skew_of_clocks() -> None:
    assert POINTER_WRITE_EVERY_MS + SKEW_MS < LEASE_MS
    assert WATCH_SECONDS * 1000 < STANDBY_GRACE_MS
    assert SKEW_MS <= STANDBY_GRACE_MS


def test_a_dead_leader_and_its_dead_standby_are_replaced_within_twelve_seconds() -> None:
    assert LEASE_MS + STANDBY_GRACE_MS + WATCH_SECONDS * 1000 <= 12_000


# Any state

names = st.sampled_from([None, "a", "b", "c"])
pointers = st.builds(
    pointer,
    owner=st.sampled_from([None, "leader"]),
    lease_until_ms=st.integers(NOW_MS - 2 * STANDBY_GRACE_MS, NOW_MS + LEASE_MS),
    standby=names,
    candidate=names,
)
clocks = st.integers(NOW_MS - SKEW_MS, NOW_MS + SKEW_MS)
schedulers = st.sampled_from(["a", "b", "c"])


@given(pointers, schedulers, schedulers, clocks, clocks)
def test_within_the_grace_of_an_standby_no_other_claims_whatever_its_clock(
    seen: Pointer, one: str, other: str, one_ms: int, other_ms: int
) -> None:
    claims = {
        me
        for me, now_ms in ((one, one_ms), (other, other_ms))
        if now_ms < seen.lease_until_ms + STANDBY_GRACE_MS and next_step(seen, me, now_ms) is CLAIM
    }
    assert seen.standby is None or claims <= {seen.standby}


@given(pointers, schedulers)
def test_a_lease_that_is_kept_is_claimed_by_nobody(seen: Pointer, me: str) -> None:
    kept = replace(seen, owner="leader")
    assert next_step(kept, me, kept.lease_until_ms - 1) is not CLAIM


@given(pointers, schedulers)
def test_a_free_lease_never_stays_free(seen: Pointer, me: str) -> None:
    """Its standby may claim at once, and everybody else when the standby does not."""
    free = replace(seen, owner=None)
    assert next_step(free, seen.standby or me, NOW_MS) is CLAIM
    assert next_step(free, me, free.lease_until_ms + STANDBY_GRACE_MS) is CLAIM


@given(pointers, schedulers, clocks)
def test_nobody_takes_two_places_or_the_place_of_another(
    seen: Pointer, me: str, now_ms: int
) -> None:
    step = next_step(seen, me, now_ms)
    if step is AS_STANDBY:
        assert seen.standby is None
    if step is AS_CANDIDATE:
        assert seen.candidate is None
    if step in (AS_STANDBY, AS_CANDIDATE):
        assert me not in (seen.standby, seen.candidate)


@given(pointers, schedulers)
def test_whoever_claims_no_longer_waits(seen: Pointer, me: str) -> None:
    assert standby_after_claim(seen, me) != me


# Timelines

STEP_MS = 250
LONGEST_GAP_MS = LEASE_MS + STANDBY_GRACE_MS + int(WATCH_SECONDS * 1000) + STEP_MS
LIFE_MS = 290_000


@dataclass
class Scheduler:
    """As `Lead` does it, on a pointer that all of them see at once."""

    name: str
    start_ms: int
    end_ms: int
    looks_ms: int = 0
    writes_ms: int = 0

    def turn(self, seen: Pointer, now_ms: int) -> Pointer:
        if seen.owner == self.name:
            return self._lead(seen, now_ms)
        if now_ms < self.looks_ms:
            return seen
        self.looks_ms = now_ms + int(watch_seconds(seen) * 1000)
        match next_step(seen, self.name, now_ms):
            case Step.CLAIM:
                self.writes_ms = now_ms
                return replace(
                    seen,
                    owner=self.name,
                    lease_until_ms=now_ms + LEASE_MS,
                    standby=standby_after_claim(seen, self.name),
                    candidate=None,
                )
            case Step.REGISTER_AS_STANDBY:
                return replace(seen, standby=self.name)
            case Step.REGISTER_AS_CANDIDATE:
                return replace(seen, candidate=self.name)
            case Step.WAIT:
                return seen

    def _lead(self, seen: Pointer, now_ms: int) -> Pointer:
        if now_ms < self.writes_ms + POINTER_WRITE_EVERY_MS:
            return seen
        self.writes_ms = now_ms
        if seen.candidate is not None:
            self.end_ms = now_ms
            return replace(seen, owner=None, lease_until_ms=now_ms)
        return replace(seen, lease_until_ms=now_ms + LEASE_MS)


def run(waiting: list[Scheduler], until_ms: int) -> dict[int, str | None]:
    """Who leads at each step; None where nobody does who is alive."""
    seen = Pointer("time", 0)
    leaders: dict[int, str | None] = {}
    for now_ms in range(0, until_ms, STEP_MS):
        alive = [one for one in waiting if one.start_ms <= now_ms < one.end_ms]
        for one in alive:
            seen = one.turn(seen, now_ms)
        leads = seen.owner in {one.name for one in alive} and now_ms < seen.lease_until_ms
        leaders[now_ms] = seen.owner if leads else None
    return leaders


def longest_gap_ms(leaders: dict[int, str | None]) -> int:
    longest = gap = 0
    for leader in leaders.values():
        gap = 0 if leader is not None else gap + STEP_MS
        longest = max(longest, gap)
    return longest


def test_each_scheduler_waits_a_minute_and_leads_a_minute() -> None:
    everybody = [Scheduler(f"s{n}", n * 60_000, n * 60_000 + LIFE_MS) for n in range(6)]
    leaders = run(everybody, 360_000)
    led = [sum(STEP_MS for leader in leaders.values() if leader == f"s{n}") for n in range(6)]
    assert led[0] == pytest.approx(120_000, abs=10_000)
    assert led[1:4] == [pytest.approx(60_000, abs=10_000)] * 3
    assert longest_gap_ms(leaders) <= 2 * STEP_MS, "a hand-over costs no tick"


@given(
    st.lists(st.integers(0, 59_000), min_size=5, max_size=5),
    st.lists(st.integers(0, LIFE_MS) | st.just(LIFE_MS), min_size=5, max_size=5),
)
def test_whoever_dies_whenever_a_waiting_scheduler_takes_over_within_seconds(
    starts_ms: list[int], lives_ms: list[int]
) -> None:
    """Started somewhere within each minute, and dead without a word at any moment."""
    everybody = [
        Scheduler(f"s{n}", n * 60_000 + start, n * 60_000 + start + life)
        for n, (start, life) in enumerate(zip(starts_ms, lives_ms, strict=True))
    ]
    leaders = run(everybody, 360_000)
    for one in everybody:
        waited = {
            at: who
            for at, who in leaders.items()
            if one.start_ms <= at < one.end_ms  # it died, or stepped down for a candidate
        }
        assert longest_gap_ms(waited) <= LONGEST_GAP_MS
