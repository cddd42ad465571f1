"""The seconds at which the movable clock has to stop."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from local.control.wheel_contents import WheelContents, contents_of


def item(place: str, **attributes: Any) -> dict[str, Any]:
    return {"slot": {"S": "7.0"}, "place": {"S": place}, **attributes}


def test_a_second_begins_with_the_first_entry_of_its_slice() -> None:
    later, first = "01800000007.900#AAAAAAAAAAE", "01800000007.250#AAAAAAAAAAI"
    direct = "01800000007/100#AAAAAAAAAAM"
    contents = contents_of(map(item, [later, first, direct]))
    assert contents.first_ms(1_800_000_007) == 1_800_000_007_250


def test_damaged_places_count_from_the_start_of_their_second_if_they_have_one() -> None:
    contents = contents_of(map(item, ["01800000007.9", "garbage"]))
    assert contents.first_ms(1_800_000_007) == 1_800_000_007_000
    assert contents.owed == frozenset()


SLOTS, BASE = ("7.0", "7.1", "8.0"), 1_800_000_000
PLACES = st.builds(
    lambda second, ms, tail: f"0{BASE + second}.{ms:03}#AAAAAAAAAA{tail}",
    st.integers(0, 9),
    st.integers(0, 999),
    st.sampled_from("AEIMQ"),
)
TASKS = st.builds(
    lambda place, status: {"place": {"S": place}, "status": {"S": status}},
    PLACES,
    st.sampled_from(["pending", "delivered", "cancelled", "nonsense"]),
)
REENTRIES = st.builds(
    lambda place, home: {"place": {"S": place}, "home": {"S": home}}, PLACES, PLACES
)
WRITES = st.lists(
    st.tuples(st.sampled_from(SLOTS), st.lists(st.one_of(TASKS, REENTRIES), max_size=4)),
    max_size=12,
)


@given(WRITES)
def test_contents_that_follow_writes_are_those_of_all_items(
    writes: list[tuple[str, list[dict[str, Any]]]],
) -> None:
    followed, slots = WheelContents(), dict[str, list[dict[str, Any]]]()
    for slot, items in writes:
        slots[slot] = [{"slot": {"S": slot}, **one} for one in items]
        followed.replace(slot, slots[slot])
    fresh = contents_of(one for items in slots.values() for one in items)
    assert followed.delivered == fresh.delivered
    assert followed.owed == fresh.owed
    for second in range(BASE - 1, BASE + 11):
        assert followed.first_ms(second) == fresh.first_ms(second)
        assert followed.first_owed_after(second) == min(
            (one for one in fresh.owed if one > second), default=None
        )
        for up_to in (second, second + 3, second + 20):
            assert followed.first_occupied_between(second, up_to) == (
                fresh.first_occupied_between(second, up_to)
            )
