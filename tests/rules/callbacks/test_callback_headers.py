"""Headers that every callback has besides those of the caller."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.callbacks.payload_encoding import callback_headers
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at

DUE_MS = 1_896_134_400_250  # 2030-02-01T00:00:00.250Z
HOME = address_at(DUE_MS, bytes(TOKEN_BYTES))
TASK = Task.at(HOME, "orders", DUE_MS, 0, HttpCallback("https://example.com/"))


def test_a_callback_has_headers_for_task_due_instant_and_attempt() -> None:
    assert callback_headers(TASK, DUE_MS + 42) == {
        "webhook-id": TASK.task_id,
        "webhook-timestamp": "1896134400",
        "duewheel-due-at": "2030-02-01T00:00:00.250Z",
        "duewheel-attempt": "1",
        "duewheel-biz-type": "orders",
    }


def test_every_attempt_has_the_same_id_and_due_instant_and_its_own_number() -> None:
    later = replace(
        TASK,
        entry=address_at(DUE_MS + 60_000, b"retried!"),
        next_ms=DUE_MS + 60_000,
        attempts=3,
    )
    first, fourth = callback_headers(TASK, DUE_MS), callback_headers(later, DUE_MS + 60_000)
    assert fourth["webhook-id"] == first["webhook-id"]
    assert fourth["duewheel-due-at"] == first["duewheel-due-at"]
    assert fourth["duewheel-attempt"] == "4"
    assert fourth["webhook-timestamp"] == "1896134460"


@given(
    st.integers(0, 4_000_000_000_000),
    st.binary(min_size=TOKEN_BYTES, max_size=TOKEN_BYTES),
    st.integers(0, 100),
)
def test_every_value_is_valid_in_a_header(due_ms: int, token: bytes, attempts: int) -> None:
    home = address_at(due_ms, token)
    task = replace(TASK, home=home, entry=home, due_ms=due_ms, attempts=attempts)
    for name, value in callback_headers(task, due_ms).items():
        assert name == name.lower()
        assert value.isascii()
        assert value.isprintable()
        assert value == value.strip() != ""
