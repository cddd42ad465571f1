"""The seconds at which the movable clock has to stop."""

from typing import Any

from local.control.wheel_contents import contents_of


def item(place: str, **attributes: Any) -> dict[str, Any]:
    return {"slot": {"S": "7.0"}, "place": {"S": place}, **attributes}


def test_a_second_begins_with_the_first_entry_of_its_slice() -> None:
    later, first = "01800000007.900#AAAAAAAAAAE", "01800000007.250#AAAAAAAAAAI"
    direct = "01800000007/100#AAAAAAAAAAM"
    assert contents_of(map(item, [later, first, direct])).first_ms == {
        1_800_000_007: 1_800_000_007_250
    }


def test_damaged_places_count_from_the_start_of_their_second_if_they_have_one() -> None:
    contents = contents_of(map(item, ["01800000007.9", "garbage"]))
    assert contents.first_ms == {1_800_000_007: 1_800_000_007_000}
    assert contents.owed == frozenset()
