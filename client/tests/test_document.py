"""The client's values and requests have the members of the API document. The client imports no code
of the service."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from duewheel import requests, values
from duewheel.members import Value

DOCUMENT = Path(__file__).parents[2] / "layers/core/duewheel/interface/openapi.json"
SCHEMAS: dict[str, Any] = json.loads(DOCUMENT.read_text("utf-8"))["components"]["schemas"]
CALLED = {
    "BusinessDeleted": "BusinessDeletion",
    "Counts": "Minute",
    "Grant": "ShownGrant",
    "PrefixCancelled": "CancelledKeys",
    "RefusedTask": "RefusedItem",
    "WorkState": "Work",
}
IN_THE_DOCUMENT = {"begin": "from", "end": "to", "delay": "delay_seconds"}
IN_THE_DOCUMENT |= {"shift": "shift_seconds"}
IN_THE_DOCUMENT |= {"expires_after": "expires_after_seconds", "tolerance": "tolerance_seconds"}
LEFT_TO_PAGES = {"cursor"}  # the client follows cursors by itself
ANSWERS = [
    kind for kind in vars(values).values() if isinstance(kind, type) and issubclass(kind, Value)
]
REQUESTS = {
    requests.BusinessSettings: "BusinessChange",
    requests.TimerChange: "TimerChange",
    requests.Schedule: "Preview",
}


def members(schema: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMAS[schema]["properties"]
    return found


@pytest.mark.parametrize("kind", [one for one in ANSWERS if one is not Value])
def test_a_value_has_the_members_of_the_answer(kind: type[Value]) -> None:
    schema = CALLED.get(kind.__name__, kind.__name__)
    known = members("IssuedApiKey" if schema == "ApiKey" else schema)
    mine = {IN_THE_DOCUMENT.get(one.name, one.name) for one in fields(kind)} - {"extra"}
    assert mine - LEFT_TO_PAGES == known.keys() - LEFT_TO_PAGES


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_names_the_members_of_the_body(kind: type) -> None:
    known = members(REQUESTS[kind])
    not_of_a_schedule = {"count", "from"} if kind is requests.Schedule else set()
    assert set(get_type_hints(kind)) == known.keys() - not_of_a_schedule


def test_a_new_task_names_the_members_of_the_body() -> None:
    mine = {IN_THE_DOCUMENT.get(one.name, one.name) for one in fields(requests.NewTask)}
    assert mine == members("NewTask").keys()


def test_a_filter_of_tasks_has_the_members_and_actions_of_the_body() -> None:
    assert set(get_type_hints(requests.OperationFilter)) == members("Filter").keys()
    assert set(get_args(requests.Action)) == set(members("NewOperation")["action"]["enum"])
    assert set(get_args(requests.OperationState)) == set(members("Operation")["state"]["enum"])


def test_a_retry_names_the_members_of_both_its_forms() -> None:
    both = members("ExponentialRetry").keys() | members("RetryLadder").keys()
    assert set(get_type_hints(requests.Retry)) == both


def test_literals_have_the_values_of_the_document() -> None:
    """For each member of a request with an enumeration of values."""
    for kind, schema in REQUESTS.items():
        for name, hint in get_type_hints(kind).items():
            words = {word for one in get_args(hint) for word in get_args(one)}
            if words and all(isinstance(word, str) for word in words):
                known = members(schema)[name]
                assert words == set(known.get("enum", known.get("oneOf", [{}])[0].get("enum"))), (
                    name
                )
