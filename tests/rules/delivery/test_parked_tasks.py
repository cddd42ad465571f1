"""The fate of a parked item in a release, by the state of its home."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.delivery import parked_tasks
from duewheel.rules.delivery.parked_tasks import Fate, ParkedItem, Parking
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import (
    address_at,
    holds_seconds,
    parked_place,
    parked_slot,
    parked_slots,
)
from duewheel.rules.wheel.timing import NEAR_MARGIN_MS
from tests.rules.tasks.test_lifecycle import TASK
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000
PARKED = lifecycle.parked(TASK, NOW_MS)
SLOT = parked_slot(TASK.biz_type, TASK.home)
ITEM = ParkedItem(SLOT, parked_place(TASK.entry), TASK.home)
BY_KEY = lifecycle.parked(TASK, NOW_MS, "a")
ITEM_OF_KEY = replace(ITEM, slot=parked_slot(BY_KEY.parked_scope, TASK.home))
ELSEWHERE = replace(PARKED, entry=address_at(NOW_MS, b"another!"))


@each_case(
    ("home", "fate"),
    [
        (PARKED, Fate.RELEASE),
        (TASK, Fate.LEAVE),
        (None, Fate.DROP),
        (replace(PARKED, status=Status.CANCELLED, parked=False), Fate.DROP),
        (ELSEWHERE, Fate.DROP),
        (replace(ELSEWHERE, parked=False), Fate.DROP),
    ],
)
def test_a_parked_item_is_released_only_if_its_task_is_parked_on_the_same_entry(
    home: Task | None, fate: Fate
) -> None:
    assert parked_tasks.fate_of(ITEM, home) is fate


@each_case(
    ("item", "home", "fate"),
    [
        (ITEM_OF_KEY, BY_KEY, Fate.RELEASE),
        (ITEM_OF_KEY, PARKED, Fate.DROP),
        (ITEM_OF_KEY, TASK, Fate.LEAVE),
        (ITEM, BY_KEY, Fate.DROP),
        (ITEM_OF_KEY, lifecycle.parked(TASK, NOW_MS, "b"), Fate.DROP),
    ],
)
def test_a_task_is_released_by_the_pause_that_parked_it(
    item: ParkedItem, home: Task, fate: Fate
) -> None:
    assert parked_tasks.fate_of(item, home) is fate


def test_no_two_pauses_share_a_slot() -> None:
    scopes = ["orders", "orders#1", "orders#1#1", "orders#a", "order"]
    slots = [slot for scope in scopes for slot in parked_slots(scope)]
    assert len(set(slots)) == len(slots)


def test_slots_of_parked_tasks_are_not_slots_of_seconds() -> None:
    assert not any(map(holds_seconds, parked_slots("orders")))


def test_a_task_that_is_due_later_or_expired_takes_no_turn() -> None:
    due = replace(PARKED, due_ms=NOW_MS, next_ms=NOW_MS)
    assert parked_tasks.is_called_on_release(due, NOW_MS)
    assert not parked_tasks.is_called_on_release(replace(due, next_ms=NOW_MS + 1), NOW_MS)
    graceless = replace(due, expires_after_seconds=1.0)
    assert not parked_tasks.is_called_on_release(graceless, NOW_MS + 1_001)


def test_a_parking_record_is_deleted_only_after_the_last_notifier_that_could_park_has_ended() -> (
    None
):
    seen = Parking("orders", "mark", unpaused_ms=NOW_MS)
    over_ms = NOW_MS + 80_000 + timing.SKEW_MS
    assert parked_tasks.is_over(seen, over_ms, 80_000)
    assert not parked_tasks.is_over(seen, over_ms - 1, 80_000)
    assert not parked_tasks.is_over(replace(seen, unpaused_ms=None), over_ms, 80_000)


@given(
    now_ms=st.integers(0, 10**13),
    lead_ms=st.integers(0, 2_000),
    writing_ms=st.integers(0, 999),
)
def test_a_released_task_is_dispatched_in_time_even_after_a_second_of_writing(
    now_ms: int, lead_ms: int, writing_ms: int
) -> None:
    """The entry is not near, either: a page contains it."""
    written_ms = now_ms + writing_ms
    released = timing.first_timely_ms(now_ms, lead_ms) // 1000
    opens_ms = timing.opens_ms(released, lead_ms)
    assert timing.delay_seconds(opens_ms, written_ms) >= NEAR_MARGIN_MS // 1000
    assert not timing.is_near(released, written_ms, lead_ms)
