import json

from msgspec import Raw
from msgspec.structs import replace

from duewheel.interface.http import Answer
from duewheel.interface.tasks.task_view import page_text
from duewheel.rules.callbacks.requests import callback_from
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.query_string import LIMIT_MAX
from duewheel.rules.tasks.lifecycle import HISTORY_MAX, NOTE_CHARACTERS_MAX
from duewheel.rules.tasks.listing import PAYLOAD_BYTES_MAX
from duewheel.rules.tasks.requests import PAYLOAD_BYTES_MAX as PAYLOAD_OF_ONE_BYTES_MAX
from duewheel.rules.tasks.task import Attempt, Task
from duewheel.rules.wheel.addresses import address_at

LAMBDA_ANSWER_BYTES_MAX = 6 * 1024 * 1024
HOME = address_at(1_900_000_000_000, b"12345678")
PLAIN = replace(
    Task.at(HOME, "orders", 1, 1, HttpCallback("https://example.com/")), payload="1e400"
)


def test_a_page_holds_its_tasks_and_the_cursor() -> None:
    assert json.loads(page_text([], None)) == {"tasks": [], "cursor": None}
    text = page_text([PLAIN, PLAIN], "abc")
    assert '"payload":1e400,' in text
    answer = json.loads(text)
    assert [task["task_id"] for task in answer["tasks"]] == [HOME.task_id] * 2
    assert answer["cursor"] == "abc"


def largest_callback() -> HttpCallback:
    """The largest callback that a create accepts, of the characters that grow most in an answer."""
    headers = {f"x-{number:02}": '"' * 200 for number in range(20)}
    url = "https://example.com/" + '"' * 2_000
    body = json.dumps({"url": url, "headers": headers})
    return callback_from(Raw(body))


def test_the_largest_page_fits_the_limit_of_lambda() -> None:
    note = "é" * NOTE_CHARACTERS_MAX
    attempt = Attempt(
        at_ms=1_900_000_000_000,
        lateness_ms=10**9,
        duration_ms=10**6,
        outcome="retry",
        entry_second=1_900_000_000,
        status_code=500,
        note=note,
    )
    payload_bytes = (PAYLOAD_BYTES_MAX + PAYLOAD_OF_ONE_BYTES_MAX) // LIMIT_MAX
    task = replace(
        Task.at(HOME, "b" * 63, 1_900_000_000_000, 1_900_000_000_000, largest_callback()),
        payload="é" * (payload_bytes // 2),
        retry=RetryPolicy(100, delays_seconds=(604_799.123456789,) * 99),
        expires_after_seconds=315_619_199.123456789,
        history=(attempt,) * HISTORY_MAX,
        last_error=note,
        key="k" * 128,
        labels=tuple((f"{number}" + "n" * 62, "💡" * 128) for number in range(8)),
    )
    event = Answer(200, page_text([task] * LIMIT_MAX, "c" * 120)).event()
    assert len(json.dumps(event)) < LAMBDA_ANSWER_BYTES_MAX
