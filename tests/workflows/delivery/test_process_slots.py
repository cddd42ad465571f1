"""Slots go to the businesses in the order of their calls, and within a business by priority."""

import asyncio
from collections.abc import Sequence

import pytest

from duewheel.workflows.delivery.process_slots import ProcessSlots

Call = tuple[str, int, int]  # business, place, order


def served(slots: int, calls: Sequence[Call]) -> list[Call]:
    async def story() -> list[Call]:
        shared, order = ProcessSlots(slots), list[Call]()

        async def one(call: Call) -> None:
            biz_type, place, order_ms = call
            await shared.acquire(biz_type, (place, 0), order_ms)
            order.append(call)
            await asyncio.sleep(0)
            shared.release()

        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(one(call))
        return order

    return asyncio.run(story())


def test_as_many_as_there_are_slots_go_at_once() -> None:
    calls = [("a", 9, 9), ("a", 8, 8), ("b", 7, 7), ("a", 1, 1)]
    assert served(3, calls) == calls


def test_calls_of_a_business_that_wait_are_served_by_their_order_and_then_as_they_came() -> None:
    orders = [5, 3, 4, 3, 1]
    found = served(1, [("a", place, order) for place, order in enumerate(orders)])
    assert found == [("a", 0, 5), ("a", 4, 1), ("a", 1, 3), ("a", 3, 3), ("a", 2, 4)]


def test_no_order_of_a_business_delays_another_one() -> None:
    """Each has every other place, whatever it does with its own."""
    loud = [("loud", place, -place) for place in range(0, 8, 2)]
    quiet = [("quiet", place, 0) for place in range(1, 8, 2)]
    found = served(1, [("loud", -1, 0), *loud, *quiet])
    assert [biz_type for biz_type, _, _ in found[1:]] == ["loud", "quiet"] * 4
    assert [place for biz_type, place, _ in found[1:] if biz_type == "loud"] == [6, 4, 2, 0]


def test_a_newcomer_does_not_take_the_slot_that_one_who_waits_has_got() -> None:
    async def story() -> list[str]:
        slots, order = ProcessSlots(1), list[str]()
        await slots.acquire("a", (0, 0), 0)

        async def one(name: str, place: int) -> None:
            await slots.acquire("a", (place, 0), place)
            order.append(name)
            slots.release()

        waiting = asyncio.create_task(one("waiting", 9))
        await asyncio.sleep(0)
        slots.release()
        await asyncio.gather(one("newcomer", 1), waiting)
        return order

    assert asyncio.run(story()) == ["waiting", "newcomer"]


@pytest.mark.parametrize("is_granted", [False, True])
def test_one_that_is_cancelled_while_it_waits_takes_no_slot_along(is_granted: bool) -> None:
    async def story() -> None:
        slots = ProcessSlots(1)
        await slots.acquire("a", (0, 0), 0)
        waiting = asyncio.create_task(slots.acquire("b", (1, 0), 1))
        await asyncio.sleep(0)
        if is_granted:
            slots.release()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not is_granted:
            slots.release()
        async with asyncio.timeout(1):
            await slots.acquire("a", (2, 0), 2)

    asyncio.run(story())
