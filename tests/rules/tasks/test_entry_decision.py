"""The decision about an entry that has fallen due."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.tasks.lifecycle import Decision, decide, is_expired
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at
from tests.support.cases import each_case

SECOND = 1_900_000_000
DUE_MS = SECOND * 1000 + 250
NOW_MS = SECOND * 1000 - 500  # the slice has just opened

HOME = address_at(DUE_MS, bytes(TOKEN_BYTES))
TASK = Task.at(HOME, "orders", DUE_MS, 0, HttpCallback("https://example.com/"))

ENDED = [status for status in Status if status is not Status.PENDING]


def entry_at(instant_ms: int, number: int = 7) -> Address:
    return address_at(instant_ms, number.to_bytes(TOKEN_BYTES, "big"))


def test_the_entry_that_its_home_names_is_delivered() -> None:
    assert decide(HOME, TASK, NOW_MS) is Decision.DELIVER


def test_a_named_reentry_is_delivered() -> None:
    entry = entry_at(DUE_MS + 60_000)
    home = replace(TASK, entry=entry, next_ms=DUE_MS + 60_000)
    assert decide(entry, home, NOW_MS + 60_000) is Decision.DELIVER


def test_an_entry_without_a_home_is_dropped() -> None:
    assert decide(HOME, None, NOW_MS) is Decision.DROP


@each_case("status", ENDED)
def test_an_entry_of_an_ended_task_is_dropped(status: Status) -> None:
    assert decide(HOME, replace(TASK, status=status), NOW_MS) is Decision.DROP


@each_case(
    ("named", "found"),
    [
        (entry_at(DUE_MS), HOME),  # the home itself, after an entry for a retry was written
        (HOME, entry_at(DUE_MS)),
        (entry_at(DUE_MS, 1), entry_at(DUE_MS, 2)),  # they differ only in their random parts
        (HOME, replace(HOME, direct=True)),
        (HOME, replace(HOME, shard=1)),
    ],
)
def test_an_entry_that_its_home_does_not_name_is_dropped(named: Address, found: Address) -> None:
    assert decide(found, replace(TASK, entry=named), NOW_MS) is Decision.DROP


@each_case(
    ("next_ms", "now_ms", "decision"),
    [
        # moved to a later second, which has not come yet
        (DUE_MS + 1_000, NOW_MS, Decision.PLACE_LATER),
        (DUE_MS + 86_400_000, NOW_MS, Decision.PLACE_LATER),
        ((SECOND + 1) * 1000, NOW_MS, Decision.PLACE_LATER),
        # later within its own second: waited for, without a new entry
        (SECOND * 1000 + 999, NOW_MS, Decision.DELIVER),
        # moved to later, and due by now
        (DUE_MS + 1_000, DUE_MS + 1_000, Decision.DELIVER),
        (DUE_MS + 1_000, DUE_MS + 999, Decision.PLACE_LATER),
        # placed at the clock of its writer, because it was due in the past
        (DUE_MS - 60_000, NOW_MS, Decision.DELIVER),
    ],
)
def test_a_task_that_was_moved_to_a_later_second_gets_a_new_entry(
    next_ms: int, now_ms: int, decision: Decision
) -> None:
    assert decide(HOME, replace(TASK, next_ms=next_ms), now_ms) is decision


@each_case(
    ("grace_seconds", "late_ms", "decision"),
    [
        (None, 86_400_000, Decision.DELIVER),
        (10.0, 0, Decision.DELIVER),
        (10.0, 10_000, Decision.DELIVER),
        (10.0, 10_001, Decision.EXPIRE),
        (0.5, 501, Decision.EXPIRE),
    ],
)
def test_a_task_is_delivered_until_its_grace_runs_out(
    grace_seconds: float | None, late_ms: int, decision: Decision
) -> None:
    task = replace(TASK, expires_after_seconds=grace_seconds)
    assert decide(HOME, task, DUE_MS + late_ms) is decision


def test_grace_is_counted_from_the_due_instant_through_all_retries() -> None:
    entry = entry_at(DUE_MS + 60_000)
    task = replace(TASK, entry=entry, next_ms=DUE_MS + 60_000, expires_after_seconds=30.0)
    assert decide(entry, task, DUE_MS + 60_000) is Decision.EXPIRE


def test_an_ended_task_does_not_expire() -> None:
    task = replace(TASK, status=Status.DELIVERED, expires_after_seconds=1.0)
    assert decide(HOME, task, DUE_MS + 86_400_000) is Decision.DROP


@given(
    st.sampled_from(Status),
    st.integers(-100_000, 100_000),
    st.integers(-100_000, 100_000),
    st.none() | st.floats(0.001, 100),
    st.booleans(),
)
def test_an_entry_fires_only_if_its_home_is_pending_names_it_and_is_not_due_in_a_later_second(
    status: Status, next_after_ms: int, now_after_ms: int, grace: float | None, is_named: bool
) -> None:
    task = replace(
        TASK,
        status=status,
        entry=HOME if is_named else entry_at(DUE_MS),
        next_ms=DUE_MS + next_after_ms,
        expires_after_seconds=grace,
    )
    now_ms = DUE_MS + now_after_ms
    if decide(HOME, task, now_ms) is Decision.DELIVER:
        assert status is Status.PENDING
        assert is_named
        assert task.next_ms // 1000 <= max(SECOND, now_ms // 1000)
        assert not is_expired(task, now_ms)
