"""Every call while DynamoDB throttles all requests: it changes no item, and may be repeated."""

from random import Random
from typing import Any
from unittest.mock import patch

from duewheel.stores.dynamodb import Throttled
from duewheel.stores.tasks.keys import KeyStore
from duewheel.wiring import process
from local.chaos.aws_faults import Fault, Handle, Reply, answered_by, do
from tests.support.clock import ManualClock
from tests.support.conflicts import conflicts, of_homes, of_keys
from tests.support.two_businesses import (
    HOOK,
    MINE,
    OPERATOR,
    REQUESTS,
    all_that_is_stored,
    asked,
    owned,
)

ASK_NOBODY = {
    ("POST", "/v1/timers/upcoming"),
    ("GET", "/v1/health"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/api/openapi.json"),
}


def refuse(request: Any, handle: Handle) -> Reply | None:
    return do(Fault.THROTTLED, request, handle, Random(1))


def test_a_call_on_throttled_tables_changes_no_item_and_reads_answer_503(
    wired: ManualClock,
) -> None:
    of = owned(wired, MINE)
    before = all_that_is_stored()
    codes = {}
    for name, request in REQUESTS.items():
        target, body = request(of)
        process.start_anew(wired)  # with empty caches
        with answered_by(refuse):
            codes[name] = asked(OPERATOR, name[0], target, body).code
    assert {name for name, code in codes.items() if code == 200} == ASK_NOBODY
    reads = {name for name in codes if name[0] == "GET"} - ASK_NOBODY
    assert {codes[name] for name in reads} == {503}, codes
    assert set(codes.values()) <= {200, 500, 503}
    assert all_that_is_stored() == before


def test_a_batch_carried_out_in_part_is_not_answered_as_unwritten(wired: ManualClock) -> None:
    """A caller would repeat it without an idempotency key, which creates tasks twice."""
    of = owned(wired, MINE)
    plain = {"biz_type": of.biz_type, "delay_seconds": 60, "callback": HOOK}
    with patch.object(KeyStore, "read", side_effect=Throttled("refused")):
        answer = asked(
            OPERATOR, "POST", "/v1/tasks/batch", {"tasks": [plain, plain, {**plain, "key": "17"}]}
        )
    assert answer.status == 200
    *made, refused = answer.body["results"]
    assert refused["status"] == 503
    for result in made:
        path = f"/v1/tasks/{result['task']['task_id']}"
        assert asked(OPERATOR, "GET", path).status == 200


def test_a_cancel_is_a_200_if_its_task_was_written_and_else_a_503(wired: ManualClock) -> None:
    """A transaction of another writer on the key or on the task conflicts with the cancel."""
    of = owned(wired, MINE)
    keyed = {"biz_type": of.biz_type, "delay_seconds": 600, "callback": HOOK, "key": "order-18"}
    made = asked(OPERATOR, "POST", "/v1/tasks", keyed).body
    path = f"/v1/tasks/{made['task_id']}"
    with conflicts(of_homes):
        assert asked(OPERATOR, "DELETE", path).status == 503
    with conflicts(of_keys) as met:
        assert asked(OPERATOR, "DELETE", path).status == 200
    assert met.refused > 0
    assert asked(OPERATOR, "GET", path).body["status"] == "cancelled"
