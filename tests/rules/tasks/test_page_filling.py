"""A page ends at its limit or its size, and contains the key at which it ended."""

from duewheel.rules.tasks.listing import PAYLOAD_BYTES_MAX, Room, filled

EVEN = {number: str(number) for number in range(0, 10, 2)}


def evens(limit: int, payload: str | None = None, *, goes_on: bool = False) -> object:
    return filled(range(10), EVEN.get, lambda _: payload, str, Room(limit), goes_on=goes_on)


def test_a_page_ends_with_the_last_task_that_it_has_room_for() -> None:
    assert evens(2) == (["0", "2"], "2")
    assert evens(5) == (list(EVEN.values()), "8")
    assert evens(6) == (list(EVEN.values()), None)
    assert evens(6, goes_on=True) == (list(EVEN.values()), "9")


def test_the_last_page_has_no_key_of_a_next_page() -> None:
    def odd(number: int) -> str | None:
        return str(number) if number % 2 else None

    assert filled(range(10), odd, lambda _: None, str, Room(5), goes_on=False) == (
        list("13579"),
        None,
    )
    assert filled(range(10), odd, lambda _: None, str, Room(5), goes_on=True) == (
        list("13579"),
        "9",
    )
    assert filled([], EVEN.get, lambda _: None, str, Room(6), goes_on=False) == ([], None)
    assert filled([], EVEN.get, lambda _: None, str, Room(6), goes_on=True) == ([], None)


def test_a_page_of_large_payloads_is_short() -> None:
    half = "x" * (PAYLOAD_BYTES_MAX // 2 + 1)
    assert evens(5, half) == (["0", "2"], "2")


def test_a_page_that_looked_at_enough_records_is_short() -> None:
    found = filled(range(10), EVEN.get, lambda _: None, str, Room(5, records=4), goes_on=False)
    assert found == (["0", "2"], "3")
