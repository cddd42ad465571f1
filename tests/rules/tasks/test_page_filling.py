"""A page ends at its limit or its size, and says how far it has looked."""

from duewheel.rules.tasks.listing import PAYLOAD_BYTES_MAX, filled

EVEN = {number: str(number) for number in range(0, 10, 2)}


def test_a_page_ends_with_the_last_that_it_has_room_for() -> None:
    assert filled(range(10), EVEN.get, lambda _: None, 2) == (["0", "2"], range(3))
    assert filled(range(10), EVEN.get, lambda _: None, 5) == (list(EVEN.values()), range(9))
    assert filled(range(10), EVEN.get, lambda _: None, 6) == (list(EVEN.values()), range(10))
    assert filled([], EVEN.get, lambda _: None, 6) == ([], [])


def test_a_page_of_large_payloads_is_short() -> None:
    half = "x" * (PAYLOAD_BYTES_MAX // 2 + 1)
    assert filled(range(10), EVEN.get, lambda _: half, 5) == (["0", "2"], range(3))
