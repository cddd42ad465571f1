"""The latest deaths of several partitions, and their groups."""

from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.tasks.dead_tasks import Died, Found, merged
from duewheel.rules.tasks.death_groups import grouped
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import Address

NOW_MS = 1_800_000_000_000


def address(number: int) -> Address:
    return Address(second=1_800_000_000 + number, ms=0, token=f"{number:012d}")


def dead(number: int, died_ms: int, **fields: Any) -> Task:
    values: dict[str, Any] = {"biz_type": "orders", "status": Status.DEAD, "last_error": "busy"}
    home = address(number)
    return Task(
        **{
            "home": home,
            "entry": home,
            "due_ms": NOW_MS,
            "next_ms": NOW_MS,
            "callback": HttpCallback("https://a.example/"),
            "created_ms": NOW_MS,
            "updated_ms": NOW_MS,
            "reason": "attempts exhausted",
            "settled_ms": died_ms,
            **values,
            **fields,
        }
    )


def test_deaths_of_one_error_are_one_group_over_all_businesses() -> None:
    tasks = [
        dead(1, 10),
        dead(2, 30, biz_type="bills"),
        dead(3, 20),
        dead(4, 25, last_error="gone", reason="stopped"),
    ]
    first, second = grouped(tasks, 10)
    assert (first.last_error, first.reason, first.count) == ("busy", "attempts exhausted", 3)
    assert list(first.businesses.items()) == [("orders", 2), ("bills", 1)]
    assert first.last == tasks[1]
    assert (second.last_error, second.reason, second.last) == ("gone", "stopped", tasks[3])


def test_an_error_with_two_reasons_makes_two_groups() -> None:
    tasks = [dead(1, 10), dead(2, 20, reason="stopped")]
    assert [group.reason for group in grouped(tasks, 0)] == ["stopped", "attempts exhausted"]


def test_a_task_that_was_redriven_or_died_before_is_in_no_group() -> None:
    redriven = dead(1, 20, status=Status.PENDING)
    assert grouped([redriven, dead(2, 9)], 10) == []


parts_of_deaths = st.lists(st.lists(st.integers(0, 40), max_size=12), min_size=1, max_size=5)


@given(parts_of_deaths, st.integers(1, 12))
def test_of_parts_that_were_read_in_part_the_latest_deaths_are_certain(
    instants: list[list[int]], share: int
) -> None:
    number = iter(range(1_000))
    whole = [
        sorted((Died(at, address(next(number))) for at in part), key=lambda one: one.settled_ms)
        for part in instants
    ]
    read = [part[::-1][:share] for part in whole]
    found = merged(
        [Found(some, len(some) < len(part)) for some, part in zip(read, whole, strict=True)],
        is_ascending=False,
    )
    everything = Counter(one.settled_ms for part in whole for one in part)
    shown = [one.settled_ms for one in found.died]
    assert all(a >= b for a, b in pairwise(shown))
    assert shown == sorted(everything.elements(), reverse=True)[: len(shown)]
    assert found.goes_on or len(shown) == everything.total()
    assert shown or everything.total() == 0
