"""A reader tries to get the secrets in headers of callbacks."""

import json
from typing import Any

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
from tests.support.clock import ManualClock

CANARY = "canary-0123456789-abcdefghijklmnop"
KNOWN = {"x-team": "billing"}
SECRET = {
    "Authorization": f"Bearer {CANARY}",
    "Cookie": f"session={CANARY}",
    "X-Api-Key": CANARY,
    "X-Gateway": f"Basic {CANARY}",
    "x-refresh_TOKEN": f"a {CANARY}",
}
CARRYING = {**HOOK, "headers": {**SECRET, **KNOWN}}
TOLD = {"outcomes": ["expired"], "callback": CARRYING}
PARAM = {
    **APP_TIMER["notifyHTTPParam"],
    "header": {name: [value, "x"] for name, value in SECRET.items()},
}


def requests_with_headers() -> list[tuple[str, str, Any]]:
    """Every request that contains headers."""
    task = {**TASK, "callback": CARRYING}
    return [
        ("PUT", "/v1/businesses/orders", {"callback": CARRYING}),
        ("PUT", "/v1/businesses/orders", {"on_outcome": TOLD}),
        ("POST", "/v1/tasks", task),
        ("POST", "/v1/tasks/batch", {"tasks": [task, task]}),
        ("PUT", "/v1/businesses/orders/tasks/k", {"delay_seconds": 9, "callback": CARRYING}),
        ("PATCH", "/v1/tasks/{task_id}", {"callback": CARRYING}),
        ("POST", "/v1/tasks", {**task, "on_outcome": TOLD}),
        ("POST", "/v1/timers", {**TIMER, "callback": CARRYING, "on_outcome": TOLD}),
        ("PATCH", "/v1/timers/{timer_id}", {"callback": CARRYING}),
        ("POST", "/api/timer/v1/def", {**APP_TIMER, "notifyHTTPParam": PARAM}),
    ]


READ_BY = {
    "/v1/tasks",
    "/v1/tasks/{task_id}",
    "/v1/businesses",
    "/v1/businesses/{biz_type}",
    "/v1/businesses/{biz_type}/tasks",
    "/v1/businesses/{biz_type}/tasks/{key}",
    "/v1/timers",
    "/v1/timers/{timer_id}",
    "/api/timer/v1/def",
    "/api/timer/v1/defs",
}
QUERIES = {
    "/v1/audit": "from=2027-01-15T08:09:00Z&to=2027-01-15T08:11:00Z",  # TASK is due in that range
    "/v1/tasks": "biz_type=orders&status=pending",
    "/v1/businesses/{biz_type}/tasks": "key_prefix=k",
    "/v1/timers": "biz_type=orders",
    "/api/timer/v1/def": "id={timer_id}&app=orders",
    "/api/timer/v1/defs": "app=orders",
    "/api/task/v1/records": "timerID={timer_id}&app=orders",
}


def test_no_answer_shows_the_secret_of_a_header(wired: ManualClock) -> None:
    named = {
        "task_id": made("POST", "/v1/tasks", TASK)["task_id"],
        "timer_id": made("POST", "/v1/timers", TIMER)["timer_id"],
        "key": "k",
    }
    for method, path, body in requests_with_headers():
        answer = made(method, path.format(**named), body)
        assert CANARY not in str(answer), (method, path)
    showing = set()
    for method, path in sorted(every_call(), key=lambda call: call[0] != "GET"):  # reads first
        query = QUERIES.get(path, "").format(**named)
        _, answer, headers = attack(method, filled(path, **named), None, query)
        assert CANARY not in str((answer, headers)), (method, path)
        if method == "GET" and "sha256" in str(answer):
            showing.add(path)
    assert showing == READ_BY


def test_other_headers_are_shown_and_only_the_beginning_of_a_secret(wired: ManualClock) -> None:
    shown = made("POST", "/v1/tasks", {**TASK, "callback": CARRYING})["callback"]["headers"]
    assert shown == {
        "Authorization": "Bearer cana… (sha256 67f3)",
        "Cookie": "sess… (sha256 d1df)",
        "X-Api-Key": "cana… (sha256 04c5)",
        "X-Gateway": "Basic cana… (sha256 f53b)",
        "x-refresh_TOKEN": "a ca… (sha256 5761)",
        **KNOWN,
    }


def test_the_shown_form_of_a_secret_is_refused_as_a_value(wired: ManualClock) -> None:
    """Otherwise a caller who may write could have a secret that it cannot read sent to its own
    host."""
    task = made("POST", "/v1/tasks", {**TASK, "callback": CARRYING})
    named = {"task_id": task["task_id"], "timer_id": made("POST", "/v1/timers", TIMER)["timer_id"]}
    shown = task["callback"]["headers"]["Authorization"]
    before = stored_items()
    for method, path, body in requests_with_headers():
        text = json.dumps(body).replace(SECRET["Authorization"], shown)
        _, answer, _ = attack(method, path.format(**named), text)
        for result in answer.get("results", [answer]):
            assert 422 in (result.get("status"), result.get("code")), (method, path, answer)
            assert "shows of a secret" in str(result)
    assert stored_items() == before


def test_no_answer_shows_a_named_secret(wired: ManualClock) -> None:
    settings = {"secrets": {"token": CANARY}, "callback": HOOK}
    answers = [made("PUT", "/v1/businesses/orders", settings)]
    assert answers[0]["secrets"] == ["token"]
    refers = {**HOOK, "headers": {"authorization": "Bearer {{secret:token}}"}}
    answers.append(made("POST", "/v1/tasks", {**TASK, "callback": refers}))
    assert answers[1]["callback"]["headers"] == refers["headers"]
    for path in ("/v1/businesses/orders", "/v1/businesses", "/v1/businesses/orders/changes"):
        answers.append(made("GET", path))
    wrong = {"secrets": {"token": f"{CANARY} "}}
    answers.append(attack("PUT", "/v1/businesses/orders", wrong)[1])
    assert answers[-1]["status"] == 422
    assert CANARY not in str((answers, stored_items()))
