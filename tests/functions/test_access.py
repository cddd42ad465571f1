"""Rights: every call of the table, made by callers with and without its right."""

import json
from base64 import urlsafe_b64decode
from io import StringIO
from typing import Any

import pytest

from duewheel.rules.access.grants import Access, Right, grants_of
from duewheel.wiring import api as wiring
from duewheel.wiring import process
from tests.functions.conftest import call
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock
from tests.support.every_call import EVERY_CALL
from tests.support.two_businesses import (
    MINE,
    OPERATOR,
    REQUESTS,
    THEIRS,
    Asked,
    Owned,
    all_that_is_stored,
    asked,
    owned,
)

ALL_CALLS = {(m, path): c for path, calls in EVERY_CALL.by_path.items() for m, c in calls.items()}
# Those by a token: tests/functions/test_work_calls.py.
CALLS = {name: call for name, call in ALL_CALLS.items() if not call.by_token}
EACH_CALL = quick_first([(name,) for name in CALLS], pytest.mark.exhaustive, 8)
ON_A_BUSINESS = [name for name, c in CALLS.items() if not (c.on_all or c.on_none)]
OVERVIEW = ("GET", "/v1/overview")
LISTS = {("GET", "/v1/businesses"): "businesses", ("GET", "/v1/keys"): "keys"}
BY_ID = [name for name in CALLS if "_id}" in name[1]]
NO_TASK, NO_TIMER, NO_KEY = "AQGjGGV3wAAA5Hw_zdeh9T_ceGnX", "2000000000000", "0" * 12
NO_OPERATION = f"{THEIRS}~{'0' * 20}"


@pytest.fixture
def theirs(wired: ManualClock) -> Owned:
    """A business of another owner, with an item of each kind. The records that a process writes
    once are there."""
    asked(OPERATOR, "GET", "/v1/tasks?biz_type=none")
    asked(OPERATOR, "GET", "/v1/wheel")
    return owned(wired, THEIRS)


def made(who: str, name: tuple[str, str], of: Owned) -> Asked:
    target, body = REQUESTS[name](of)
    return asked(who, name[0], target, body)


def code_of(answer: Asked) -> int:
    """The status of the answer; of a batch, the status of its only task."""
    results = answer.body.get("results")
    return results[0]["status"] if results else answer.code


@pytest.mark.parametrize(("first", "last", "code"), [(MINE, THEIRS, 201), (THEIRS, MINE, 403)])
def test_of_a_member_given_twice_the_last_one_is_checked_and_used(
    wired: ManualClock, first: str, last: str, code: int
) -> None:
    callback = '{"url": "https://first.example/", "url": "https://last.example/"}'
    body = f'{{"biz_type": "{first}", "delay_seconds": 600, "callback": {callback}'
    answer = asked(
        f"duewheel-write-{THEIRS}", "POST", "/v1/tasks", f'{body}, "biz_type": "{last}"}}'
    )
    assert answer.code == code
    if code == 201:
        assert answer.body["biz_type"] == last
        assert answer.body["callback"]["url"] == "https://last.example/"


def test_the_table_of_requests_has_every_call() -> None:
    assert sorted(REQUESTS) == sorted(ALL_CALLS)


@pytest.mark.parametrize("name", EACH_CALL, ids=" ".join)
def test_the_right_of_a_call_is_enough_to_make_it(theirs: Owned, name: tuple[str, str]) -> None:
    needed = CALLS[name]
    who = f"duewheel-{needed.right}" + ("" if needed.on_all else f"-{THEIRS}")
    assert code_of(made(who, name, theirs)) in (200, 201)


def test_an_admin_of_another_business_can_neither_read_nor_change(theirs: Owned) -> None:
    before = all_that_is_stored()
    for name in ON_A_BUSINESS:
        answer = made(f"duewheel-admin-{MINE}", name, theirs)
        if name in LISTS:
            assert answer.body == {LISTS[name]: [], "cursor": None}
            continue
        if name == OVERVIEW:
            assert (answer.body["businesses"], answer.body["deaths"]["groups"]) == ([], [])
            assert answer.body["looked_at"] == {"businesses": 0}
            continue
        assert code_of(answer) == (404 if name in BY_ID or "records" in name[1] else 403), name
        for revealed in ("callback", "receiver.example", "order-17:", "payload"):
            assert revealed not in answer.text, name
    assert all_that_is_stored() == before


@pytest.mark.parametrize(("has", "lacks"), [("read", "write"), ("write", "admin")])
def test_a_call_with_too_low_a_right_changes_no_item(theirs: Owned, has: str, lacks: str) -> None:
    before = all_that_is_stored()
    tried = [name for name in ON_A_BUSINESS if CALLS[name].right.includes(Right(lacks))]
    for name in tried:
        answer = made(f"duewheel-{has}-{THEIRS}", name, theirs)
        if name in LISTS:
            assert answer.body[LISTS[name]] == []
        else:  # a caller with fewer rights than a key gets it answered as absent
            assert code_of(answer) == (404 if "{key_id}" in name[1] else 403), name
    assert tried
    assert all_that_is_stored() == before


def test_calls_on_the_whole_wheel_need_a_right_on_all_businesses(theirs: Owned) -> None:
    on_all = [name for name, needed in CALLS.items() if needed.on_all]
    assert on_all == [("GET", "/v1/wheel"), ("GET", "/v1/audit")]
    for name in on_all:
        for who in (f"duewheel-admin-{MINE}", "duewheel-admin-m+"):
            assert made(who, name, theirs).status == 403
        assert made("duewheel-read", name, theirs).status == 200


@pytest.mark.parametrize("right", Right)
def test_an_id_of_another_business_is_answered_like_an_unknown_id(
    theirs: Owned, right: Right
) -> None:
    who = f"duewheel-{right}-{MINE}"
    unknown = Owned(THEIRS, NO_TASK, NO_TASK, NO_TIMER, NO_KEY, operation_id=NO_OPERATION)
    for name in BY_ID:
        assert made(who, name, theirs) == made(who, name, unknown)
        # Without a right on any business, neither the body nor its id is read.
        has_body = REQUESTS[name](theirs)[1] is not None
        is_ever = right.includes(CALLS[name].right)
        assert made(who, name, theirs).status == (403 if has_body and not is_ever else 404)


def test_an_existing_business_out_of_reach_is_answered_like_an_unknown_one(theirs: Owned) -> None:
    for name in ON_A_BUSINESS:
        if name in BY_ID or name in (*LISTS, OVERVIEW) or "timerID" in REQUESTS[name](theirs)[0]:
            continue
        unused = Owned("nobodys", NO_TASK, NO_TASK, NO_TIMER, NO_KEY)
        answers = [made(f"duewheel-admin-{MINE}", name, of) for of in (theirs, unused)]
        assert answers[0].text.replace(THEIRS, "nobodys") == answers[1].text, name


def test_without_an_identity_every_call_is_refused(theirs: Owned) -> None:
    before = all_that_is_stored()
    for name in CALLS:
        answer = made("", name, theirs)
        assert answer.status == 403, name
        assert answer.body["type"] == "urn:duewheel:problem:not-permitted"
    assert all_that_is_stored() == before


def test_a_caller_without_grants_is_refused_every_call(
    theirs: Owned, wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IAM_DEFAULT", "none")
    process.start_anew(wired)
    before = all_that_is_stored()
    assert {made("orders", name, theirs).status for name in CALLS} == {403}
    assert all_that_is_stored() == before


def test_a_batch_creates_the_permitted_tasks(theirs: Owned) -> None:
    task = {"delay_seconds": 60, "callback": {"url": "https://receiver.example/"}}
    tasks = [{"biz_type": biz_type, **task} for biz_type in (MINE, THEIRS, MINE, "nobodys")]
    answer = asked(f"duewheel-write-{MINE}", "POST", "/v1/tasks/batch", {"tasks": tasks})
    results = answer.body["results"]
    assert [result["status"] for result in results] == [201, 403, 201, 403]
    problem = results[1]["problem"]
    assert (problem["type"], problem["field"]) == (
        "urn:duewheel:problem:not-permitted",
        "tasks[1].biz_type",
    )
    status, page = call("GET", "/v1/tasks", query=f"biz_type={THEIRS}&status=pending")
    assert (status, len(page["tasks"])) == (200, 2), "only its own tasks"


def test_a_repeated_batch_creates_tasks_that_are_permitted_by_then(theirs: Owned) -> None:
    """The first request has not created the refused task, so a repeat under the same key must
    create it."""
    task = {"delay_seconds": 60, "callback": {"url": "https://receiver.example/"}}
    batch = {"tasks": [{"biz_type": biz_type, **task} for biz_type in (MINE, THEIRS)]}

    def repeated(monkeypatch: pytest.MonkeyPatch, grants: str) -> list[Any]:
        monkeypatch.setattr(wiring, "access", lambda _: Access("me", grants_of(grants)))
        key = {"idempotency_key": "8e03978e"}
        return list(asked("any", "POST", "/v1/tasks/batch", batch, **key).body["results"])

    with pytest.MonkeyPatch.context() as patched:
        first = repeated(patched, f"write:{MINE}")
        second = repeated(patched, "write:*")
        third = repeated(patched, f"write:{THEIRS}")
    assert [result["status"] for result in first] == [201, 403]
    assert [result["status"] for result in second] == [201, 201]
    assert second[0] == first[0]
    made_late = second[1]["task"]
    assert made_late.items() <= call("GET", f"/v1/tasks/{made_late['task_id']}")[1].items()
    assert [result["status"] for result in third] == [403, 201]
    assert third[1] == second[1]


def test_a_repeated_batch_refuses_created_tasks_without_permission(theirs: Owned) -> None:
    task = {"delay_seconds": 60, "callback": {"url": "https://receiver.example/"}}
    batch = {"tasks": [{"biz_type": biz_type, **task} for biz_type in (MINE, THEIRS)]}
    key = {"idempotency_key": "8e03978e"}

    def repeated(grants: str) -> list[Any]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(wiring, "access", lambda _: Access("me", grants_of(grants)))
            return list(asked("any", "POST", "/v1/tasks/batch", batch, **key).body["results"])

    first = repeated("write:*")
    mine, other = repeated(f"write:{MINE}")
    assert mine == first[0]
    assert other["status"] == 403
    assert "created before" in other["problem"]["detail"]
    assert repeated("write:*") == first


def test_the_list_of_businesses_has_those_within_reach(wired: ManualClock) -> None:
    for name in ("a", "b-1", "b-2", "c", "d", "e"):
        call("PUT", f"/v1/businesses/{name}", {"retention_days": 7})
    assert _listed("duewheel-read-b-+", limit=1) == ["b-1", "b-2"]
    assert _listed("duewheel-admin-e", limit=2) == ["e"]
    assert _listed("duewheel-read-nobodys", limit=2) == []
    assert _listed("duewheel-read", limit=4) == ["a", "b-1", "b-2", "c", "d", "e"]


def _listed(who: str, limit: int) -> list[str]:
    names, cursor = [], ""
    while True:
        page = asked(who, "GET", f"/v1/businesses?limit={limit}{cursor}").body
        names += [business["biz_type"] for business in page["businesses"]]
        if page["cursor"] is None:
            return names
        cursor = f"&cursor={page['cursor']}"


def test_a_cursor_names_no_business_out_of_reach(wired: ManualClock) -> None:
    for name in ("b-1", "secret-1", "b-3"):
        call("PUT", f"/v1/businesses/{name}", {"retention_days": 7})
    for limit in (1, 2):
        page = asked("duewheel-read-b-+", "GET", f"/v1/businesses?limit={limit}").body
        assert b"secret" not in urlsafe_b64decode((page["cursor"] or "") + "==")


@pytest.mark.parametrize("kind", ["tasks", "timers"])
def test_a_list_without_a_business_has_what_is_within_reach(wired: ManualClock, kind: str) -> None:
    ids = {}
    for name in ("b-1", "b-2", "secret-1"):
        call("PUT", f"/v1/businesses/{name}", {"callback": {"url": "https://a.example/"}})
        new = {"biz_type": name, "name": "n", "every_seconds": 60}
        made = call("POST", "/v1/timers", new) if kind == "timers" else _task_of(name)
        ids[name] = made[1]["timer_id" if kind == "timers" else "task_id"]

    def listed(who: str, query: str = "") -> list[str]:
        page = asked(who, "GET", f"/v1/{kind}?limit=100{query}")
        assert page.status == 200
        return [one["biz_type"] for one in page.body[kind]]

    for limit in ("", "&state=enabled" if kind == "timers" else "&status=pending"):
        assert {*listed(OPERATOR, limit)} == {*ids}
        assert {*listed("duewheel-read-b-+", limit)} == {"b-1", "b-2"}
        assert {*listed("duewheel-write-secret-1", limit)} == {"secret-1"}
        assert listed("duewheel-read-nobodys", limit) == []
    assert asked("", "GET", f"/v1/{kind}").status == 403
    page = asked("duewheel-read-b-+", "GET", f"/v1/{kind}?limit=1").body
    assert page["looked_at"]["businesses"] == 1
    assert b"secret" not in urlsafe_b64decode(page["cursor"] + "==")


def _task_of(biz_type: str) -> tuple[int, Any]:
    return call("POST", "/v1/tasks", {"biz_type": biz_type, "delay_seconds": 60})


def test_a_cursor_of_another_business_answers_as_a_malformed_one(theirs: Owned) -> None:
    for _ in range(2):
        task = {"biz_type": MINE, "delay_seconds": 60, "callback": {"url": "https://a.example/"}}
        assert call("POST", "/v1/tasks", task)[0] == 201
        task = {**task, "biz_type": THEIRS}
        assert call("POST", "/v1/tasks", task)[0] == 201
    page = asked(OPERATOR, "GET", f"/v1/tasks?biz_type={THEIRS}&limit=1").body
    mine = f"/v1/tasks?biz_type={MINE}&limit=1&cursor="
    answers = [
        asked(f"duewheel-read-{MINE}", "GET", mine + cursor)
        for cursor in (page["cursor"], "nonsense")
    ]
    assert answers[0] == answers[1]
    assert answers[0].status == 422


def test_a_create_without_a_right_does_not_count_towards_the_limit(theirs: Owned) -> None:
    """A caller without rights on a business cannot use up its creation limit."""
    limited = {"creates_per_second": 0.001}
    assert call("PUT", f"/v1/businesses/{THEIRS}", limited)[0] == 200
    task = {"biz_type": THEIRS, "delay_seconds": 60, "callback": {"url": "https://a.example/"}}
    for _ in range(3):
        assert asked(f"duewheel-write-{MINE}", "POST", "/v1/tasks", task).status == 403
    assert asked(f"duewheel-write-{THEIRS}", "POST", "/v1/tasks", task).status == 201


# The access log


def changes_in(log: StringIO) -> list[dict[str, Any]]:
    """The changes that were logged since the last call."""
    logged = [json.loads(line) for line in log.getvalue().splitlines()]
    log.seek(0), log.truncate()
    return [line for line in logged if line.get("action") == "change"]


@pytest.mark.parametrize("name", EACH_CALL, ids=" ".join)
def test_each_changing_call_logs_caller_and_change(
    theirs: Owned, name: tuple[str, str], log: StringIO
) -> None:
    changes_in(log)
    for who, is_refused in ((f"duewheel-admin-{MINE}", True), (OPERATOR, False)):
        answer = made(who, name, theirs)
        found = changes_in(log)
        if name[0] == "GET" or CALLS[name].on_none:
            assert found == []
            continue
        (line,) = found
        assert line["by"] == f"arn:aws:sts::123456789012:assumed-role/{who}"
        assert line["call"] == " ".join(name)
        assert line["status"] == answer.status
        if "{task_id}" in name[1]:
            assert line["task_id"] in (theirs.task_id, theirs.dead_id)
        if "{timer_id}" in name[1]:
            assert line["timer_id"] == theirs.timer_id
        if "{key_id}" in name[1]:
            assert line["key_id"] == theirs.key_id
        if "{biz_type}" in name[1]:
            assert line["biz_type"] == THEIRS
        if name == ("POST", "/v1/tasks") and not is_refused:
            assert line["task_ids"] == [answer.body["task_id"]]
        if name == ("POST", "/v1/tasks/batch"):
            made_ids = [] if is_refused else [answer.body["results"][0]["task"]["task_id"]]
            assert line["task_ids"] == made_ids
            assert line["biz_types"] == ([] if is_refused else [THEIRS])
        elif name[1].startswith("/v1/tasks") and not is_refused:
            assert line["biz_type"] == THEIRS


def test_a_failed_call_is_logged_as_well(
    theirs: Owned, log: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a cable is loose")

    monkeypatch.setattr("duewheel.workflows.tasks.change_task.CancelTask.__call__", fail)
    assert made(OPERATOR, ("DELETE", "/v1/tasks/{task_id}"), theirs).status == 500
    assert changes_in(log)[-1]["status"] == 500


def test_bodies_and_headers_of_callers_are_not_logged(wired: ManualClock, log: StringIO) -> None:
    canary = "canary-7f3a"
    task = {
        "biz_type": MINE,
        "delay_seconds": 60,
        "payload": {"secret": canary},
        "callback": {"url": f"https://a.example/?{canary}", "headers": {"x-secret": canary}},
    }
    assert asked(OPERATOR, "POST", "/v1/tasks", task, authorization=canary).status == 201
    asked(OPERATOR, "PATCH", f"/v1/tasks/{NO_TASK}", {"payload": canary})
    assert canary not in log.getvalue()
    assert len(changes_in(log)) == 2
