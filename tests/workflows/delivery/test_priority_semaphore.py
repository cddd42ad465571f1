"""The slots of a semaphore go to those that wait by their order."""

import asyncio

import pytest

from duewheel.workflows.delivery.priority_semaphore import PrioritySemaphore


async def waiting(slots: PrioritySemaphore, orders: list[int], served: list[int]) -> None:
    async def one(order: int) -> None:
        async with slots.slot(order):
            served.append(order)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for order in orders:
            group.create_task(one(order))


def test_those_that_wait_are_served_by_their_order_and_then_as_they_came() -> None:
    served: list[int] = []
    asyncio.run(waiting(PrioritySemaphore(1), [5, 3, 4, 3, 1], served))
    assert served == [5, 1, 3, 3, 4]


def test_as_many_as_there_are_slots_go_at_once() -> None:
    served: list[int] = []
    asyncio.run(waiting(PrioritySemaphore(3), [9, 8, 7, 1], served))
    assert served == [9, 8, 7, 1]


def test_a_newcomer_does_not_take_the_slot_that_one_who_waits_has_got() -> None:
    async def story() -> list[str]:
        slots, served = PrioritySemaphore(1), list[str]()
        await slots.acquire(0)

        async def one(name: str, order: int) -> None:
            await slots.acquire(order)
            served.append(name)
            slots.release()

        waiting = asyncio.create_task(one("waiting", 9))
        await asyncio.sleep(0)
        slots.release()
        await asyncio.gather(one("newcomer", 1), waiting)
        return served

    assert asyncio.run(story()) == ["waiting", "newcomer"]


@pytest.mark.parametrize("is_granted", [False, True])
def test_one_that_is_cancelled_while_it_waits_takes_no_slot_along(is_granted: bool) -> None:
    async def story() -> None:
        slots = PrioritySemaphore(1)
        await slots.acquire(0)
        waiting = asyncio.create_task(slots.acquire(1))
        await asyncio.sleep(0)
        if is_granted:
            slots.release()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not is_granted:
            slots.release()
        async with asyncio.timeout(1):
            await slots.acquire(2)

    asyncio.run(story())
