"""Bodies that are made to keep the api function busy: the decoded objects are counted."""

from typing import Any

import pytest

from duewheel.rules import fields
from tests.attacks.conftest import TASK, attack, every_call, filled, problem
from tests.support.cases import each_case
from tests.support.clock import ManualClock
from tests.support.two_businesses import asked

MANY = 5_000
MEMBERS = ",".join(f'"m{number}":0' for number in range(MANY))
PREVIEW = "/v1/timers/upcoming"  # needs no write right, and accepts 256 KiB


@pytest.fixture
def objects_read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The decoded objects, by their type."""
    read: list[Any] = []
    any_decoder = fields._decoder

    def decoder(kind: Any) -> Any:
        read.append(kind)
        return any_decoder(kind)

    monkeypatch.setattr(fields, "_decoder", decoder)
    return read


def test_no_body_of_a_caller_with_only_the_read_right_is_decoded(
    wired: ManualClock, objects_read: list[Any]
) -> None:
    changing = [call for call in every_call() if call[0] != "GET" and call[1] != PREVIEW]
    for method, path in changing:
        answer = asked("duewheel-read", method, filled(path), {"tasks": [{}] * 400})
        assert answer.code in (400, 403, 404), (method, path)
    assert asked("duewheel-read", "POST", "/v1/tasks/batch", {"tasks": [{}]}).code == 403
    assert objects_read == []


@pytest.mark.parametrize(
    "body",
    [
        f"{{{MEMBERS}}}",
        f'{{"tasks":[{{{MEMBERS}}}]}}',
        f'{{"tasks":[{{"biz_type":"orders","delay_seconds":1,"callback":{{{MEMBERS}}}}}]}}',
        f'{{"tasks":[{{"biz_type":"orders","delay_seconds":1,"retry":{{{MEMBERS}}}}}]}}',
    ],
)
def test_an_object_with_many_members_is_decoded_once_by_the_decoder(
    wired: ManualClock, objects_read: list[Any], body: str
) -> None:
    attack("POST", "/v1/tasks/batch", body)
    assert len(objects_read) <= 4  # the batch, a task, and the type and members of its callback


def test_a_payload_may_have_as_many_members_as_its_size_allows(wired: ManualClock) -> None:
    assert problem("POST", "/v1/tasks", f"{{{MEMBERS}}}") == (422, "invalid-field")
    payload = {"payload": {f"m{number}": 0 for number in range(MANY)}}
    assert attack("POST", "/v1/tasks", {**TASK, **payload})[0] == 201


def test_whole_numbers_written_as_floats_are_converted_together(
    wired: ManualClock, objects_read: list[Any]
) -> None:
    body = f'{{"retry_statuses":[{",".join(["404.0"] * MANY)}]}}'
    assert problem("PUT", "/v1/businesses/orders", body) == (422, "invalid-field")
    assert len(objects_read) <= 3  # the body, the body again, and the elements of the list


@each_case("end", ["$.nope", "$.retry", "$.retry.nope", "$[0]", "$.payload[...].x"])
def test_a_name_that_looks_like_an_error_of_the_decoder_is_refused_as_unknown(
    wired: ManualClock, end: str
) -> None:
    body = {**TASK, f"x` - at `{end}": 1}
    assert problem("POST", "/v1/tasks", body) == (422, "invalid-field")
