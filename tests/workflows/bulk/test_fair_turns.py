"""Operations of one caller do not hide or delay those of another."""

from collections import Counter

import pytest
from msgspec.structs import replace

from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.bulk.open_ones import OPEN_IN_ALL_MAX, OPEN_OF_CALLER_MAX, WORKERS
from duewheel.rules.bulk.operation import LEASE_MS, Operation, State
from duewheel.rules.query_string import PageQuery
from duewheel.rules.refusals import TooManyOperations, Unavailable
from tests.support.operations import ALL, as_it_is, asked_for, numbers, worked_on
from tests.support.world import World

HOUR_MS = 3_600_000
RUN_MS = 60_000 + 4_000  # a worker leaves the last minute to the next one


def flooded(world: World, number: int) -> list[Operation]:
    """By one caller, ten for each of its businesses, each as slow as can be."""
    tasks = [world.created(HOUR_MS, biz_type=f"a-{n}") for n in range(2) for _ in range(6)]
    ids = [task.task_id for task in tasks]
    made, refused = [], 0
    for n in range(number):
        members = {"ids": ids, "biz_type": f"a-{n // 10}", "by": "key:flood"}
        try:
            made.append(asked_for(world, "pause", per_second=1, **members))
        except TooManyOperations:
            refused += 1
    assert len(made) == OPEN_OF_CALLER_MAX
    assert refused == number - OPEN_OF_CALLER_MAX
    return made


def victims(world: World) -> Operation:
    ids = [world.created(HOUR_MS, biz_type="victim").task_id for _ in range(3)]
    return asked_for(world, "cancel", ids=ids, biz_type="victim", by="key:victim", per_second=1)


def test_many_slow_operations_of_one_caller_do_not_delay_anothers(world: World) -> None:
    theirs = flooded(world, 200)
    mine = worked_on(world, victims(world), RUN_MS)
    assert (mine.state, numbers(mine)) == (State.DONE, (3, 0, 0))
    assert any(as_it_is(world, one).state.is_open for one in theirs), "they are slow"


def test_many_slow_operations_of_one_caller_do_not_hide_anothers(world: World) -> None:
    flooded(world, 200)
    mine = victims(world)
    shown = world.read_overview(PageQuery(), ANYTHING.access).operations
    assert mine.operation_id in [one.operation_id for one in shown[:2]]


def test_operations_in_all_have_a_bound(world: World) -> None:
    for n in range(OPEN_IN_ALL_MAX):
        asked_for(world, "pause", filter=ALL, biz_type=f"b-{n // 10}", by=f"key:{n // 20}")
    with pytest.raises(TooManyOperations, match=f"{OPEN_IN_ALL_MAX} in all"):
        asked_for(world, "pause", filter=ALL, by="key:another")


def test_creates_of_a_caller_at_the_same_time_keep_its_bound(world: World) -> None:
    made = Counter[bool]()

    def ask(number: int) -> None:
        if number < 3 * OPEN_OF_CALLER_MAX:
            # The next create comes between the read of this one and its write.
            world.recorder.once("TransactWriteItems", lambda: ask(number + 1))
        try:
            asked_for(world, "pause", filter=ALL, biz_type=f"b-{number}", by="key:eager")
        except (TooManyOperations, Unavailable):
            made[False] += 1
        else:
            made[True] += 1

    ask(0)
    assert made[True] <= OPEN_OF_CALLER_MAX
    assert len(world.operations.open_ones().operations) == made[True]


def test_a_pace_gives_an_operation_back_and_another_goes_on_meanwhile(world: World) -> None:
    for _ in range(9):
        world.created(HOUR_MS)
    began_ms = world.clock.now_ms()
    paced = [asked_for(world, "pause", filter=ALL, per_second=1) for _ in range(2)]
    worked_on(world, paced[0])
    assert [as_it_is(world, one).state for one in paced] == [State.DONE] * 2
    assert world.clock.now_ms() - began_ms < 10_000, "they take turns"


def test_no_more_workers_work_than_there_are_seats(world: World) -> None:
    operation = asked_for(world, "cancel", filter=ALL)
    seats = [world.operations.take_seat(f"worker {n}") for n in range(WORKERS)]
    assert seats == list(range(WORKERS))
    assert worked_on(world, operation).state is State.RUNNING
    world.operations.leave_seat(1, "worker 1")
    assert worked_on(world, operation).state is State.DONE


def test_the_seat_of_a_dead_worker_is_taken_after_its_lease(world: World) -> None:
    for n in range(WORKERS):
        world.operations.take_seat(f"worker {n}")
    world.clock.advance_ms(LEASE_MS)
    assert world.operations.take_seat("another") == 0
    assert not world.operations.hold_seat(0, "worker 0")


def test_a_marker_whose_number_has_gone_to_another_operation_stays(world: World) -> None:
    asked_for(world, "cancel", filter=ALL)
    (marker,) = world.operations.markers()
    world.operations.forget(replace(marker, operation_id="orders~before"))
    assert world.operations.markers() == [marker]
