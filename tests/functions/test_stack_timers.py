"""Timers as resources of CloudFormation: every request is answered, whatever it asks for and
however often and late it comes, and no stack has the timer of another."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from random import Random
from typing import Any

import boto3
import pytest

from duewheel.wiring import process
from functions.stack_timers import app as stack_timers
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from tests.functions.conftest import Context, call
from tests.support.cases import each_case
from tests.support.clock import ManualClock
from tests.support.stack_requests import HOST, SIGNATURE, StackOfATeam, Storage

HOOK = {"url": "https://receiver.example/hook"}
DAILY = {"biz_type": "orders", "name": "nightly-close", "cron": "0 3 * * *", "callback": HOOK}
NAMES = {"biz_type": "orders", "name": "nightly-close", "definition": None}
OTHER = {**DAILY, "name": "morning"}


CALLER = "duewheel-write"
BY_NAME = "/v1/timers/by-name/orders/nightly-close"
BODY = {"cron": "0 3 * * *", "callback": HOOK}


@pytest.fixture
def storage(wired: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Storage:
    storage = Storage()
    monkeypatch.setattr(stack_timers, "HTTPSConnection", storage.connection)
    return storage


@pytest.fixture
def send(storage: Storage) -> Callable[[dict[str, Any]], Any]:
    def send(event: dict[str, Any]) -> Any:
        ends_ms = process.clock().now_ms() + 180_000
        stack_timers.handler(event, Context(lambda: ends_ms - process.clock().now_ms()))
        assert process.clock().now_ms() < ends_ms, "Lambda would have ended it"
        put = storage.taken[-1]
        assert (put.host, put.headers["content-type"]) == (HOST, "")
        assert f"https://{put.host}{put.target}" == event["ResponseURL"]
        for name in ("StackId", "RequestId", "LogicalResourceId"):
            assert put.body[name] == event[name]
        return put.body

    return send


@pytest.fixture
def stack(send: Callable[[dict[str, Any]], Any]) -> StackOfATeam:
    return StackOfATeam(send=send)


def timers(biz_type: str = "orders") -> list[Any]:
    return list(call("GET", "/v1/timers", query=f"biz_type={biz_type}")[1]["timers"])


def names() -> list[str]:
    return sorted(timer["name"] for timer in timers())


def made_by_hand(**more: Any) -> Any:
    status, timer = call("POST", "/v1/timers", {**DAILY, **more})
    assert status == 201, timer
    return timer


# ---------------------------------------------------------------- what becomes of a resource


def test_a_resource_is_made_changed_and_deleted_with_its_stack(stack: StackOfATeam) -> None:
    answer = stack.create(DAILY)
    (timer,) = timers()
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", timer["timer_id"])
    assert answer["Data"] == {name: timer[name] for name in answer["Data"]}
    assert set(answer["Data"]) == {"timer_id", "biz_type", "name", "next_at"}
    assert timer["managed_by"].startswith("cloudformation:orders-app/Nightly#")

    changed = stack.update({**DAILY, "cron": "0 4 * * *"})
    assert changed["PhysicalResourceId"] == timer["timer_id"]
    assert [(t["version"], t["cron"]) for t in timers()] == [(2, "0 4 * * *")]
    (first,) = call("GET", f"/v1/timers/{timer['timer_id']}/changes")[1]["changes"][-1:]
    assert first["by"] == CALLER

    assert stack.delete()["Status"] == "SUCCESS"
    assert timers() == []


def test_of_a_member_given_twice_in_a_definition_the_last_one_counts(stack: StackOfATeam) -> None:
    text = json.dumps(BODY)[:-1] + ', "cron": "0 4 * * *", "managed_by": "a", "managed_by": "b"}'
    stack.create({**NAMES, "definition": text})
    (timer,) = timers()
    assert timer["cron"] == "0 4 * * *"
    assert timer["managed_by"].startswith("cloudformation:")


def test_a_definition_is_the_body_of_the_put_by_name(stack: StackOfATeam) -> None:
    text = '{"every_seconds": 900, "enabled": false, "payload": {"a": 0.50, "b": "1"}, "callback": '
    text += json.dumps(HOOK) + ', "managed_by": "me", "labels": {"team": "7"}}'
    names = {"biz_type": "orders", "name": "17"}
    assert stack.create({**names, "definition": text})["Status"] == "SUCCESS"
    (timer,) = timers()
    assert (timer["name"], timer["every_seconds"], timer["enabled"]) == ("17", 900, False)
    assert (timer["payload"], timer["labels"]) == ({"a": 0.5, "b": "1"}, {"team": "7"})
    assert timer["managed_by"].startswith("cloudformation:"), "the mark, whatever it says"


@each_case(
    "more, reason",
    [
        ({"every_seconds": 60}, "cron"),
        ({"max_runs": "5"}, f"max_runs: must be a whole number. (invalid-field, as {CALLER})"),
        ({"callback": {"url": "ftp://receiver.example"}}, "callback.url"),
        ({"callback": {"type": "sqs", "queue_url": "x"}}, "TargetArns"),
        ({"retry": {"atempts": 3}}, "retry.atempts: is unknown here"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"biz_type": ["a"]}, "biz_type: must be 1 to 63 of"),
        ({"biz_type": "Orders"}, "biz_type: must be 1 to 63 of"),
        ({"biz_type": "orders/x"}, "is no call of this service"),
        ({"name": "a b"}, "name: must be 1 to 128 of"),
        ({"payload": "x" * 70_000}, "(too-large"),
        ({"x" * 200: "1"}, "is unknown here"),
        ({"definition": "{"}, "is cut off"),
        ({"definition": "[]"}, "definition: must be an object"),
        ({"definition": {"cron": "0 3 * * *"}}, "definition: must be a string"),
    ],
)
def test_what_is_wrong_is_refused_with_a_reason_that_names_it_and_makes_nothing(
    stack: StackOfATeam, more: dict[str, Any], reason: str
) -> None:
    answer = stack.create({**DAILY, **more})
    assert answer["Status"] == "FAILED"
    assert reason in answer["Reason"]
    assert timers() == []


@each_case("member", ["biz_type", "name", "callback", "definition"])
def test_a_resource_without_what_it_needs_is_refused(stack: StackOfATeam, member: str) -> None:
    timer = {name: value for name, value in DAILY.items() if name != member}
    answer = stack.create(NAMES if member == "definition" else timer)
    assert answer["Status"] == "FAILED"
    assert member in answer["Reason"]


@pytest.mark.parametrize("more", [{"name": "morning"}, {"biz_type": "shop"}])
def test_another_name_or_business_is_another_timer_and_the_old_one_goes(
    stack: StackOfATeam, more: dict[str, str]
) -> None:
    first = stack.create(DAILY)["PhysicalResourceId"]
    second = stack.update({**DAILY, **more})["PhysicalResourceId"]
    assert second != first
    assert [t["timer_id"] for t in timers() + timers("shop")] == [second]


def test_a_rolled_back_replacement_leaves_the_timer_that_was_there(stack: StackOfATeam) -> None:
    first = stack.create(DAILY)["PhysicalResourceId"]
    event = stack.event("Update", "Nightly", OTHER, PhysicalResourceId=first)
    second = stack.send(event)["PhysicalResourceId"]
    stack.physical_ids["Nightly"], stack.properties["Nightly"] = second, OTHER
    assert stack.update(DAILY)["PhysicalResourceId"] == first
    assert names() == ["nightly-close"]


def test_a_refused_update_changes_nothing(stack: StackOfATeam) -> None:
    stack.create(DAILY)
    before = timers()
    assert stack.update({**DAILY, "cron": "61 * * * *"})["Status"] == "FAILED"
    assert timers() == before


def test_a_timer_that_was_disabled_by_hand_stays_so(stack: StackOfATeam) -> None:
    timer_id = stack.create(DAILY)["PhysicalResourceId"]
    call("POST", f"/v1/timers/{timer_id}/disable")
    stack.update({**DAILY, "cron": "0 4 * * *"})
    assert timers()[0]["enabled"] is False


# ---------------------------------------------------------------- repeats, and late ones


def test_a_repeated_request_makes_nothing_again(stack: StackOfATeam) -> None:
    event = stack.event("Create", "Nightly", DAILY)
    first, again = stack.send(event), stack.send(event)
    assert first == again
    assert [timer["version"] for timer in timers()] == [1]
    stack.physical_ids["Nightly"], stack.properties["Nightly"] = first["PhysicalResourceId"], DAILY
    delete = stack.delete_event()
    assert stack.send(delete) == stack.send(delete)
    assert timers() == []


def test_a_late_repeat_of_a_delete_leaves_the_timer_that_was_made_since(
    stack: StackOfATeam, send: Callable[[dict[str, Any]], Any]
) -> None:
    stack.create(DAILY)
    old = stack.delete_event()
    stack.delete()
    for later in (StackOfATeam(send=send), stack):
        made = later.create(DAILY)["PhysicalResourceId"]
        assert send(old)["Status"] == "SUCCESS"
        assert [timer["timer_id"] for timer in timers()] == [made]
        later.delete()


def test_a_timer_that_was_deleted_by_hand_is_made_again_and_can_be_deleted(
    stack: StackOfATeam,
) -> None:
    first = stack.create(DAILY)["PhysicalResourceId"]
    call("DELETE", f"/v1/timers/{first}")
    assert stack.update({**DAILY, "cron": "0 5 * * *"})["PhysicalResourceId"] != first
    call("DELETE", "/v1/timers/by-name/orders/nightly-close")
    assert stack.delete()["Status"] == "SUCCESS"


def test_a_create_whose_answer_was_lost_leaves_no_timer_after_its_rollback(
    stack: StackOfATeam,
) -> None:
    """CloudFormation has an id of its own then."""
    stack.create(DAILY)
    stack.physical_ids["Nightly"] = "orders-app-Nightly-1ABCDEF"
    assert stack.delete()["Status"] == "SUCCESS"
    assert timers() == []


def test_a_deleted_resource_without_readable_properties_is_gone(stack: StackOfATeam) -> None:
    names = ({}, {"biz_type": ["x"], "name": "n"}, {"biz_type": "", "name": ""})
    for properties in ({**one, "definition": "{}"} for one in names):
        stack.physical_ids["Nightly"], stack.properties["Nightly"] = "not-made", properties
        assert stack.delete()["Status"] == "SUCCESS"


@pytest.mark.parametrize("member", ["biz_type", "name"])
def test_a_refused_name_is_not_looked_for_when_its_create_is_rolled_back(
    stack: StackOfATeam, member: str
) -> None:
    """DynamoDB refuses a read by so long a key."""
    with refusing("Query"):
        assert stack.create({**DAILY, member: "n" * 3_000})["Status"] == "FAILED"


# ---------------------------------------------------------------- timers of others


@pytest.mark.parametrize(
    "owner", [None, "reports-repository", "cloudformation:other/Nightly#0123456789abcdef"]
)
def test_the_timer_of_another_owner_is_neither_taken_nor_deleted(
    stack: StackOfATeam, owner: str | None
) -> None:
    timer = made_by_hand(managed_by=owner)
    answer = stack.create(DAILY)
    assert answer["Status"] == "FAILED"
    assert timer["timer_id"] in answer["Reason"]
    assert "set its managed_by to cloudformation:orders-app/Nightly#" in answer["Reason"]
    assert timers() == [timer]


def test_two_resources_of_a_stack_cannot_have_one_timer(stack: StackOfATeam) -> None:
    first = stack.create(DAILY)["PhysicalResourceId"]
    assert stack.create(DAILY, "Second")["Status"] == "FAILED"
    assert [timer["timer_id"] for timer in timers()] == [first]


def test_a_timer_that_was_handed_over_belongs_to_the_stack(stack: StackOfATeam) -> None:
    timer = made_by_hand(max_runs=7)
    _, _, said = stack.create(DAILY)["Reason"].partition("set its managed_by to ")
    mark = said.partition(".")[0]
    assert call("PATCH", f"/v1/timers/{timer['timer_id']}", {"managed_by": mark})[0] == 200
    answer = stack.create(DAILY)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", timer["timer_id"])
    assert timers()[0]["max_runs"] is None
    stack.delete()
    assert timers() == []


@pytest.mark.parametrize("owner", [None, "reports-repository"])
def test_a_timer_that_was_taken_from_the_stack_outlives_it(
    stack: StackOfATeam, owner: str | None
) -> None:
    timer_id = stack.create(DAILY)["PhysicalResourceId"]
    call("PATCH", f"/v1/timers/{timer_id}", {"managed_by": owner})
    assert timer_id in stack.update(OTHER | DAILY)["Reason"]
    assert stack.delete()["Status"] == "SUCCESS"
    assert [timer["timer_id"] for timer in timers()] == [timer_id]


def test_a_name_that_several_timers_have_is_refused(stack: StackOfATeam) -> None:
    for _ in range(2):
        made_by_hand()
    assert "(timers-share-name" in stack.create(DAILY)["Reason"]
    assert len(timers()) == 2


# ---------------------------------------------------------------- who may


def started_as(caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_TIMERS_AS", caller)
    process.start_anew(process.clock())


@each_case(
    "caller, may",
    [
        ("duewheel-write", True),
        ("duewheel-admin", True),
        ("duewheel-write-orders", True),
        ("duewheel-write-ord+", True),
        ("duewheel-write-shop", False),
        ("duewheel-read-orders", False),
        ("duewheel-write-", False),
    ],
)
def test_stacks_have_the_rights_that_the_name_of_the_caller_says(
    stack: StackOfATeam, monkeypatch: pytest.MonkeyPatch, caller: str, may: bool
) -> None:
    started_as(caller, monkeypatch)
    answer = stack.create(DAILY)
    assert (answer["Status"] == "SUCCESS") == may
    assert len(timers()) == may
    if may:
        assert stack.delete()["Status"] == "SUCCESS"
    else:
        assert f"(not-permitted, as {caller})" in answer["Reason"]


def test_a_right_that_was_taken_back_keeps_the_timer_and_says_so(
    stack: StackOfATeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.create(DAILY)
    started_as("duewheel-write-shop", monkeypatch)
    assert "business orders. (not-permitted" in stack.delete()["Reason"]
    assert names() == ["nightly-close"]


# ---------------------------------------------------------------- the answer


@each_case(
    "url",
    [
        f"http://{HOST}/a",
        "https://evil.example/a",
        "https://amazonaws.com.evil.example/a",
        "https://evilamazonaws.com/a",
        "https://s3.amazonaws.com/a",
        "https://bucket.s3.amazonaws.com/a",
        f"https://user@{HOST}/a",
        f"https://{HOST}:8443/a",
        f"https://{HOST}.evil.example/a",
        f"https://{HOST}/a b",
        f"https://{HOST}/a\r\nx: y",
        f"https://{HOST}\n/a",
        "file:///etc/passwd",
    ],
)
def test_no_answer_goes_elsewhere_and_nothing_is_made_without_one(
    stack: StackOfATeam, storage: Storage, url: str
) -> None:
    event = {**stack.event("Create", "Nightly", DAILY), "ResponseURL": url}
    assert stack_timers.handler(event, Context()) is None
    assert (storage.tries, timers()) == (0, [])


@each_case("event", [{}, {"RequestType": "Create"}, {"ResponseURL": None}])
def test_what_is_no_request_of_cloudformation_does_nothing(storage: Storage, event: Any) -> None:
    assert stack_timers.handler(event, Context()) is None
    assert storage.tries == 0


@pytest.mark.parametrize(
    "where",
    [
        "useast1.s3.amazonaws.com",
        "eucentral1.s3.eu-central-1.amazonaws.com",
        "cnnorth1.s3.cn-north-1.amazonaws.com.cn",
    ],
)
def test_answers_go_to_the_bucket_of_each_region(
    stack: StackOfATeam, storage: Storage, where: str
) -> None:
    host = f"cloudformation-custom-resource-response-{where}"
    event = {**stack.event("Create", "Nightly", DAILY), "ResponseURL": f"https://{host}/a?b=c%3A"}
    stack_timers.handler(event, Context(lambda: 180_000))
    assert [(put.host, put.target) for put in storage.taken] == [(host, "/a?b=c%3A")]


@pytest.mark.parametrize(
    "answers", [[500], [503, 429, OSError()], [TimeoutError(), ConnectionResetError()]]
)
def test_an_answer_that_is_not_taken_is_put_again(
    stack: StackOfATeam, storage: Storage, answers: list[Any]
) -> None:
    storage.answers = [*answers]
    assert stack.create(DAILY)["Status"] == "SUCCESS"
    assert storage.tries == len(answers) + 1


def test_a_run_whose_answer_nobody_takes_fails_and_its_repeat_answers_for_the_same_timer(
    stack: StackOfATeam, storage: Storage
) -> None:
    event = stack.event("Create", "Nightly", DAILY)
    storage.answers = [503] * 4
    with pytest.raises(ConnectionError, match=r"not taken: 503\.$"):
        stack_timers.handler(event, Context(lambda: 180_000))
    (timer,) = timers()
    assert stack.send(event)["PhysicalResourceId"] == timer["timer_id"]
    assert len(timers()) == 1


def test_nothing_of_a_request_is_logged_but_its_names(
    stack: StackOfATeam, storage: Storage, log: StringIO
) -> None:
    secret = {**DAILY, "callback": {**HOOK, "headers": {"authorization": "Bearer s3cret"}}}
    stack.create({**secret, "payload": {"card": "s3cret"}})
    stack.update({**secret, "definition": '{"payload": s3cret'})
    stack.update({**secret, "max_runs": "s3cret"})
    storage.answers = [500] * 4
    with pytest.raises(ConnectionError, match=r"not taken: 500\.$"):
        stack_timers.handler(stack.delete_event(), Context(lambda: 180_000))
    logged = log.getvalue()
    lines = [json.loads(line) for line in logged.splitlines()]
    by_name = "/v1/timers/by-name/{biz_type}/{timer_name}"
    wanted = {"action": "change", "by": CALLER, "biz_type": "orders", "timer_name": DAILY["name"]}
    assert [(line["call"], line["status"]) for line in lines if line.items() >= wanted.items()] == [
        (f"PUT {by_name}", 201),
        (f"PUT {by_name}", 422),
        (f"DELETE {by_name}", 200),
    ]
    assert "s3cret" not in logged
    assert SIGNATURE not in logged
    assert "s3cret" not in json.dumps([put.body for put in storage.taken])


def test_the_longest_reason_and_names_fit_into_an_answer(stack: StackOfATeam) -> None:
    properties = {**DAILY, '\U0001f600"' * 2_000: "1"}
    event = stack.event("Create", "N" * 255, properties, PhysicalResourceId="\\" * 1_000)
    assert "is unknown here" in stack.send(event)["Reason"]


# ---------------------------------------------------------------- failures


@contextmanager
def refusing(
    operation: str, times: int | None = None, fault: Fault = Fault.THROTTLED
) -> Iterator[list[str]]:
    """Spoil the next requests of this operation, or all; yields what was spoilt."""
    spoilt: list[str] = []

    def answer(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request) != operation or (times is not None and len(spoilt) >= times):
            return handle(request)
        spoilt.append(operation)
        return do(fault, request, handle, Random(1))

    with answered_by(answer):
        yield spoilt


def test_throttled_requests_are_repeated_while_there_is_time(
    stack: StackOfATeam, wired: ManualClock
) -> None:
    began_ms = wired.now_ms()
    with refusing("TransactWriteItems"):
        answer = stack.send(stack.event("Create", "Nightly", DAILY))
    assert answer["Status"] == "FAILED"
    assert "(unavailable" in answer["Reason"]
    assert 40_000 < wired.now_ms() - began_ms < 80_000
    assert timers() == []


@pytest.mark.parametrize("operation", ["TransactWriteItems", "Query", "BatchGetItem", "GetItem"])
@pytest.mark.parametrize(
    "fault", [Fault.THROTTLED, Fault.FAILED, Fault.FAILED_AFTER, Fault.LOST_AFTER]
)
def test_each_kind_of_request_may_fail_for_a_while_done_or_not(
    stack: StackOfATeam, operation: str, fault: Fault
) -> None:
    with refusing(operation, 3, fault) as spoilt:
        first = stack.create(DAILY)
        assert first["Status"] == "SUCCESS"
        assert spoilt
    with refusing(operation, 3, fault):
        assert (
            stack.update({**DAILY, "max_runs": 3})["PhysicalResourceId"]
            == (first["PhysicalResourceId"])
        )
    assert [timer["max_runs"] for timer in timers()] == [3]
    with refusing(operation, 3, fault):
        assert stack.delete()["Status"] == "SUCCESS"
    assert timers() == []


def by_another(operation: str, change: Callable[[], object]) -> Any:
    """The change of another comes just before the first request of this operation."""
    pending = [change]

    def answer(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request) == operation and pending:
            pending.pop()()
        return handle(request)

    return answered_by(answer)


def test_a_timer_that_another_makes_meanwhile_is_not_taken(stack: StackOfATeam) -> None:
    with by_another("TransactWriteItems", lambda: call("PUT", BY_NAME, BODY)):
        assert "timer " in stack.create(DAILY)["Reason"]
    assert [(t["version"], t["managed_by"]) for t in timers()] == [(1, None)]


def test_two_runs_of_one_create_make_one_timer(stack: StackOfATeam) -> None:
    event, others = stack.event("Create", "Nightly", DAILY), list[Any]()
    with by_another("TransactWriteItems", lambda: others.append(stack.send(event))):
        assert stack.send(event) == others[0]
    assert [timer["version"] for timer in timers()] == [1]


@pytest.mark.parametrize("kind", ["Update", "Delete"])
def test_a_timer_that_is_taken_meanwhile_is_neither_changed_nor_deleted(
    stack: StackOfATeam, kind: str
) -> None:
    timer_id = stack.create(DAILY)["PhysicalResourceId"]

    def take() -> None:
        assert call("PATCH", f"/v1/timers/{timer_id}", {"managed_by": "another"})[0] == 200

    with by_another("TransactWriteItems", take):
        if kind == "Update":
            assert stack.update({**DAILY, "max_runs": 7})["Status"] == "FAILED"
        else:
            assert stack.delete()["Status"] == "SUCCESS"
    assert [(t["version"], t["max_runs"]) for t in timers()] == [(2, None)]


def test_an_unexpected_error_is_answered_without_its_text(
    stack: StackOfATeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object, **__: object) -> None:
        raise KeyError("s3cret")

    for where in ("functions.stack_timers.app._mark", "duewheel.api.timer_calls.named_timer"):
        with monkeypatch.context() as patched:
            patched.setattr(where, defect)
            answer = stack.send(stack.event("Create", "Nightly", DAILY))
        assert answer["Status"] == "FAILED"
        assert "log says more under" in answer["Reason"]
        assert "s3cret" not in answer["Reason"]


def test_a_misconfigured_deployment_is_answered(
    stack: StackOfATeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUCKETS", "none")
    process.start_anew(process.clock())
    assert stack.send(stack.event("Create", "Nightly", DAILY))["Status"] == "FAILED"


def test_the_function_uses_its_role_alone(stack: StackOfATeam) -> None:
    """Also for near occurrences, which are announced."""
    quick = {"biz_type": "orders", "name": "quick", "every_seconds": 1, "callback": HOOK}
    assert stack.create(quick)["Status"] == "SUCCESS"
    assert stack.update({**quick, "every_seconds": 2})["Status"] == "SUCCESS"
    assert stack.delete()["Status"] == "SUCCESS"
    assert boto3.client("dynamodb").scan(TableName=process.settings().registry_table)["Items"]
