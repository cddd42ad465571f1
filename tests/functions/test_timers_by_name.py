"""Timers by their names over HTTP, and the idempotency key of every POST that makes something."""

import json
from typing import Any

from tests.functions.conftest import call, sent
from tests.functions.test_idempotent_calls import post, problem
from tests.support.cases import each_case
from tests.support.clock import ManualClock

HOOK = {"url": "https://receiver.example/hook"}
BODY = {"cron": "0 3 * * *", "callback": HOOK}
PATH = "/v1/timers/by-name/orders/nightly-close"
NEW = {"biz_type": "orders", "name": "nightly-close", **BODY}


def listed() -> list[Any]:
    return list(call("GET", "/v1/timers", query="biz_type=orders")[1]["timers"])


def test_a_put_makes_the_timer_then_changes_it_then_changes_nothing(wired: ManualClock) -> None:
    status, made, headers = sent("PUT", PATH, {**BODY, "managed_by": "billing/timers"})
    assert (status, headers["etag"]) == (201, '"1"')
    assert headers["location"] == f"/v1/timers/{made['timer_id']}"
    assert (made["name"], made["biz_type"]) == ("nightly-close", "orders")
    assert made["managed_by"] == "billing/timers"
    status, changed, headers = sent("PUT", PATH, {**BODY, "timezone": "Asia/Shanghai"})
    assert (status, headers["etag"]) == (200, '"2"')
    assert (changed["timer_id"], changed["managed_by"]) == (made["timer_id"], None)
    wired.advance_ms(60_000)
    status, again, headers = sent("PUT", PATH, {**BODY, "timezone": "Asia/Shanghai"})
    assert (status, again, headers["etag"]) == (200, changed, '"2"')
    status, read, headers = sent("GET", PATH)
    assert (status, headers["etag"]) == (200, '"2"')
    assert read.pop("counters")["fired"] == 0
    assert read == changed
    assert call("DELETE", PATH) == (200, {"timer_id": made["timer_id"], "deleted": True})
    assert problem(sent_problem("GET")) == (404, "unknown-timer", "name")


def sent_problem(method: str, body: Any = None, path: str = PATH, **headers: str) -> dict[str, Any]:
    return post(body or "", dict(headers), path, method=method)


def test_a_dry_run_answers_with_the_timer_as_it_would_be(wired: ManualClock) -> None:
    dry = "dry_run=true"
    status, would = call("PUT", PATH, BODY, dry)
    assert (status, would["version"], listed()) == (201, 1, [])
    assert call("PUT", PATH, BODY)[0] == 201
    status, would = call("PUT", PATH, {**BODY, "max_runs": 3}, dry)
    assert (status, would["version"], would["max_runs"]) == (200, 2, 3)
    assert call("PUT", PATH, BODY, dry)[1] == listed()[0]
    assert call("PUT", PATH, BODY, "dry_run=yes")[1]["field"] == "dry_run"


def test_a_put_obeys_the_versions_that_its_headers_name(wired: ManualClock) -> None:
    assert problem(sent_problem("PUT", BODY, **{"if-match": '"1"'}))[0] == 412
    assert sent_problem("PUT", BODY, **{"if-none-match": "*"})["statusCode"] == 201
    refused = sent_problem("PUT", BODY, **{"if-none-match": "*"})
    assert problem(refused) == (412, "version-mismatch", "if-none-match")
    changed = {**BODY, "max_runs": 2}
    assert sent_problem("PUT", changed, **{"if-match": '"1"'})["statusCode"] == 200
    assert problem(sent_problem("DELETE", **{"if-match": '"1"'}))[0] == 412


@each_case(
    "path, body, field",
    [
        (PATH, {**BODY, "name": "other"}, "name"),
        (PATH, {**BODY, "biz_type": "orders"}, "biz_type"),
        (PATH, {"callback": HOOK}, "cron"),
        (PATH, {**BODY, "cron": "61 * * * *"}, "cron"),
        (PATH, {"cron": "0 3 * * *"}, "callback"),
        (PATH, {**BODY, "managed_by": " "}, "managed_by"),
        ("/v1/timers/by-name/orders/nightly%20close", BODY, "name"),
        ("/v1/timers/by-name/ORDERS/close", BODY, "biz_type"),
    ],
)
def test_what_is_wrong_is_refused_by_its_field_and_makes_nothing(
    wired: ManualClock, path: str, body: Any, field: str
) -> None:
    status, answer = call("PUT", path, body)
    assert (status, answer["field"]) == (422, field), answer
    assert listed() == []


def test_a_name_that_two_timers_have_is_refused(wired: ManualClock) -> None:
    for _ in range(2):
        assert call("POST", "/v1/timers", NEW)[0] == 201
    for method, body in (("GET", None), ("PUT", BODY), ("DELETE", None)):
        assert problem(sent_problem(method, body)) == (409, "timers-share-name", "name")
    assert len(listed()) == 2


def test_a_repeated_create_of_a_timer_finds_the_first_one(wired: ManualClock) -> None:
    first = post(NEW, path="/v1/timers")
    assert first["statusCode"] == 201
    assert post(NEW, path="/v1/timers") == first
    reused = problem(post({**NEW, "name": "b"}, path="/v1/timers"))
    assert reused == (422, "idempotency-key-reused", "idempotency-key")
    bad = post(NEW, {"idempotency-key": "ä"}, path="/v1/timers")
    assert problem(bad) == (422, "invalid-field", "idempotency-key")
    assert len(listed()) == 1


def test_a_repeat_gets_its_timer_also_if_its_schedule_is_over_by_now(wired: ManualClock) -> None:
    short = {"biz_type": "orders", "name": "short", "every_seconds": 60, "callback": HOOK}
    body = {**short, "end_at": "2027-01-15T08:01:30Z"}
    first = post(body, path="/v1/timers")
    assert first["statusCode"] == 201
    wired.advance_ms(600_000)
    again = post(body, path="/v1/timers")
    assert again["statusCode"] == 201, again
    assert again["headers"]["location"] == first["headers"]["location"]
    assert problem(post(body, {}, path="/v1/timers"))[0] == 422
    assert len(listed()) == 1


def test_a_repeated_run_of_a_timer_makes_one_call(wired: ManualClock) -> None:
    timer_id = call("POST", "/v1/timers", NEW)[1]["timer_id"]
    first = post("", path=f"/v1/timers/{timer_id}/run")
    assert first["statusCode"] == 201
    assert post("", path=f"/v1/timers/{timer_id}/run") == first
    other = post("", {"idempotency-key": "other"}, path=f"/v1/timers/{timer_id}/run")
    assert json.loads(other["body"])["task_id"] != json.loads(first["body"])["task_id"]


def test_an_answer_with_a_secret_takes_no_idempotency_key(wired: ManualClock) -> None:
    key = {"name": "reader", "grants": [{"right": "read", "businesses": "orders"}]}
    refused = (422, "invalid-field", "idempotency-key")
    assert problem(post(key, path="/v1/keys")) == refused
    made = json.loads(post(key, {}, path="/v1/keys")["body"])
    assert problem(post("{}", path=f"/v1/keys/{made['key_id']}/rotate")) == refused
    assert len(call("GET", "/v1/keys")[1]["keys"]) == 1
