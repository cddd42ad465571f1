"""Which open operation has the next turn, and how many there may be."""

from msgspec.structs import replace

from duewheel.rules.bulk.open_ones import WAIT_MS_MAX, free_ones, in_turn, wait_ms
from duewheel.rules.bulk.operation import LEASE_MS, Action, Operation, Wish

NOW_MS = 1_700_000_000_000


def opened(caller: str, biz_type: str, updated_ms: int = NOW_MS - 60_000) -> Operation:
    return Operation(
        biz_type=biz_type,
        mark=f"{updated_ms:020x}",
        marker=0,
        wish=Wish(action=Action.CANCEL),
        created_ms=NOW_MS - 60_000,
        created_by=caller,
        updated_ms=updated_ms,
    )


def at_work(operation: Operation) -> Operation:
    return replace(operation, owner="a worker", lease_until_ms=NOW_MS + LEASE_MS)


def test_callers_take_turns_however_many_operations_one_has() -> None:
    many = [opened("flood", f"a-{n % 4}", NOW_MS - 50_000 + n) for n in range(20)]
    others = [opened("one", "b", NOW_MS - 2), opened("two", "c", NOW_MS - 1)]
    assert [one.created_by for one in in_turn(many + others)][:4] == [
        "flood",
        "one",
        "two",
        "flood",
    ]
    many[0] = replace(many[0], updated_ms=NOW_MS)  # it had its turn
    assert [one.created_by for one in in_turn(many + others)][:3] == ["one", "two", "flood"]


def test_the_businesses_of_a_caller_take_turns() -> None:
    many = [opened("gateway", "a", NOW_MS - 50_000 + n) for n in range(10)]
    assert (
        opened("gateway", "b", NOW_MS - 1)
        in in_turn([*many, opened("gateway", "b", NOW_MS - 1)])[:2]
    )


def test_two_workers_at_most_are_at_work_for_one_caller() -> None:
    waiting = [opened("flood", "a", NOW_MS - n) for n in range(1, 4)]
    busy = [at_work(opened("flood", "b")) for _ in range(2)]
    other = opened("one", "c", NOW_MS)
    assert free_ones([*waiting, busy[0]], NOW_MS) == in_turn(waiting)
    assert free_ones([*waiting, *busy, other], NOW_MS) == [other]
    assert free_ones([*waiting, *busy, other], NOW_MS + LEASE_MS), "workers may die"


def test_a_worker_waits_for_a_turn_that_comes_soon() -> None:
    soon = replace(opened("one", "a"), lease_until_ms=NOW_MS + 700)
    late = replace(soon, lease_until_ms=NOW_MS + WAIT_MS_MAX + 1)
    assert wait_ms([late, soon, at_work(soon)], NOW_MS) == 700
    assert wait_ms([late, at_work(soon)], NOW_MS) is None
