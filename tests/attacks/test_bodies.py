"""Bodies that are meant to break their reader: each is answered, and a refused one changes no
item."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.attacks.conftest import (
    APP_TIMER,
    HOOK,
    TASK,
    TIMER,
    attack,
    every_call,
    filled,
    made,
    stored_items,
)
from tests.support.bounds import quick_first
from tests.support.cases import each_case
from tests.support.clock import ManualClock

DEEP = 100_000
BROKEN = {
    "arrays without end": "[" * DEEP,
    "objects without end": '{"a":' * DEEP,
    "a payload without end": f'{json.dumps(TASK)[:-1]}, "payload": {"[" * DEEP + "]" * DEEP}}}',
    "a mark of byte order": "\ufeff" + json.dumps(TASK),
    "two values": json.dumps(TASK) * 2,
    "a string": '"orders"',
    "nothing": "null",
    "half of a surrogate pair": '{"biz_type": "\ud800"}',
    "bytes that are no UTF-8": b'{"biz_type": "\xff\xfe"}',
    "an overlong encoding": b'{"biz_type": "\xc0\xaf"}',
    "UTF-16": json.dumps(TASK).encode("utf-16"),
    "compressed bytes": b"\x1f\x8b\x08\x00" + b"\x00" * 64,
    "NUL bytes": b"\x00" * 64,
    "more members than anybody reads": "{" + ",".join(f'"{n}":0' for n in range(20_000)) + "}",
    "more than a call takes": json.dumps(TASK) + " " * 4_200_000,
}
# Values for any member: some of them are allowed somewhere, and none of them causes a failure.
HOSTILE = [
    "null",
    "true",
    "-1",
    "1e400",
    "-1e400",
    "9" * 40,
    "9" * 5_000,
    "0." + "0" * 500 + "1",
    "1e-400",
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\\r\\nx: y"',
    '"../../etc/passwd"',
    '"٣٣٣٣-٠١-٠١T٠٠:٠٠:٠٠Z"',
    '"{{}}{{task_id}}%s%n${x}"',
    '"' + "a" * 5_000 + '"',
    "[]",
    "{}",
    "[[[[]]]]",
    '{"a": {"a": {}}}',
    "[" * 500 + "]" * 500,
]
WRONG = "[[{}]]"  # for any member
WHOLE = {
    ("POST", "/v1/tasks"): {
        **TASK,
        "payload": {"order": 17},
        "key": "order-17",
        "callback": {**HOOK, "method": "PUT", "headers": {"x": "1"}, "body": "json"},
        "retry": {"attempts": 2, "delays_seconds": [5], "max_age_seconds": 9},
        "expires_after_seconds": 60,
        "tolerance_seconds": 60,
        "priority": "low",
    },
    ("PUT", "/v1/businesses/orders"): {
        "callback": HOOK,
        "retention_days": 3,
        "timeout_seconds": 2.5,
        "allowed_hosts": ["receiver.example"],
        "retry_statuses": [410, "5xx"],
        "stop_statuses": [404],
        "calls_per_second": 5,
        "calls_in_flight": 5,
        "creates_per_second": 500,
        "signing_secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        "tolerance_seconds": 60,
        "priority": "low",
        "on_outcome": {"outcomes": ["expired"], "callback": HOOK, "with_payload": True},
    },
    ("POST", "/v1/timers"): {
        **TIMER,
        "timezone": "Europe/London",
        "start_at": "2027-02-01T00:00:00Z",
        "end_at": "2028-02-01T00:00:00Z",
        "max_runs": 10,
        "jitter_seconds": 30,
        "dst_gap": "skip",
        "dst_overlap": "both",
        "misfire": "all",
        "grace_seconds": 5,
        "overlap": "skip",
        "exclude": ["2027-12-25"],
        "disable_on_stop": True,
        "pause_on_failures": 3,
        "tolerance_seconds": 60,
        "priority": "low",
        "payload": "{{due_at}}",
        "enabled": False,
    },
    ("POST", "/v1/timers/upcoming"): {
        "cron": "0 3 * * *",
        "timezone": "Europe/London",
        "count": 3,
        "from": "2027-02-01T00:00:00Z",
    },
    ("POST", "/v1/operations"): {
        "action": "reschedule",
        "ids": ["AQGjGJM-gAAAzQLTZo2eccko8lnT"],
        "biz_type": "orders",
        "shift_seconds": 60,
        "per_second": 20,
        "dry_run": True,
    },
    ("POST", "/api/timer/v1/def"): APP_TIMER,
}


WITHOUT_A_BODY = {
    ("POST", f"/v1/{of}/{what}")
    for of, what in (
        ("tasks/{task_id}", "run"),
        ("tasks/{task_id}", "redrive"),
        ("tasks/{task_id}", "pause"),
        ("tasks/{task_id}", "resume"),
        ("operations/{operation_id}", "stop"),
        ("businesses/{biz_type}", "pause"),
        ("businesses/{biz_type}", "resume"),
        ("timers/{timer_id}", "enable"),
        ("timers/{timer_id}", "disable"),
        ("timers/{timer_id}", "run"),
    )
}


def taking_bodies() -> list[tuple[str, str]]:
    return [
        (method, path)
        for method, path in every_call()
        if method in ("POST", "PUT", "PATCH") or (path.startswith("/api/") and method != "GET")
        if (method, path) not in WITHOUT_A_BODY
    ]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, within in items:
        yield (*path, name)
        if isinstance(within, dict | list):
            yield from paths_of(within, (*path, name))


def with_source(body: Any, path: tuple[Any, ...], source: str) -> str:
    """The body with this text at this place."""
    copy = json.loads(json.dumps(body))
    within = copy
    for name in path[:-1]:
        within = within[name]
    within[path[-1]] = "the mark"
    return json.dumps(copy).replace('"the mark"', source, 1)


@pytest.mark.parametrize(
    "body", quick_first(BROKEN.values(), pytest.mark.exhaustive, 4), ids=BROKEN
)
def test_every_call_refuses_a_broken_body(wired: ManualClock, body: str | bytes) -> None:
    task, timer = made("POST", "/v1/tasks", TASK), made("POST", "/v1/timers", TIMER)
    before = stored_items()
    for method, pattern in taking_bodies():
        path = filled(pattern, task_id=task["task_id"], timer_id=timer["timer_id"])
        status, answer, _ = attack(method, path, body)
        assert is_refused(status, answer), (method, path, status, answer)
        assert stored_items() == before


def ready(call: tuple[str, str]) -> tuple[str, str]:
    """The call on a timer that is there, if it is one on a timer."""
    method, path = call
    if "{timer_id}" not in path:
        return call
    return method, filled(path, timer_id=made("POST", "/v1/timers", TIMER)["timer_id"])


def is_refused(status: int, answer: Any) -> bool:
    return 400 <= status < 500 or (status == 200 and answer.get("code", 0) != 0)


@each_case("call", WHOLE)
def test_a_number_that_json_does_not_have_is_refused_in_any_member(
    wired: ManualClock, call: tuple[str, str]
) -> None:
    request = ready(call)
    before = stored_items()
    for path in paths_of(WHOLE[call]):
        for source in ("NaN", "-Infinity", "[[Infinity]]"):
            status, answer, _ = attack(*request, with_source(WHOLE[call], path, source))
            assert is_refused(status, answer), (path, source, answer)
            assert status != 404
    assert stored_items() == before


@each_case("call", WHOLE)
def test_the_last_one_of_two_equal_members_is_checked_in_any_spelling(
    wired: ManualClock, call: tuple[str, str]
) -> None:
    """A valid value before an invalid one does not hide it."""
    request = ready(call)
    before = stored_items()
    for name in WHOLE[call].keys() - {"payload"}:  # the payload may be any value
        for spelled in (f'"{name}"', f'"\\u{ord(name[0]):04x}{name[1:]}"'):
            text = f"{json.dumps(WHOLE[call])[:-1]}, {spelled}: {WRONG}}}"
            status, answer, _ = attack(*request, text)
            assert is_refused(status, answer), (spelled, answer)
            assert status != 404
    assert stored_items() == before


@pytest.mark.parametrize("call", quick_first([(call,) for call in WHOLE], pytest.mark.exhaustive))
def test_no_value_in_any_member_causes_a_failure(wired: ManualClock, call: tuple[str, str]) -> None:
    request = ready(call)
    made(*request, WHOLE[call])
    for path in paths_of(WHOLE[call]):
        for source in HOSTILE:
            status, answer, _ = attack(*request, with_source(WHOLE[call], path, source))
            assert status < 500, (path, source[:60], answer)
            assert status != 200 or answer.get("code", 0) < 500, (path, source[:60], answer)


def test_a_body_with_a_content_encoding_is_not_unpacked(wired: ManualClock) -> None:
    """No body is unpacked, so no small body can become a large one."""
    bomb = gzip.compress(json.dumps(TASK).encode())
    status, answer, _ = attack("POST", "/v1/tasks", bomb, content_encoding="gzip")
    assert (status, answer["detail"]) == (400, "The body is not UTF-8 text.")
    assert stored_items() == []
