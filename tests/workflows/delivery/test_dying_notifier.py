"""A notifier's pages are delivered although it dies, is frozen, or runs twice with the same
event."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.completion import WITHIN_HEADER
from duewheel.rules.callbacks.outcome import Outcome, outcome_of_answer
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, Told
from duewheel.rules.delivery.page_lease import (
    FIRST_RENEWAL_MS,
    LEASE_MS,
    RENEWED_EVERY_MS,
    TRIES_MAX,
    LeaseHeld,
    LeaseLost,
    PageFinished,
    PageLease,
    calls_begin_until_ms,
)
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.queue_messages import PageMessage, decode
from duewheel.workflows.delivery import hold
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX
from tests.support.bounds import quick_first
from tests.support.receiver import BUSY, OK, Received
from tests.support.recorder import Call
from tests.support.world import FAR_MS, LAMBDA_MS, World

CALLED_AGAIN_WITHIN_MS = 20_000
HIDING = "ChangeMessageVisibilityBatch"
# The calls of a page of two tasks, on which the slice continues: take, read, record the end, send
# the next page, read the businesses, settle, finish.
AWS_CALLS_OF_A_PAGE = 7


def died(world: World, message: dict[str, Any], at: int, moment: str) -> None:
    """The notifier dies at its n-th call; hiding does not count, which is made when it begins."""
    assert world.dies(partial(world.handle, message), at, moment, is_counted)


def is_counted(call: Call) -> bool:
    return call.operation != HIDING


def due_together(world: World, number: int, apart_ms: int = 0) -> list[Task]:
    tasks = [world.created(in_ms=FAR_MS + n * apart_ms) for n in range(number)]
    world.dispatch_until(tasks[0].due_ms // 1000)
    return tasks


def check_called_and_settled(world: World, tasks: list[Task], *, at_most: int) -> None:
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    calls = world.receiver.task_ids
    assert all(1 <= calls.count(task.task_id) <= at_most for task in tasks)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "at", quick_first(range(1, AWS_CALLS_OF_A_PAGE + 1), pytest.mark.exhaustive, 3)
)
def test_the_tasks_of_a_dead_notifier_are_called_within_twenty_seconds(
    world: World, at: int, moment: str
) -> None:
    world.wire(page_size=2)
    tasks = due_together(world, 3)
    (message,) = world.receive()
    died(world, message, at, moment)
    died_ms = world.clock.now_ms()

    while world.clock.now_ms() < died_ms + CALLED_AGAIN_WITHIN_MS:
        world.clock.advance_ms(1_000)
        world.drain()

    check_called_and_settled(world, tasks, at_most=2)
    assert world.receiver.task_ids.count(tasks[2].task_id) == 1, (
        "the dead notifier had not begun its page"
    )


def test_a_page_makes_as_many_aws_calls_as_the_deaths_above_cover(world: World) -> None:
    world.wire(page_size=2)
    due_together(world, 3)
    (message,) = world.receive()
    world.recorder.clear()
    world.handle(message)
    made = [one for one in world.recorder.operations() if one not in (HIDING, "DeleteMessage")]
    assert len(made) == AWS_CALLS_OF_A_PAGE


def test_a_near_task_of_a_dead_notifier_is_called_within_twenty_seconds(world: World) -> None:
    task = world.created(in_ms=0)
    (message,) = world.receive()
    died(world, message, 1, "after")

    world.clock.advance_ms(CALLED_AGAIN_WITHIN_MS)
    world.drain()
    check_called_and_settled(world, [task], at_most=1)


@pytest.mark.exhaustive
def test_a_page_whose_notifiers_keep_dying_is_tried_five_times_within_two_minutes(
    world: World,
) -> None:
    (task,) = due_together(world, 1)
    began_ms = world.clock.now_ms()
    for _ in range(TRIES_MAX):
        while not (messages := world.receive()):
            world.clock.advance_ms(1_000)
        died(world, messages[0], 2, "after")
    assert world.clock.now_ms() - began_ms < 120_000

    world.sweep_past(task.home.second)
    world.drain()
    check_called_and_settled(world, [task], at_most=1)


# Renewal of leases


def slow_calls(world: World, each_ms: int) -> None:
    """The calls are made one after the other, as with one call slot."""

    def answer(received: Received) -> Outcome:
        world.clock.advance_ms(each_ms)
        return OK

    world.receiver.answer = answer
    world.deliver = world.notifier(call_slots=1)


def renewals(world: World) -> list[Call]:
    return [
        call
        for call in world.recorder.calls
        if call.request.get("UpdateExpression") == "SET #until_ms = :until_ms"
    ]


@pytest.mark.parametrize(("calls", "renewed"), [(3, 0), (9, 1), (12, 2)])
def test_a_lease_is_renewed_after_ten_seconds_and_then_every_five(
    world: World, calls: int, renewed: int
) -> None:
    tasks = due_together(world, calls)
    slow_calls(world, 1_500)
    world.handle(world.receive()[0])

    check_called_and_settled(world, tasks, at_most=1)
    assert len(renewals(world)) == renewed
    until = [
        int(call.request["ExpressionAttributeValues"][":until_ms"]["N"]) for call in renewals(world)
    ]
    begun_ms = tasks[0].due_ms
    assert all(at - LEASE_MS - begun_ms >= FIRST_RENEWAL_MS for at in until)
    assert all(b - a >= RENEWED_EVERY_MS for a, b in pairwise(until))


def test_no_call_begins_in_the_last_moments_of_a_lease_that_is_not_renewed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table accepts the renewal only at the fourth try."""
    monkeypatch.setattr(hold, "TRIED_AGAIN_MS", 0)
    tasks = due_together(world, 6)
    slow_calls(world, 2_500)
    (message,) = world.receive()
    refused: list[int] = []

    def refuse(call: Call) -> None:
        if call.request.get("UpdateExpression") == "SET #until_ms = :until_ms" and len(refused) < 3:
            refused.append(world.clock.now_ms())
            world.clock.advance_ms(600)
            raise TimeoutError

    world.recorder.before = refuse
    world.handle(message)

    check_called_and_settled(world, tasks, at_most=1)
    assert len(refused) == 3
    held_until_ms = world.receiver.received[0].at_ms + LEASE_MS
    for received in world.receiver.received:
        is_before = received.at_ms <= calls_begin_until_ms(held_until_ms)
        assert is_before or received.at_ms > refused[-1]


def freeze(world: World, message: dict[str, Any], *, taken_by_another: bool) -> None:
    """The process is frozen during the first call, for longer than its lease."""
    decoded = decode(message["Body"])
    assert isinstance(decoded, PageMessage)

    def answer(received: Received) -> Outcome:
        if len(world.receiver.received) == 1:
            world.clock.advance_ms(LEASE_MS + 1)
            if taken_by_another:
                page = PageLease(decoded.second, decoded.shard)
                taken = world.pages.take(page, "another", world.clock.now_ms(), LEASE_MS)
                assert isinstance(taken, PageLease)
        return OK

    world.receiver.answer = answer
    world.deliver = world.notifier(call_slots=1)


def test_a_frozen_run_whose_page_was_taken_begins_no_further_call(world: World) -> None:
    tasks = due_together(world, 4)
    (message,) = world.receive()
    freeze(world, message, taken_by_another=True)
    with pytest.raises(LeaseLost):
        world.handle(message)

    assert len(world.receiver.received) == 1, "the call that was in flight"
    assert world.read(tasks[0]).status is Status.DELIVERED, "it was settled"
    assert {world.read(task).status for task in tasks[1:]} == {Status.PENDING}


def test_a_frozen_run_whose_page_is_still_free_renews_its_lease_and_continues(world: World) -> None:
    tasks = due_together(world, 4)
    (message,) = world.receive()
    freeze(world, message, taken_by_another=False)
    assert isinstance(world.handle(message), PageFinished)

    check_called_and_settled(world, tasks, at_most=1)
    assert len(renewals(world)) == 1


def handled_by_another(world: World, message: dict[str, Any]) -> None:
    """Another notifier runs the message, while the thread of this one stands still."""
    run = world.notifier()(decode(message["Body"]), "another", world.clock.now_ms() + LAMBDA_MS)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, run).result()


def works_on(world: World, task: Task) -> Outcome:
    return outcome_of_answer(202, {WITHIN_HEADER: "600"}, b"begun", 0)


def cancel(world: World, task: Task) -> Status:
    world.cancel(task.task_id)
    return Status.CANCELLED


def move(world: World, task: Task) -> Status:
    world.change(task.task_id, Change(due_ms=world.clock.now_ms() + FAR_MS))
    return Status.PENDING


def nothing(world: World, task: Task) -> Status:
    return Status.DELIVERED


@pytest.mark.parametrize("is_told", [False, True], ids=["untold", "told"])
@pytest.mark.parametrize("in_ms", [FAR_MS, 3_000], ids=["page", "direct"])
@pytest.mark.parametrize(
    ("answered", "then"),
    [(works_on, cancel), (lambda *_: BUSY, move), (lambda *_: BUSY, nothing)],
    ids=["202 and cancelled", "failed and moved", "failed"],
)
def test_a_late_answer_to_a_frozen_run_settles_the_task_only_if_no_caller_has_changed_it(
    world: World,
    answered: Callable[[World, Task], Outcome],
    then: Callable[[World, Task], Status],
    in_ms: int,
    is_told: bool,
) -> None:
    if is_told:
        hook = HttpCallback("https://receiver.example/outcome")
        world.configured("orders", on_outcome=OnOutcome((Told.DELIVERED,), hook))
    task = world.created(in_ms=in_ms, key="order-17")
    message = world.dispatched(task)
    becomes: list[Status] = []

    def answer(received: Received) -> Outcome:
        if len(world.receiver.received) > 1:
            return answered(world, task)
        world.clock.advance_ms(LEASE_MS + 1)
        handled_by_another(world, message)
        becomes.append(then(world, task))
        return OK

    world.receiver.answer = answer
    with suppress(LeaseLost):
        world.handle(message)

    assert len(world.receiver.received) == 2
    assert [world.read(task).status] == becomes
    is_live = becomes == [Status.PENDING]
    assert (world.keyed.read("orders", "order-17").status is Status.PENDING) == is_live


# Two runs at once


def test_two_runs_of_one_event_make_each_call_once(world: World) -> None:
    """Lambda may run an asynchronous event twice at the same time, with the same request id."""
    tasks = due_together(world, 3)
    (message,) = world.receive()
    page = decode(message["Body"])
    deadline_ms = world.clock.now_ms() + LAMBDA_MS

    async def both() -> list[LeaseHeld | PageFinished]:
        runs = (world.deliver(page, owner, deadline_ms) for owner in ("one", "other"))
        return await asyncio.gather(*runs)

    results = world.loop.run_until_complete(both())

    assert sorted(type(result).__name__ for result in results) in (
        ["LeaseHeld", "PageFinished"],
        ["PageFinished", "PageFinished"],  # the page was already finished
    )
    check_called_and_settled(world, tasks, at_most=1)


# Calls that are answered and not settled


@pytest.mark.exhaustive
def test_calls_that_are_not_settled_yet_are_no_more_than_one_page_for_each_run(
    world: World,
) -> None:
    """Two pages of a run fall due at once; no settlement is written before all calls that may
    begin have been answered."""
    pages = 2
    tasks = [
        task
        for _ in range(pages)
        for task in world.created_many(
            replace(world.new(), due_ms=world.clock.now_ms() + FAR_MS)
            for _ in range(CALLS_IN_FLIGHT_MAX)
        )
    ]
    assert all(isinstance(task, Task) for task in tasks)
    world.dispatch_until(world.clock.now_ms() // 1000 + FAR_MS // 1000)
    unsettled: list[int] = []
    settled = count(0)

    def look(call: Call) -> None:
        if call.operation == "BatchWriteItem":
            unsettled.append(len(world.receiver.received) - next(settled))

    def note(call: Call) -> None:
        if call.operation == "BatchWriteItem":
            puts = call.request["RequestItems"][world.settings.wheel_table]
            for _ in puts[1:]:
                next(settled)

    world.recorder.before, world.recorder.after = look, note
    deadline_ms = world.clock.now_ms() + LAMBDA_MS

    async def run(messages: list[dict[str, Any]]) -> None:
        await asyncio.gather(
            *(
                world.deliver(decode(message["Body"]), message["MessageId"], deadline_ms)
                for message in messages
            )
        )

    while messages := world.receive():
        world.loop.run_until_complete(run(messages[:pages]))
    assert max(unsettled) <= CALLS_IN_FLIGHT_MAX
    assert len(world.receiver.received) == pages * CALLS_IN_FLIGHT_MAX
