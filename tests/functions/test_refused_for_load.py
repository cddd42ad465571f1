"""Every call while DynamoDB refuses everything for load: to be repeated, and nothing is changed."""

from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from duewheel.wiring import process
from local.aws_faults import Fault, Handle, Reply, answered_by, do
from tests.support.clock import ManualClock
from tests.support.two_businesses import MINE, OPERATOR, REQUESTS, all_that_is_stored, asked, owned

ASK_NOBODY = {
    ("POST", "/v1/timers/upcoming"),
    ("GET", "/v1/health"),
    ("GET", "/v1/openapi.json"),
}


def refuse(request: Any, handle: Handle) -> Reply | None:
    return do(Fault.THROTTLED, request, handle, Random(1))


def test_a_call_that_meets_a_table_that_refuses_is_to_be_repeated_and_changes_nothing(
    wired: ManualClock,
) -> None:
    of = owned(wired, MINE)
    before = all_that_is_stored()
    codes = {}
    for name, request in REQUESTS.items():
        target, body = request(of)
        process.start_anew(wired)  # nothing is known from the call before
        with answered_by(refuse), patch("botocore.endpoint.time", SimpleNamespace(sleep=int)):
            codes[name] = asked(OPERATOR, name[0], target, body).code
    assert {name for name, code in codes.items() if code == 200} == ASK_NOBODY
    assert {code for name, code in codes.items() if name not in ASK_NOBODY} == {503}, codes
    assert all_that_is_stored() == before
