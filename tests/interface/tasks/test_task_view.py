import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.interface.tasks.task_view import batch_text, task_text
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.refusals import InvalidField
from duewheel.rules.tasks.task import Attempt, Made, Status, Task
from duewheel.rules.wheel.addresses import address_at

DUE_MS = 1_896_076_800_250
HOME = address_at(DUE_MS, b"8 bytes.")
TASK = Task.at(
    HOME,
    "orders",
    DUE_MS,
    DUE_MS - 5_000,
    HttpCallback("https://example.com/hook", headers=(("X-A", "1"),)),
)


def shown(**fields: Any) -> dict[str, Any]:
    view: dict[str, Any] = json.loads(task_text(replace(TASK, **fields)))
    return view


def test_a_pending_task_shows_every_member_and_null_for_what_it_lacks() -> None:
    assert shown() == {
        "task_id": HOME.task_id,
        "biz_type": "orders",
        "key": None,
        "status": "pending",
        "reason": None,
        "parked": False,
        "due_at": "2030-01-31T08:00:00.250Z",
        "next_at": "2030-01-31T08:00:00.250Z",
        "attempts": 0,
        "payload": None,
        "callback": {
            "type": "http",
            "url": "https://example.com/hook",
            "method": "POST",
            "headers": {"X-A": "1"},
        },
        "created_at": "2030-01-31T07:59:55.250Z",
        "updated_at": "2030-01-31T07:59:55.250Z",
        "settled_at": None,
        "expires_at": None,
        "lateness_ms": None,
        "last_error": None,
        "history": [],
    }


def test_a_settled_task_shows_how_it_ended_and_no_next_instant() -> None:
    attempt = Attempt(
        at_ms=DUE_MS + 7,
        lateness_ms=7,
        duration_ms=30,
        outcome="stop",
        entry_second=DUE_MS // 1000,
        status_code=410,
        note="gone",
    )
    view = shown(
        status=Status.DEAD,
        history=(attempt,),
        settled_ms=DUE_MS + 37,
        expires_at=DUE_MS // 1000 + 86_400,
    )
    assert (view["status"], view["next_at"]) == ("dead", None)
    assert view["settled_at"] == "2030-01-31T08:00:00.287Z"
    assert view["expires_at"] == "2030-02-01T08:00:00.000Z"
    assert view["history"] == [
        {
            "at": "2030-01-31T08:00:00.257Z",
            "lateness_ms": 7,
            "outcome": "stop",
            "status_code": 410,
            "duration_ms": 30,
            "note": "gone",
            "host": None,
        }
    ]


def test_fields_are_shown_in_the_form_of_a_request() -> None:
    ladder = RetryPolicy(3, delays_seconds=(1.0, 2.5))
    assert shown(retry=ladder)["retry"] == {"attempts": 3, "delays_seconds": [1, 2.5]}
    grows = RetryPolicy(4, 0.5, factor=3.0, delay_max_seconds=60.0)
    text = task_text(replace(TASK, retry=grows, expires_after_seconds=60.0))
    retry = '"attempts":4,"first_delay_seconds":0.5,"factor":3,"max_delay_seconds":60'
    assert f'"retry":{{{retry}}}' in text
    assert '"expires_after_seconds":60,' in text


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["1.0", "1e400", "7" * 5000, r'"\u00e9\/"', '{"b":1, "a":{},"b":2}', '"é"'])
    | st.text(max_size=20).map(json.dumps),
    st.text(max_size=20),
)
def test_the_payload_is_shown_unchanged(payload: str, error: str) -> None:
    text = task_text(replace(TASK, payload=payload, last_error=error, reason=payload))
    assert f',"payload":{payload},"callback":' in text
    exact = {"parse_int": str, "parse_float": str}
    view = json.loads(text, **exact)  # type: ignore[call-overload]
    assert view["payload"] == json.loads(payload, **exact)  # type: ignore[call-overload]
    assert view["last_error"] == error


def test_a_batch_shows_tasks_and_problems_in_order() -> None:
    bad = InvalidField("tasks[1].due_ms: must be a whole number.", "tasks[1].due_ms")
    results = [Made(TASK), bad, Made(TASK, is_new=False)]
    first, second, third = json.loads(batch_text(results))["results"]
    assert third == {"status": 200, "task": shown()}
    assert first == {"status": 201, "task": shown()}
    assert second["status"] == 422
    assert second["problem"]["type"] == "urn:duewheel:problem:invalid-field"
    assert second["problem"]["field"] == "tasks[1].due_ms"
