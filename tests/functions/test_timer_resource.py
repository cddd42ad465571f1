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

from duewheel.targets.http.stack_answer import AnswerNotTaken, AnswerStack
from duewheel.wiring import process
from duewheel.wiring import timer_resource as wiring
from functions.timer_resource import app as timer_resource
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from tests.functions.conftest import Context, call
from tests.support.cases import each_case
from tests.support.clock import ManualClock
from tests.support.stack_requests import HOST, SIGNATURE, StackOfATeam, Storage

HOOK = {"url": "https://receiver.example/hook"}
DAILY = {"biz_type": "orders", "name": "nightly-close", "cron": "0 3 * * *", "callback": HOOK}
OTHER = {**DAILY, "name": "morning"}


@pytest.fixture
def storage(wired: ManualClock) -> Iterator[Storage]:
    storage = Storage()

    def answer_stack() -> AnswerStack:
        return AnswerStack(process.clock(), storage.connection)

    process.replace_parts({wiring.answer_stack: answer_stack})
    process.start_anew(wired)
    yield storage
    process.replace_parts({})


@pytest.fixture
def send(storage: Storage) -> Callable[[dict[str, Any]], Any]:
    def send(event: dict[str, Any]) -> Any:
        timer_resource.handler(event, Context(lambda: 180_000))
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
    assert first["by"] == "stack/orders-app"

    assert stack.delete()["Status"] == "SUCCESS"
    assert timers() == []


def test_texts_become_numbers_and_booleans_where_the_definition_has_them_and_nowhere_else(
    stack: StackOfATeam,
) -> None:
    definition = {
        "biz_type": "orders",
        "name": "17",
        "every_seconds": 900,
        "max_runs": 5,
        "retry": {"attempts": 4, "first_delay_seconds": 1.5, "jitter": False},
        "expires_after_seconds": 60.5,
        "disable_on_stop": False,
        "enabled": False,
        "flow_key": "42",
        "labels": {"team": "7", "paid": "true"},
        "payload": {"order": 17, "paid": True},
        "callback": {**HOOK, "headers": {"x-number": "5"}},
        "on_outcome": {"outcomes": ["dead"], "callback": HOOK, "with_payload": True},
    }
    assert stack.create(definition)["Status"] == "SUCCESS"
    (timer,) = timers()
    for name in ("name", "every_seconds", "max_runs", "expires_after_seconds", "enabled"):
        assert timer[name] == definition[name]
    assert timer["retry"]["attempts"] == 4
    assert timer["retry"]["jitter"] is False
    assert (timer["flow_key"], timer["disable_on_stop"]) == ("42", False)
    assert timer["labels"] == {"team": "7", "paid": "true"}
    assert timer["callback"]["headers"] == {"x-number": "5"}
    assert timer["on_outcome"]["with_payload"] is True
    assert timer["payload"] == {"order": "17", "paid": "true"}, "a payload has no schema"


def test_a_payload_as_json_text_keeps_its_numbers(stack: StackOfATeam) -> None:
    text = '{"order": 17, "share": 0.50}'
    assert stack.create({**DAILY, "payload_json": text})["Status"] == "SUCCESS"
    assert timers()[0]["payload"] == {"order": 17, "share": 0.5}


@each_case(
    "more, reason",
    [
        ({"every_seconds": 60}, "cron"),
        ({"max_runs": "many"}, "max_runs: must be a whole number. (invalid-field)"),
        ({"enabled": "yes"}, "enabled: must be true or false."),
        ({"enabled": "True"}, "enabled: must be true or false."),
        ({"callback": {"url": "ftp://receiver.example"}}, "callback.url"),
        ({"callback": {"type": "sqs", "queue_url": "x"}}, "TargetQueueArns"),
        ({"retry": {"atempts": 3}}, "retry.atempts: is unknown here"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"managed_by": "me"}, "managed_by: is set by the stack."),
        ({"biz_type": ["a"]}, "biz_type: must be a string."),
        ({"biz_type": "Orders"}, "biz_type: must be 1 to 63 of"),
        ({"name": "a b"}, "name: must be 1 to 128 of"),
        ({"payload": {}, "payload_json": "{}"}, "payload_json: cannot be combined"),
        ({"payload_json": '1, "managed_by": "x"'}, "payload_json"),
        ({"payload": "x" * 70_000}, "(too-large, field payload)"),
        ({"x" * 200: "1"}, "is unknown here"),
    ],
)
def test_what_is_wrong_is_refused_with_a_reason_that_names_it_and_makes_nothing(
    stack: StackOfATeam, more: dict[str, Any], reason: str
) -> None:
    answer = stack.create({**DAILY, **more})
    assert answer["Status"] == "FAILED"
    assert reason in answer["Reason"]
    assert timers() == []


@each_case("member", ["biz_type", "name", "callback"])
def test_a_definition_without_what_it_needs_is_refused(stack: StackOfATeam, member: str) -> None:
    answer = stack.create({name: value for name, value in DAILY.items() if name != member})
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
    for properties in ({}, {"biz_type": ["x"], "name": "n"}, {"biz_type": "", "name": ""}):
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
    assert "set its managed_by to cloudformation:orders-app/Nightly." in answer["Reason"]
    assert timers() == [timer]


def test_two_resources_of_a_stack_cannot_have_one_timer(stack: StackOfATeam) -> None:
    first = stack.create(DAILY)["PhysicalResourceId"]
    assert stack.create(DAILY, "Second")["Status"] == "FAILED"
    assert [timer["timer_id"] for timer in timers()] == [first]


def test_a_timer_that_was_handed_over_belongs_to_the_stack(stack: StackOfATeam) -> None:
    timer = made_by_hand(managed_by="cloudformation:orders-app/Nightly", max_runs=7)
    answer = stack.create(DAILY)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", timer["timer_id"])
    assert timers()[0]["max_runs"] is None
    stack.delete()
    assert timers() == []


def test_a_timer_that_was_taken_from_the_stack_outlives_it(
    stack: StackOfATeam, log: StringIO
) -> None:
    timer_id = stack.create(DAILY)["PhysicalResourceId"]
    call("PATCH", f"/v1/timers/{timer_id}", {"managed_by": "reports-repository"})
    assert "is managed by reports-repository" in stack.update(OTHER | DAILY)["Reason"]
    assert stack.delete()["Status"] == "SUCCESS"
    assert "timer kept" in log.getvalue()
    assert [timer["timer_id"] for timer in timers()] == [timer_id]


def test_a_timer_that_lost_its_owner_is_still_the_stacks(stack: StackOfATeam) -> None:
    """As by a change of a release that does not know owners."""
    timer_id = stack.create(DAILY)["PhysicalResourceId"]
    call("PATCH", f"/v1/timers/{timer_id}", {"managed_by": None})
    assert stack.update(DAILY)["PhysicalResourceId"] == timer_id
    assert timers()[0]["managed_by"] is not None
    call("PATCH", f"/v1/timers/{timer_id}", {"managed_by": None})
    stack.delete()
    assert timers() == []


def test_a_name_that_several_timers_have_is_refused(stack: StackOfATeam) -> None:
    for _ in range(2):
        made_by_hand()
    assert "(timers-share-name, field name)" in stack.create(DAILY)["Reason"]
    assert len(timers()) == 2


# ---------------------------------------------------------------- who may


@pytest.mark.parametrize(
    ("listed", "name", "account", "may"),
    [
        ("orders", "orders-app", "123456789012", True),
        ("shop", "orders-app", "123456789012", False),
        ("orders-app=orders", "orders-app", "123456789012", True),
        ("orders-*=ord*", "orders-app", "123456789012", True),
        ("orders=orders", "orders-app", "123456789012", False),
        ("shop=orders,orders-app=shop", "orders-app", "123456789012", False),
        ("*", "orders-app", "210987654321", False),
    ],
)
def test_a_stack_has_timers_of_the_businesses_that_the_parameter_says(
    storage: Storage,
    send: Callable[[dict[str, Any]], Any],
    monkeypatch: pytest.MonkeyPatch,
    listed: str,
    name: str,
    account: str,
    may: bool,
) -> None:
    monkeypatch.setenv("TIMER_RESOURCE_BUSINESSES", listed)
    process.start_anew(process.clock())
    answer = StackOfATeam(send=send, name=name, account=account).create(DAILY)
    assert (answer["Status"] == "SUCCESS") == may
    assert len(timers()) == may
    if not may:
        assert "TimerResourceBusinesses" in answer["Reason"]
        assert "(not-permitted, field biz_type)" in answer["Reason"]


def test_a_right_that_was_taken_back_keeps_the_timer_and_says_so(
    stack: StackOfATeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.create(DAILY)
    monkeypatch.setenv("TIMER_RESOURCE_BUSINESSES", "shop")
    process.start_anew(process.clock())
    assert "TimerResourceBusinesses" in stack.delete()["Reason"]
    assert names() == ["nightly-close"]


# ---------------------------------------------------------------- the answer


@each_case(
    "url",
    [
        f"http://{HOST}/a",
        "https://evil.example/a",
        "https://amazonaws.com.evil.example/a",
        "https://evilamazonaws.com/a",
        "https://user@s3.amazonaws.com/a",
        "https://s3.amazonaws.com:8443/a",
        "https://s3.amazonaws.com/a b",
        "https://s3.amazonaws.com/a\r\nx: y",
        "https://s3.amazonaws.com\n/a",
        "file:///etc/passwd",
    ],
)
def test_no_answer_goes_elsewhere_and_nothing_is_made_without_one(
    stack: StackOfATeam, storage: Storage, url: str
) -> None:
    event = {**stack.event("Create", "Nightly", DAILY), "ResponseURL": url}
    assert timer_resource.handler(event, Context()) is None
    assert (storage.tries, timers()) == (0, [])


@each_case("event", [{}, [], "x", {"RequestType": "Create"}])
def test_what_is_no_request_of_cloudformation_does_nothing(storage: Storage, event: Any) -> None:
    assert timer_resource.handler(event, Context()) is None
    assert storage.tries == 0


@pytest.mark.parametrize(
    "host", ["x.s3.eu-central-1.amazonaws.com", "x.s3.cn-north-1.amazonaws.com.cn"]
)
def test_answers_go_to_each_partition(stack: StackOfATeam, storage: Storage, host: str) -> None:
    event = {**stack.event("Create", "Nightly", DAILY), "ResponseURL": f"https://{host}/a?b=c%3A"}
    timer_resource.handler(event, Context(lambda: 180_000))
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
    with pytest.raises(AnswerNotTaken):
        timer_resource.handler(event, Context(lambda: 180_000))
    (timer,) = timers()
    assert stack.send(event)["PhysicalResourceId"] == timer["timer_id"]
    assert len(timers()) == 1


def test_a_url_that_has_expired_is_not_tried_again(stack: StackOfATeam, storage: Storage) -> None:
    storage.answers = [403] * 4
    timer_resource.handler(stack.event("Create", "Nightly", DAILY), Context(lambda: 180_000))
    assert (storage.tries, storage.taken) == (1, [])


def test_nothing_of_a_request_is_logged_but_its_names(
    stack: StackOfATeam, storage: Storage, log: StringIO
) -> None:
    secret = {**DAILY, "callback": {**HOOK, "headers": {"authorization": "Bearer s3cret"}}}
    stack.create({**secret, "payload": {"card": "s3cret"}})
    stack.update({**secret, "payload": {}, "payload_json": "s3cret"})
    storage.answers = [500] * 4
    with pytest.raises(AnswerNotTaken):
        timer_resource.handler(stack.delete_event(), Context(lambda: 180_000))
    logged = log.getvalue()
    lines = [json.loads(line) for line in logged.splitlines()]
    names = ("action", "by", "call", "resource", "status", "problem")
    of_stack = ("change", "stack/orders-app")
    assert [tuple(line.get(name) for name in names) for line in lines if "by" in line] == [
        (*of_stack, "cloudformation Create", "Nightly", 200, None),
        (*of_stack, "cloudformation Update", "Nightly", 422, "invalid-field"),
        (*of_stack, "cloudformation Delete", "Nightly", 200, None),
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
    assert "(unavailable)" in answer["Reason"]
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


def test_an_unexpected_error_is_answered_without_its_text(
    stack: StackOfATeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object, **__: object) -> None:
        raise KeyError("s3cret")

    monkeypatch.setattr("duewheel.rules.timers.stack_resource.definition", defect)
    answer = stack.create(DAILY)
    assert answer["Status"] == "FAILED"
    assert "The service failed unexpectedly." in answer["Reason"]
    assert "s3cret" not in answer["Reason"]


def test_a_misconfigured_deployment_is_answered(
    stack: StackOfATeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUCKETS", "none")
    process.start_anew(process.clock())
    answer = stack.send(stack.event("Create", "Nightly", DAILY))
    assert answer["Status"] == "FAILED"
    assert "BUCKETS='none'" in answer["Reason"]


def test_the_function_uses_its_role_alone(stack: StackOfATeam) -> None:
    """Also for near occurrences, which are announced."""
    quick = {"biz_type": "orders", "name": "quick", "every_seconds": 1, "callback": HOOK}
    assert stack.create(quick)["Status"] == "SUCCESS"
    assert stack.update({**quick, "every_seconds": 2})["Status"] == "SUCCESS"
    assert stack.delete()["Status"] == "SUCCESS"
    assert boto3.client("dynamodb").scan(TableName=process.settings().registry_table)["Items"]
