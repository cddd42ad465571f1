"""The record of a line: turns, permits, the lease, and who asks for a server."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.line import record as rules
from duewheel.rules.line.record import LeftBehind, Limits, Out, Record
from duewheel.rules.wheel.timing import SKEW_MS

NOW_MS = 1_800_000_000_000
END_MS = NOW_MS + 20_000
LEASE_MS, CALL_MS, MOST = 15_000, 10_000, 50
TWO = Limits(in_flight=2)
TEN_A_SECOND = Limits(interval_us=100_000)


def granted(
    record: Record, limits: Limits, wanted: int, run: str = "a", now_ms: int = NOW_MS
) -> tuple[Record, int]:
    after, grant = rules.granted(record, run, limits, wanted, 0, now_ms, 2_000, END_MS)
    return after or record, grant.count


def served(record: Record, run: str = "s", named_ms: int | None = None) -> Record | None:
    return rules.taken(record, run, TWO, 0, named_ms, NOW_MS, LEASE_MS, CALL_MS, MOST)


def test_pages_get_permits_until_the_limit_and_the_record_says_that_something_waits() -> None:
    first, count = granted(Record(), TWO, 1)
    assert (count, first.waits) == (1, False)
    second, count = granted(first, TWO, 3, "b")
    assert (count, second.waits) == (1, True)
    assert second.out == {"a": Out(1, END_MS), "b": Out(1, END_MS)}


def test_while_something_waits_or_is_served_a_page_gets_nothing_and_writes_it_once() -> None:
    assert granted(Record(waits=True), TWO, 1) == (Record(waits=True), 0)
    owned = Record(owner="s", owned_until_ms=NOW_MS)
    after, count = granted(owned, TWO, 1)
    assert (count, after.waits) == (0, True)


def test_a_closed_scope_gives_nothing() -> None:
    after, count = granted(Record(), Limits(is_open=False), 2)
    assert (count, after.waits) == (0, True)


def test_without_a_limit_nothing_is_written() -> None:
    assert rules.granted(Record(), "a", Limits(), 9, 0, NOW_MS, 2_000, END_MS)[0] is None


def test_what_is_out_counts_until_its_end_by_all_clocks() -> None:
    taken = Record(out={"dead": Out(2, NOW_MS)})
    assert granted(taken, TWO, 1, now_ms=NOW_MS + SKEW_MS)[1] == 0
    after, count = granted(taken, TWO, 1, now_ms=NOW_MS + SKEW_MS + 1)
    assert (count, set(after.out)) == (1, {"a"})


def test_work_that_goes_on_takes_permits() -> None:
    assert rules.granted(Record(), "a", TWO, 2, 1, NOW_MS, 0, END_MS)[1].count == 1
    assert rules.granted(Record(), "a", TWO, 2, 5, NOW_MS, 0, END_MS)[1].count == 0


def test_turns_lie_an_interval_apart_and_within_what_a_page_may_wait() -> None:
    after, grant = rules.granted(Record(), "a", TEN_A_SECOND, 50, 0, NOW_MS, 2_000, END_MS)
    assert after is not None
    assert grant.count == 21
    turns = [grant.turn_ms(number, 100_000) - NOW_MS for number in range(21)]
    assert turns == [number * 100 for number in range(21)]
    assert after.turn_us == (NOW_MS + 2_100) * 1_000


def test_a_higher_rate_holds_from_the_last_turn_on_and_a_lower_one_from_the_next() -> None:
    slow = Record(turn_us=(NOW_MS + 600_000) * 1_000, interval_us=600_000_000)
    assert rules.next_turn_us(slow, TEN_A_SECOND, NOW_MS) == (NOW_MS + 100) * 1_000
    quick = Record(turn_us=(NOW_MS + 50) * 1_000, interval_us=100_000)
    assert rules.next_turn_us(quick, Limits(interval_us=600_000_000), NOW_MS) == quick.turn_us


def test_without_a_rate_a_turn_is_free_at_once() -> None:
    assert rules.next_turn_us(Record(turn_us=10**18, interval_us=9), TWO, NOW_MS) == NOW_MS * 1_000


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 40)), min_size=1, max_size=20),
    st.integers(1, 5_000_000),
)
def test_no_two_turns_are_closer_than_the_interval(
    pages: list[tuple[int, int]], interval_us: int
) -> None:
    record, now_ms, turns = Record(), NOW_MS, []
    limits = Limits(interval_us=interval_us)
    for later_ms, wanted in pages:
        now_ms += later_ms
        after, grant = rules.granted(record, "a", limits, wanted, 0, now_ms, 2_000, END_MS)
        turns += [grant.first_us + number * interval_us for number in range(grant.count)]
        record = replace(after or record, waits=False)
    assert all(b - a >= interval_us for a, b in pairwise(turns))


def test_a_page_gives_its_permits_back_and_only_its_own() -> None:
    two = Record(version=3, out={"a": Out(1, END_MS), "b": Out(1, END_MS)})
    after = rules.given_back(two, "a", waits=False, works_until_ms=END_MS)
    assert after == Record(version=4, out={"b": Out(1, END_MS)}, works_until_ms=END_MS)
    assert rules.given_back(Record(), "a", waits=False) is None


def test_one_server_has_the_lease_until_it_is_over_by_all_clocks() -> None:
    mine = served(Record(waits=True))
    assert mine is not None
    assert (mine.owner, mine.owned_until_ms) == ("s", NOW_MS + LEASE_MS)
    assert mine.out == {"s": Out(2, NOW_MS + LEASE_MS + CALL_MS)}
    assert served(mine, "t") is None
    over = replace(mine, owned_until_ms=NOW_MS - SKEW_MS - 1)
    assert served(over, "t") is not None


def test_a_message_of_another_sleep_takes_no_lease() -> None:
    asleep = Record(waits=True, sleep_ms=NOW_MS + 60_000)
    assert served(asleep, named_ms=NOW_MS + 30_000) is None
    woken = served(asleep, named_ms=NOW_MS + 60_000)
    assert woken is not None
    assert woken.sleep_ms is None
    assert served(asleep) is not None  # of who has made room


def test_a_renewal_declares_what_is_under_way_though_the_limit_is_lower_now() -> None:
    mine = served(Record(waits=True))
    assert mine is not None
    lowered = Limits(in_flight=1)
    after = rules.renewed(mine, "s", lowered, 0, 2, NOW_MS + 1_000, LEASE_MS, CALL_MS, MOST)
    assert after is not None
    assert after.out["s"].count == 2
    other = rules.renewed(mine, "t", lowered, 0, 0, NOW_MS, LEASE_MS, CALL_MS, MOST)
    assert other is None


def test_what_a_server_has_under_way_is_declared_also_while_no_limit_holds() -> None:
    mine = Record(waits=True, owner="s")
    after = rules.renewed(mine, "s", Limits(), 0, 3, NOW_MS, LEASE_MS, CALL_MS, MOST)
    assert after is not None
    assert after.out == {"s": Out(3, NOW_MS + LEASE_MS + CALL_MS)}


def test_only_the_server_takes_turns_of_a_line() -> None:
    mine = Record(owner="s")
    after = rules.turn_taken(mine, "s", TEN_A_SECOND, 3, NOW_MS)
    assert after is not None
    assert after.turn_us == (NOW_MS + 300) * 1_000
    assert rules.turn_taken(mine, "t", TEN_A_SECOND, 3, NOW_MS) is None


def test_an_empty_line_waits_no_more_and_a_sleeping_one_says_until_when() -> None:
    mine = Record(waits=True, owner="s", out={"s": Out(2, END_MS)})
    empty = rules.handed_back(mine, "s", LeftBehind(is_empty=True), 0)
    assert empty == Record(version=1)
    for known in (mine, replace(mine, waits=False)):
        asleep = rules.handed_back(known, "s", LeftBehind(sleep_ms=END_MS), 0)
        assert asleep == Record(version=1, waits=True, sleep_ms=END_MS)


def test_calls_that_go_on_in_another_hand_stay_declared() -> None:
    mine = Record(waits=True, owner="s", out={"s": Out(2, END_MS)})
    after = rules.handed_back(mine, "s", LeftBehind(under_way=Out(1, END_MS)), 0)
    assert after is not None
    assert (after.owner, after.out) == (None, {"s": Out(1, END_MS)})


def test_a_server_whose_lease_another_has_gives_back_only_what_it_declared() -> None:
    others = Record(waits=True, owner="t", out={"s": Out(2, END_MS), "t": Out(1, END_MS)})
    after = rules.handed_back(others, "s", LeftBehind(is_empty=True), 0)
    assert after == Record(version=1, waits=True, owner="t", out={"t": Out(1, END_MS)})


def test_who_puts_asks_for_a_server_unless_one_is_there_or_the_line_sleeps() -> None:
    waits = Record(waits=True)
    assert waits.asks_for_server(NOW_MS)
    assert not Record().asks_for_server(NOW_MS)
    held = replace(waits, owner="s", owned_until_ms=NOW_MS - SKEW_MS)
    assert not held.asks_for_server(NOW_MS)
    assert held.asks_for_server(NOW_MS + 1)
    asleep = replace(waits, sleep_ms=NOW_MS - SKEW_MS)
    assert not asleep.asks_for_server(NOW_MS)
    assert asleep.asks_for_server(NOW_MS + 1)  # its message may be lost


def test_who_makes_room_asks_for_a_server_of_a_line_that_sleeps() -> None:
    asleep = Record(waits=True, sleep_ms=NOW_MS + 60_000)
    assert asleep.lacks_server(NOW_MS)
    assert not replace(asleep, owner="s", owned_until_ms=NOW_MS).lacks_server(NOW_MS)


def test_room_comes_when_the_first_of_those_that_are_out_is_over() -> None:
    out = {"a": Out(1, END_MS), "b": Out(1, END_MS + 9), "dead": Out(1, NOW_MS - SKEW_MS - 1)}
    assert rules.room_from_ms(Record(out=out), NOW_MS) == END_MS + SKEW_MS + 1
    assert rules.room_from_ms(Record(), NOW_MS) is None
