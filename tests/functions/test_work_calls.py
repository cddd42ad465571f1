"""The calls by which a receiver reports on its work: by the completion token alone."""

from typing import Any

import pytest

from duewheel.rules.callbacks.payload_encoding import (
    ATTEMPT,
    TOKEN_HEADER,
    AttemptName,
    token_of,
)
from duewheel.wiring import process
from tests.support.cases import each_case
from tests.support.clock import ManualClock
from tests.support.two_businesses import (
    MINE,
    OPERATOR,
    THEIRS,
    Asked,
    Owned,
    all_that_is_stored,
    asked,
    owned,
)

KINDS = ("complete", "fail", "progress")


@pytest.fixture
def mine(wired: ManualClock) -> Owned:
    return owned(wired, MINE)


def token_for(task_id: str, number: int = 1) -> str:
    return token_of(task_id, AttemptName(0, number), process.completion_secret())


def report(kind: str, task_id: str, given: str | None, body: Any = None) -> Asked:
    """As a receiver, whom no one has identified."""
    headers = {} if given is None else {TOKEN_HEADER: given}
    return asked("", "POST", f"/v1/tasks/{task_id}/{kind}", body, **headers)


def test_a_receiver_needs_the_token_and_nothing_else(mine: Owned) -> None:
    given = token_for(mine.running_id)
    moved = report("progress", mine.running_id, given, {"note": "half"})
    assert (moved.status, moved.body["status"]) == (200, "pending")
    assert moved.body["until"] is not None
    ended = report("complete", mine.running_id, given, {"result": "done"})
    assert (ended.status, ended.body["status"], ended.body["until"]) == (200, "delivered", None)
    assert "payload" not in ended.text
    assert report("complete", mine.running_id, given).status == 200
    late = report("fail", mine.running_id, given)
    assert (late.status, late.body["type"]) == (409, "urn:duewheel:problem:not-running")


def test_a_wrong_token_changes_nothing_and_reveals_nothing(mine: Owned) -> None:
    before = all_that_is_stored()
    right = token_for(mine.running_id)
    wrong = [
        None,
        "",
        "x",
        right[:-1],
        right + "A",
        "é",
        "\ud800",
        "0.1",
        "٣.1.x",
        "a" * 5_000,
        token_for(mine.task_id),
    ]
    unknown = "AQGjGGV3wAAA5Hw_zdeh9T_ceGnX"
    for kind in KINDS:
        for given in wrong:
            answer = report(kind, mine.running_id, given)
            assert answer.status == 403, given
            assert answer == report(kind, unknown, given)
    assert all_that_is_stored() == before


@each_case("kind", KINDS)
def test_a_callback_with_its_own_token_reports_nothing(mine: Owned, kind: str) -> None:
    """A callback that leads to this call has the right token, and the mark of every callback."""
    before = all_that_is_stored()
    marked = {TOKEN_HEADER: token_for(mine.running_id), ATTEMPT: "1"}
    answer = asked("", "POST", f"/v1/tasks/{mine.running_id}/{kind}", **marked)
    assert (answer.status, answer.body["type"]) == (403, "urn:duewheel:problem:callback-refused")
    assert all_that_is_stored() == before


def test_a_right_on_the_business_is_no_token(mine: Owned) -> None:
    for kind in KINDS:
        target = f"/v1/tasks/{mine.running_id}/{kind}"
        assert asked(f"duewheel-admin-{MINE}", "POST", target).status == 403


def test_a_token_of_another_attempt_is_answered_that_this_one_is_over(mine: Owned) -> None:
    for kind in KINDS:
        answer = report(kind, mine.running_id, token_for(mine.running_id, 2))
        assert (answer.status, answer.body["type"]) == (409, "urn:duewheel:problem:not-running")


def test_progress_before_the_answer_to_the_callback_is_recorded_has_to_be_repeated(
    mine: Owned,
) -> None:
    assert report("progress", mine.task_id, token_for(mine.task_id)).status == 503


def test_a_body_that_is_not_allowed_names_its_field_and_changes_nothing(mine: Owned) -> None:
    before = all_that_is_stored()
    given = token_for(mine.running_id)

    @each_case(
        ("kind", "body", "field"),
        [
            ("complete", {"result": 7}, "result"),
            ("complete", {"result": "é" * 1_025}, "result"),
            ("complete", {"reslut": "x"}, "reslut"),
            ("fail", {"reason": ""}, "reason"),
            ("fail", {"reason": "x" * 1_001}, "reason"),
            ("fail", {"retry": "no"}, "retry"),
            ("fail", {"retry_after_seconds": -1}, "retry_after_seconds"),
            ("progress", {"note": "x" * 121}, "note"),
            ("progress", {"complete_within_seconds": 0}, "complete_within_seconds"),
            ("progress", {"complete_within_seconds": 86_401}, "complete_within_seconds"),
            ("progress", {"complete_within_seconds": 1.5}, "complete_within_seconds"),
        ],
    )
    def check(kind: str, body: Any, field: str) -> None:
        answer = report(kind, mine.running_id, given, body)
        assert (answer.status, answer.body.get("field")) == (422, field), answer

    check()
    assert report("complete", mine.running_id, given, {"result": "x" * 20_000}).status == 413
    assert all_that_is_stored() == before


def test_the_token_of_one_business_ends_no_task_of_another(mine: Owned, wired: ManualClock) -> None:
    theirs = owned(wired, THEIRS)
    assert report("complete", theirs.running_id, token_for(mine.running_id)).status == 403
    assert asked(OPERATOR, "GET", f"/v1/tasks/{theirs.running_id}").body["status"] == "pending"


def test_a_running_task_shows_since_and_until_when(mine: Owned) -> None:
    report("progress", mine.running_id, token_for(mine.running_id), {"note": "half"})
    body = asked(OPERATOR, "GET", f"/v1/tasks/{mine.running_id}").body
    assert set(body["running"]) == {"attempt", "since", "until", "note"}
    assert (body["running"]["attempt"], body["running"]["note"]) == (1, "half")
    assert body["next_at"] == body["running"]["until"]
    assert body["waiting"]["reason"] == "running"
