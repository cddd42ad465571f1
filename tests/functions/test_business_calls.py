"""Businesses over HTTP: configured, read back, listed, deleted."""

import json
from random import Random
from typing import Any

import pytest

from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.stores.businesses.health import HealthStore
from duewheel.wiring import process
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from tests.functions.conftest import call, sent
from tests.support.cases import each_case
from tests.support.clock import NOON_MS, ManualClock

PATH = "/v1/businesses/orders"
HOOK = {"url": "https://receiver.example/hook", "headers": {"authorization": "Bearer one"}}
EVERYTHING = {
    "callback": {**HOOK, "method": "PUT"},
    "retry": {"attempts": 5, "delays_seconds": [1, 2.5], "max_age_seconds": 3600},
    "retention_days": 3,
    "timeout_seconds": 2.5,
    "allowed_hosts": ["receiver.example", "*.Example.com"],
    "trusted_origins": ["https://receiver.example:443", "http://*.Example.com:8080"],
    "retry_statuses": [410, "5xx"],
    "stop_statuses": [404, "3xx"],
    "tolerance_seconds": 60,
    "priority": "low",
    "on_outcome": {
        "outcomes": ["delivered", "expired", "missed"],
        "callback": {"url": "https://ops.example.com/told"},
        "with_payload": True,
    },
}

TOLD = {"url": "https://b.example/told"}


def put(body: Any, path: str = PATH, **headers: str) -> tuple[int, Any, dict[str, str]]:
    return sent("PUT", path, body, **headers)


def create(**fields: Any) -> tuple[int, Any]:
    return call("POST", "/v1/tasks", {"biz_type": "orders", "delay_seconds": 600, **fields})


def test_configured_settings_are_read_back_with_defaults_for_the_others(wired: ManualClock) -> None:
    status, business, headers = put({})
    assert (status, headers["etag"]) == (201, '"1"')
    assert business == {
        "biz_type": "orders",
        "version": 1,
        "callback": None,
        "retry": {
            "attempts": 16,
            "first_delay_seconds": 3,
            "factor": 2,
            "max_delay_seconds": 21_600,
        },
        "retention_days": 30,
        "timeout_seconds": 10,
        "allowed_hosts": None,
        "trusted_origins": None,
        "retry_statuses": [401, 403, 404, 408, 425, 429, "5xx"],
        "stop_statuses": [400, 405, 410, 413, 414, 415, 422, "3xx"],
        "calls_per_second": None,
        "calls_in_flight": None,
        "creates_per_second": None,
        "signing_secrets": None,
        "paused": False,
        "lane": "main",
        "secrets": None,
        "tolerance_seconds": 0,
        "priority": "normal",
        "flow": None,
        "paused_flow_keys": [],
        "keep_answers": None,
        "on_outcome": None,
        "breakers": [],
        "own": [],
        "created_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z",
    }

    status, business, headers = put(EVERYTHING)
    assert (status, headers["etag"], business["version"]) == (200, '"2"', 2)
    assert business["own"] == list(EVERYTHING)
    assert (business["tolerance_seconds"], business["priority"]) == (60, "low")
    shown = {"authorization": "Bearer … (sha256 0b84)"}
    assert business["callback"] == {"type": "http", **HOOK, "method": "PUT", "headers": shown}
    assert business["allowed_hosts"] == ["receiver.example", "*.example.com"]
    assert business["trusted_origins"] == ["https://receiver.example", "http://*.example.com:8080"]
    for name in (
        "retry", "retention_days", "timeout_seconds", "retry_statuses", "stop_statuses",
    ):  # fmt: skip
        assert business[name] == EVERYTHING[name]
    usage = {
        "calls": None,
        "creates": None,
        "calls_in_flight": None,
        "dispatch_lag_seconds": 10,
        "oldest_open_seconds": None,
    }
    assert sent("GET", PATH)[1] == {**business, "last_task_at": None, "usage": usage}
    assert sent("GET", PATH)[2]["etag"] == '"2"'


def test_an_update_keeps_other_settings_and_null_restores_a_default(wired: ManualClock) -> None:
    put(EVERYTHING)
    wired.advance_ms(1_000)
    _, business, _ = put({"retention_days": 4, "retry": None})
    assert business["own"] == [name for name in EVERYTHING if name != "retry"]
    assert (business["retention_days"], business["retry"]["attempts"]) == (4, 16)
    assert business["created_at"] < business["updated_at"]


def test_a_status_of_one_list_is_removed_from_the_default_of_the_other(wired: ManualClock) -> None:
    _, business, _ = put({"stop_statuses": [404, "5xx"]})
    assert business["retry_statuses"] == [401, 403, 408, 425, 429]
    _, business, _ = put({"stop_statuses": None, "retry_statuses": [410]})
    assert business["stop_statuses"] == [400, 405, 413, 414, 415, 422, "3xx"]


@pytest.mark.parametrize("written", ["404.0", "4.04e2"])
def test_a_status_may_be_written_as_any_whole_number(wired: ManualClock, written: str) -> None:
    body = json.dumps({"stop_statuses": ["?", "5xx"]}).replace('"?"', written)
    status, business = call("PUT", PATH, body)
    assert (status, business["stop_statuses"]) == (201, [404, "5xx"])


def test_a_status_that_is_no_whole_number_is_refused(wired: ManualClock) -> None:
    status, problem, _ = put({"stop_statuses": [404.5]})
    assert (status, problem["field"]) == (422, "stop_statuses[0]")


@each_case(
    ("body", "field"),
    [
        ({"colour": "red"}, "colour"),
        ({"lane": "slow"}, "lane"),
        ({"callback": {"colour": "red"}}, "callback.colour"),
        ({"callback": {"url": "ftp://x"}}, "callback.url"),
        ({"callback": {"headers": {"host": "x"}}}, "callback.headers.host"),
        ({"retry": {"attempts": 0}}, "retry.attempts"),
        ({"retry": {"attempts": 101}}, "retry.attempts"),
        ({"retry": {"delays_seconds": [1], "factor": 2}}, "retry.factor"),
        ({"retention_days": 0}, "retention_days"),
        ({"retention_days": 3_651}, "retention_days"),
        ({"timeout_seconds": 30.5}, "timeout_seconds"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"allowed_hosts": []}, "allowed_hosts"),
        ({"allowed_hosts": ["a.example", "https://b.example"]}, "allowed_hosts[1]"),
        ({"allowed_hosts": ["*"]}, "allowed_hosts[0]"),
        ({"allowed_hosts": ["a.*.example"]}, "allowed_hosts[0]"),
        ({"allowed_hosts": [7]}, "allowed_hosts[0]"),
        ({"trusted_origins": []}, "trusted_origins"),
        ({"trusted_origins": ["https://a.example", "b.example"]}, "trusted_origins[1]"),
        ({"trusted_origins": ["https://*"]}, "trusted_origins[0]"),
        ({"trusted_origins": ["https://a.example/"]}, "trusted_origins[0]"),
        ({"trusted_origins": ["https://user@a.example"]}, "trusted_origins[0]"),
        ({"trusted_origins": ["ftp://a.example"]}, "trusted_origins[0]"),
        ({"retry_statuses": [200]}, "retry_statuses[0]"),
        ({"stop_statuses": ["2xx"]}, "stop_statuses[0]"),
        ({"stop_statuses": [404, True]}, "stop_statuses[1]"),
        ({"stop_statuses": [600]}, "stop_statuses[0]"),
        ({"retry_statuses": [404], "stop_statuses": [404]}, "stop_statuses"),
        ({"on_outcome": {"outcomes": ["dead"]}}, "on_outcome.callback"),
        ({"on_outcome": {"outcomes": [], "callback": TOLD}}, "on_outcome.outcomes"),
        ({"on_outcome": {"outcomes": ["lost"], "callback": TOLD}}, "on_outcome.outcomes[0]"),
        ({"on_outcome": {"outcomes": ["dead"], "callback": {}}}, "on_outcome.callback.url"),
        (
            {"on_outcome": {"outcomes": ["dead"], "callback": {**TOLD, "body": "raw"}}},
            "on_outcome.callback.body",
        ),
        (
            {"on_outcome": {"outcomes": ["dead"], "callback": {"type": "sqs", "queue_url": "x"}}},
            "on_outcome.callback.type",
        ),
        (
            {
                "allowed_hosts": ["a.example"],
                "on_outcome": {"outcomes": ["dead"], "callback": TOLD},
            },
            "on_outcome.callback.url",
        ),
    ],
)
def test_invalid_settings_are_refused_with_their_field(
    wired: ManualClock, body: Any, field: str
) -> None:
    put({"retention_days": 7})
    before = sent("GET", PATH)[1]
    status, problem, _ = put({"timeout_seconds": 5, **body})
    assert (status, problem["field"]) == (422, field)
    assert sent("GET", PATH)[1] == before


def test_settings_are_checked_together_with_the_existing_ones(wired: ManualClock) -> None:
    put({"callback": HOOK, "retry_statuses": [404]})
    assert put({"allowed_hosts": ["other.example"]})[1]["field"] == "callback.url"
    assert put({"stop_statuses": [404]})[1]["field"] == "stop_statuses"


def test_a_failed_precondition_is_a_412(wired: ManualClock) -> None:
    mismatch = "urn:duewheel:problem:version-mismatch"
    assert put({}, if_match='"1"')[1]["type"] == mismatch
    assert put({}, if_match="*")[0] == 412
    assert put({}, if_none_match="*")[0] == 201
    assert put({}, if_none_match="*")[0] == 412
    status, problem, _ = put({"retention_days": 2}, if_match='"2"')
    assert (status, problem["type"], problem["field"]) == (412, mismatch, "if-match")
    assert put({"retention_days": 2}, if_match='"1"')[1]["version"] == 2
    assert put({}, if_match="*")[0] == 200
    assert sent("DELETE", PATH, if_match='"1"')[0] == 412
    assert sent("DELETE", PATH, if_match='"3"')[0] == 200
    for headers in ({"if_match": "3"}, {"if_match": 'W/"3"'}, {"if_none_match": '"3"'}):
        status, problem, _ = put({}, **headers)
        assert (status, problem["type"]) == (422, "urn:duewheel:problem:invalid-field")


def test_a_business_without_settings_is_unknown(wired: ManualClock) -> None:
    for method in ("GET", "DELETE"):
        status, problem = call(method, PATH)
        assert (status, problem["type"]) == (404, "urn:duewheel:problem:unknown-business")
    assert call("GET", "/v1/businesses/Orders")[1]["field"] == "biz_type"


def test_a_business_that_only_has_tasks_is_read_with_the_defaults(wired: ManualClock) -> None:
    create(callback=HOOK)
    status, business, headers = sent("GET", PATH)
    assert (status, headers["etag"]) == (200, '"0"')
    assert (business["version"], business["own"], business["created_at"]) == (0, [], None)
    assert put({}, if_match="*")[0] == 412
    status, configured, _ = put({}, if_match=headers["etag"])
    assert (status, configured["version"]) == (201, 1)
    assert put({}, if_match='"0"')[0] == 412


def test_businesses_are_listed_by_name_in_pages(wired: ManualClock) -> None:
    for name in ("c", "a", "b"):
        put({}, f"/v1/businesses/{name}")
    status, first = call("GET", "/v1/businesses", query="limit=2")
    assert status == 200
    _, second = call("GET", "/v1/businesses", query=f"limit=2&cursor={first['cursor']}")
    pages = [*first["businesses"], *second["businesses"]]
    assert [business["biz_type"] for business in pages] == ["a", "b", "c"]
    assert second["cursor"] is None
    assert call("GET", "/v1/businesses", query="cursor=abc")[1]["field"] == "cursor"


def test_a_delete_is_refused_while_tasks_are_pending_unless_it_cancels_them(
    wired: ManualClock,
) -> None:
    put({"callback": HOOK})
    tasks = [create()[1] for _ in range(2)]
    status, problem = call("DELETE", PATH)
    assert (status, problem["type"]) == (409, "urn:duewheel:problem:tasks-pending")
    assert call("GET", PATH)[0] == 200

    status, answer = call("DELETE", PATH, query="cancel_pending=true")
    assert (status, answer) == (
        200,
        {"done": True, "timers": 0, "cancelled": 2, "too_late": [], "cursor": None},
    )
    status, left = call("GET", PATH)
    assert (status, left["version"], left["own"]) == (200, 0, []), "its tasks are kept"
    task = call("GET", f"/v1/tasks/{tasks[0]['task_id']}")[1]
    assert (task["status"], task["reason"]) == ("cancelled", "cancelled with its business")
    assert put({})[1]["version"] == 1


def test_a_delete_is_not_done_while_tasks_are_past_their_cut_off(wired: ManualClock) -> None:
    put({"callback": HOOK})
    late, early = create(delay_seconds=60)[1], create()[1]
    wired.advance_ms(59_000)
    answer = {
        "done": False,
        "timers": 0,
        "cancelled": 1,
        "too_late": [late["task_id"]],
        "cursor": None,
    }
    assert call("DELETE", PATH, query="cancel_pending=true") == (202, answer)
    assert call("GET", PATH)[0] == 200
    assert call("GET", f"/v1/tasks/{early['task_id']}")[1]["status"] == "cancelled"


def test_a_delete_continues_at_its_cursor(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duewheel.workflows.sweep.delete_business.LIMIT_MAX", 2)
    put({"callback": HOOK})
    for _ in range(5):
        create()
    cancelled, query = 0, "cancel_pending=true"
    for _ in range(5):
        status, answer = call("DELETE", PATH, query=query)
        cancelled += answer["cancelled"]
        if answer["done"]:
            break
        assert status == 202
        query = f"cancel_pending=true&cursor={answer['cursor']}"
    assert (answer["done"], cancelled) == (True, 5)
    status, problem = call("DELETE", PATH, query="cancel_pending=perhaps")
    assert (status, problem["field"]) == (422, "cancel_pending")


def test_a_delete_without_the_list_index_is_refused(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put({})
    monkeypatch.setenv("LIST_INDEX", "off")
    process.start_anew(wired)
    status, problem = call("DELETE", PATH)
    assert (status, problem["type"]) == (409, "urn:duewheel:problem:list-index-off")


def test_a_task_needs_a_callback_or_a_default_of_its_business(wired: ManualClock) -> None:
    status, problem = create()
    assert (status, problem["field"]) == (422, "callback")
    status, problem = create(callback={"headers": {"x": "y"}})
    assert (status, problem["field"]) == (422, "callback.url")
    put({"callback": HOOK})
    status, task = create()
    assert (status, task["callback"]) == (201, None)
    status, task = create(callback={"method": "PUT"})
    assert task["callback"] == {"type": "http", "url": None, "method": "PUT", "headers": {}}


def test_every_call_refuses_a_callback_to_a_host_that_is_not_allowed(wired: ManualClock) -> None:
    put({"allowed_hosts": ["*.example.com"]})
    good, bad = {"url": "https://a.example.com/"}, {"url": "https://example.com/"}
    status, task = create(callback=good)
    assert status == 201
    for answer in (
        create(callback=bad),
        create(callback=bad, key="k"),
        call("PATCH", f"/v1/tasks/{task['task_id']}", {"callback": bad}),
        call("PUT", f"{PATH}/tasks/k", {"delay_seconds": 60, "callback": bad}),
    ):
        assert (answer[0], answer[1]["field"]) == (422, "callback.url")
    tasks = [{"biz_type": "orders", "delay_seconds": 60, "callback": one} for one in (good, bad)]
    _, answers = call("POST", "/v1/tasks/batch", {"tasks": tasks})
    assert [result["status"] for result in answers["results"]] == [201, 422]


def test_a_repeat_under_an_idempotency_key_returns_its_task_after_a_change_of_settings(
    wired: ManualClock,
) -> None:
    body = {"biz_type": "orders", "delay_seconds": 600, "callback": HOOK}
    _, task, _ = sent("POST", "/v1/tasks", body, idempotency_key="one")
    put({"allowed_hosts": ["other.example"]})
    assert sent("POST", "/v1/tasks", body, idempotency_key="one")[:2] == (201, task)
    assert sent("POST", "/v1/tasks", body, idempotency_key="two")[0] == 422
    put({"allowed_hosts": None})
    assert sent("POST", "/v1/tasks", body, idempotency_key="two")[0] == 201


def test_a_repeated_batch_keeps_its_tasks_and_tries_refused_ones_again(wired: ManualClock) -> None:
    put({"allowed_hosts": ["other.example"]})
    urls = ("https://other.example/", "https://receiver.example/")
    tasks = [{"biz_type": "orders", "delay_seconds": 600, "callback": {"url": url}} for url in urls]
    key = {"idempotency_key": "one"}
    _, first, _ = sent("POST", "/v1/tasks/batch", {"tasks": tasks}, **key)
    assert [result["status"] for result in first["results"]] == [201, 422]
    _, again, _ = sent("POST", "/v1/tasks/batch", {"tasks": tasks}, **key)
    assert again == first
    put({"allowed_hosts": None})
    _, third, _ = sent("POST", "/v1/tasks/batch", {"tasks": tasks}, **key)
    assert third["results"][0] == first["results"][0]
    assert third["results"][1]["status"] == 201


def test_pause_and_resume_keep_the_settings(wired: ManualClock) -> None:
    put({"calls_per_second": 5})
    status, business, headers = sent("POST", f"{PATH}/pause")
    assert (status, business["paused"], headers["etag"]) == (200, True, '"2"')
    assert business["own"] == ["calls_per_second", "paused"]
    assert sent("POST", f"{PATH}/pause")[2]["etag"] == '"2"'

    status, business, headers = sent("POST", f"{PATH}/resume")
    assert (status, business["paused"], headers["etag"]) == (200, False, '"3"')
    assert business["own"] == ["calls_per_second"]
    assert sent("POST", f"{PATH}/resume")[2]["etag"] == '"3"'


@pytest.mark.parametrize("call_name", ["pause", "resume"])
def test_pause_and_resume_create_the_record_of_a_business_without_settings(
    wired: ManualClock, call_name: str
) -> None:
    status, business, _ = sent("POST", f"{PATH}/{call_name}")
    assert (status, business["version"], business["paused"]) == (200, 1, call_name == "pause")


def test_a_put_keeps_a_pause_and_cannot_set_one(wired: ManualClock) -> None:
    sent("POST", f"{PATH}/pause")
    assert put({"retention_days": 3})[1]["own"] == ["retention_days", "paused"]
    status, problem, _ = put({"paused": None})
    assert (status, problem["field"]) == (422, "paused")


@pytest.mark.parametrize("call_name", ["pause", "resume"])
def test_a_pause_with_another_version_is_refused(wired: ManualClock, call_name: str) -> None:
    put({})
    status, problem, _ = sent("POST", f"{PATH}/{call_name}", if_match='"7"')
    assert (status, problem["field"]) == (412, "if-match")
    assert sent("POST", f"{PATH}/{call_name}", if_match='"1"')[0] == 200
    assert sent("POST", "/v1/businesses/Orders/pause")[0] == 422


def test_a_business_shows_its_open_breakers(wired: ManualClock) -> None:
    put({})
    health_store = HealthStore(process.dynamodb(), process.settings().registry_table)
    breaker = Breaker(
        host="pay.example:8443",
        since_ms=NOON_MS,
        until_ms=NOON_MS + 11_500,
        owner_token="a notifier",
    )
    health_store.open("orders", breaker, BusinessHealth(), NOON_MS)
    _, shown, headers = sent("GET", PATH)
    assert headers["etag"] == '"1"'
    assert shown["breakers"] == [
        {
            "host": "pay.example:8443",
            "since": "2027-01-15T08:00:00.000Z",
            "until": "2027-01-15T08:00:11.500Z",
        }
    ]
    health_store.close("orders", breaker)
    assert sent("GET", PATH)[1]["breakers"] == []


def test_the_observed_lane_is_shown(wired: ManualClock) -> None:
    put({})
    assert sent("GET", PATH)[1]["lane"] == "main"
    registry = process.settings().registry_table
    health_store = HealthStore(process.dynamodb(), registry)
    health_store.note_slow("orders", wired.now_ms() + 60_000)
    _, shown, _ = sent("GET", PATH)
    (listed,) = sent("GET", "/v1/businesses")[1]["businesses"]
    for business in (shown, listed, put({"retention_days": 5})[1]):
        assert business["lane"] == "slow"
        assert "lane" not in business["own"]
    wired.advance_ms(60_000)
    assert sent("GET", PATH)[1]["lane"] == "main"


def test_a_throttled_table_is_answered_with_503(wired: ManualClock) -> None:
    def refuse_writes(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request) != "TransactWriteItems":
            return handle(request)
        return do(Fault.THROTTLED, request, handle, Random(1))

    _, _, headers = sent("PUT", "/v1/businesses/orders", {"retention_days": 7})
    with answered_by(refuse_writes):
        for method, body in (("PUT", {"retention_days": 8}), ("DELETE", None)):
            status, problem, _ = sent(method, "/v1/businesses/orders", body)
            assert (status, problem["type"]) == (503, "urn:duewheel:problem:unavailable")
    status, _, same = sent("GET", "/v1/businesses/orders")
    assert (status, same["etag"]) == (200, headers["etag"])


def test_a_task_read_alone_shows_its_effective_callback_without_secrets(
    wired: ManualClock,
) -> None:
    put({"callback": {**HOOK, "headers": {"authorization": f"Bearer {'s' * 30}", "x-team": "a"}}})
    _, task = create(key="order-17")
    for path in (f"/v1/tasks/{task['task_id']}", f"{PATH}/tasks/order-17"):
        found = call("GET", path)[1]["effective_callback"]
        assert (found["url"], found["method"]) == (HOOK["url"], "POST")
        assert found["headers"]["x-team"] == "a"
        assert found["headers"]["authorization"].startswith("Bearer ssss… (sha256 ")
    (listed,) = call("GET", "/v1/tasks", query="biz_type=orders")[1]["tasks"]
    assert "effective_callback" not in listed
