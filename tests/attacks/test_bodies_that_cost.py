"""Bodies that are made to keep the api function busy: what is read of them is counted."""

import pytest

from duewheel.rules import json_source
from duewheel.rules.json_source import MEMBERS_MAX
from tests.attacks.conftest import TASK, attack, every_call, filled, problem
from tests.support.clock import ManualClock
from tests.support.two_businesses import asked

MANY = 5_000
MEMBERS = ",".join(f'"m{number}":0' for number in range(MANY))
PREVIEW = "/v1/timers/upcoming"  # needs no right to write, and takes 256 KiB


@pytest.fixture
def values_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The positions of the values that were read."""
    read: list[int] = []
    value_at = json_source._value_at

    def count(text: str, at: int) -> tuple[json_source.Source, int]:
        read.append(at)
        return value_at(text, at)

    monkeypatch.setattr(json_source, "_value_at", count)
    return read


def test_of_a_caller_who_may_only_read_no_body_is_looked_into(
    wired: ManualClock, values_read: list[int]
) -> None:
    changing = [call for call in every_call() if call[0] != "GET" and call[1] != PREVIEW]
    for method, path in changing:
        answer = asked("duewheel-read", method, filled(path), {"tasks": [{}] * 400})
        assert answer.code in (400, 403, 404), (method, path)
    assert asked("duewheel-read", "POST", "/v1/tasks/batch", {"tasks": [{}]}).code == 403
    assert values_read == []


@pytest.mark.parametrize(
    "body",
    [
        f"{{{MEMBERS}}}",
        f'{{"tasks":[{{{MEMBERS}}}]}}',
        f'{{"tasks":[{{"biz_type":"orders","delay_seconds":1,"callback":{{{MEMBERS}}}}}]}}',
        f'{{"tasks":[{{"biz_type":"orders","delay_seconds":1,"retry":{{{MEMBERS}}}}}]}}',
    ],
)
def test_of_an_object_with_many_members_the_first_are_read(
    wired: ManualClock, values_read: list[int], body: str
) -> None:
    attack("POST", "/v1/tasks/batch", body)
    assert len(values_read) <= 2 * MEMBERS_MAX + 20  # a name and a value each


def test_the_refusal_names_the_object(wired: ManualClock) -> None:
    assert problem("POST", "/v1/tasks", f"{{{MEMBERS}}}") == (400, "malformed-body")
    payload = {"payload": {f"m{number}": 0 for number in range(MANY)}}
    assert attack("POST", "/v1/tasks", {**TASK, **payload})[0] == 201
