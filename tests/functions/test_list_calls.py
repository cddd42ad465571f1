"""GET /v1/tasks over HTTP."""

from typing import Any

import pytest

from duewheel.wiring import process
from tests.functions.conftest import call, created
from tests.support.cases import each_case
from tests.support.clock import ManualClock


def listed(query: str) -> dict[str, Any]:
    status, answer = call("GET", "/v1/tasks", query=query)
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


def test_a_list_shows_tasks_in_the_form_of_a_read(wired: ManualClock) -> None:
    tasks = [created(delay_seconds=seconds, payload={"n": seconds}) for seconds in (30, 10, 20)]
    tasks.sort(key=lambda task: str(task["due_at"]))

    whole = listed("biz_type=orders")
    assert whole == {
        "tasks": tasks,
        "cursor": None,
        "looked_at": {"records": 3, "businesses": 1},
    }
    assert listed("biz_type=orders&order=desc")["tasks"] == tasks[::-1]
    assert listed(f"biz_type=orders&due_from={tasks[1]['due_at']}")["tasks"] == tasks[1:]
    assert listed(f"biz_type=orders&due_to={tasks[1]['due_at']}")["tasks"] == tasks[:1]
    dead = listed("biz_type=orders&status=dead")
    assert (dead["tasks"], dead["cursor"], dead["looked_at"]["records"]) == ([], None, 0)


def test_a_cursor_is_valid_in_any_process_of_the_deployment(wired: ManualClock) -> None:
    tasks = [created(delay_seconds=seconds) for seconds in (10, 20)]
    first = listed("biz_type=orders&limit=1")
    process.start_anew(wired)
    second = listed(f"biz_type=orders&limit=1&cursor={first['cursor']}")

    assert [*first["tasks"], *second["tasks"]] == tasks


def test_an_instant_written_in_another_way_is_the_same_query(wired: ManualClock) -> None:
    tasks = [created(delay_seconds=seconds) for seconds in (10, 20)]
    first = listed("biz_type=orders&limit=1&due_to=2040-01-01T00:00:00Z")
    cursor = first["cursor"]
    second = listed(f"biz_type=orders&due_to=2040-01-01T02:00:00%2B02:00&cursor={cursor}")

    assert second["tasks"] == tasks[1:]


@each_case(
    ("query", "field"),
    [
        ("biz_type=", "biz_type"),
        ("biz_type=orders&limit=0", "limit"),
        ("biz_type=orders&cursor=", "cursor"),
        ("biz_type=orders&cursor=abc", "cursor"),
        ("biz_type=orders&offset=10", "offset"),
    ],
)
def test_an_invalid_query_is_refused_with_its_parameter(
    wired: ManualClock, query: str, field: str
) -> None:
    status, problem = call("GET", "/v1/tasks", query=query)
    assert status == 422
    assert problem["type"] == "urn:duewheel:problem:invalid-field"
    assert problem["field"] == field


def test_without_the_list_index_the_problem_shows_how_to_enable_it(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIST_INDEX", "off")
    status, problem = call("GET", "/v1/tasks", query="biz_type=orders")

    assert (status, problem["type"]) == (409, "urn:duewheel:problem:list-index-off")
    assert "ListIndex=on" in problem["detail"]


def test_another_bucket_count_is_reported_instead_of_an_empty_list(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    created()
    monkeypatch.setenv("BUCKETS", "5000")
    process.start_anew(wired)
    status, problem = call("GET", "/v1/tasks", query="biz_type=orders")

    assert (status, problem["type"]) == (500, "urn:duewheel:problem:misconfigured")
