"""Dead tasks of a business over HTTP: listed with their causes, and redriven by an operation."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address, address_of_task
from duewheel.wiring import wheel as wheel_wiring
from duewheel.workflows.tasks.redrive import RedriveTask
from functions.bulk import app as bulk
from tests.functions.conftest import Context, call, created, pages_of
from tests.support.cases import each_case
from tests.support.clock import ManualClock

PATH = "/v1/businesses/orders"
GONE, BUSY = (
    Outcome(Verdict.STOP, "gone", status_code=410),
    Outcome(Verdict.RETRY, "busy, really", status_code=503),
)


def died(clock: ManualClock, *outcomes: Outcome, biz_type: str = "orders") -> list[str]:
    """Tasks with these last outcomes, which died a second apart; returns their ids."""
    ids = []
    for outcome in outcomes:
        clock.advance_ms(1_000)
        task_id = created(biz_type=biz_type)["task_id"]
        die(task_id, outcome, clock.now_ms())
        ids.append(task_id)
    return ids


def die(task_id: str, outcome: Outcome, now_ms: int) -> None:
    tasks = wheel_wiring.tasks()
    task = tasks.get(address_of_task(task_id))
    assert isinstance(task, Task)
    attempt = lifecycle.attempt_made(task, outcome, now_ms, now_ms)
    reason = lifecycle.reason_of_death(outcome, None)
    assert tasks.change(task, lifecycle.dead(task, attempt, reason, now_ms, 30 * 86_400))


def listed(query: str = "") -> list[str]:
    status, page = call("GET", f"{PATH}/dead", query=query)
    assert (status, page["cursor"]) == (200, None), page
    return [task["task_id"] for task in page["tasks"]]


def test_dead_tasks_are_filtered_by_instant_and_cause_of_death(wired: ManualClock) -> None:
    first, second, third = died(wired, GONE, BUSY, GONE)
    died(wired, BUSY, biz_type="devices")
    status, page = call("GET", f"{PATH}/dead")
    assert status == 200
    assert [task["task_id"] for task in page["tasks"]] == [third, second, first]
    assert [task["reason"] for task in page["tasks"]] == [
        "stopped",
        "attempts exhausted",
        "stopped",
    ]
    assert page["tasks"][1]["last_error"] == "busy, really"

    since = page["tasks"][1]["settled_at"]
    assert listed(f"since={since}") == [third, second]
    assert listed(f"until={since}") == [first]
    assert listed("status_code=503") == [second]
    assert listed("last_error=really") == [second]
    assert listed("reason=stopped") == [third, first]
    assert listed("reason=stopped&status_code=503") == []


def test_a_paged_list_of_dead_tasks_leaves_out_later_deaths(wired: ManualClock) -> None:
    ids = died(wired, GONE, GONE, GONE)[::-1]
    status, page = call("GET", f"{PATH}/dead", query="limit=2")
    died(wired, GONE)
    assert call("POST", f"/v1/tasks/{ids[0]}/redrive")[0] == 200
    die(ids[0], GONE, wired.now_ms())
    status, rest = call("GET", f"{PATH}/dead", query=f"limit=2&cursor={page['cursor']}")
    assert status == 200
    assert [task["task_id"] for task in page["tasks"] + rest["tasks"]] == ids
    assert rest["cursor"] is None
    query = f"limit=2&status_code=410&cursor={page['cursor']}"
    assert call("GET", f"{PATH}/dead", query=query)[1]["field"] == "cursor"


def redriven(**chosen: Any) -> dict[str, Any]:
    """The operation, at its end."""
    body = {"biz_type": "orders", "action": "redrive", "filter": {"status": "dead", **chosen}}
    status, operation = call("POST", "/v1/operations", body)
    assert status == 201, operation
    assert operation["filter"] == body["filter"]
    bulk.handler({}, Context(lambda: 900_000))
    return dict(call("GET", f"/v1/operations/{operation['operation_id']}")[1])


def test_an_operation_redrives_the_dead_tasks_that_a_filter_lists(wired: ManualClock) -> None:
    ids = died(wired, GONE, BUSY, GONE, BUSY)
    begun = call("GET", f"/v1/tasks/{ids[1]}")[1]["settled_at"]
    end = call("GET", f"/v1/tasks/{ids[3]}")[1]["settled_at"]

    def still_dead() -> list[int]:
        return [n for n, one in enumerate(ids) if one in listed()]

    assert redriven(until=begun, status_code=410)["changed"] == 1
    assert still_dead() == [1, 2, 3]
    assert redriven(since=begun, until=end, reason="attempts exhausted")["changed"] == 1
    assert still_dead() == [2, 3]
    assert redriven(last_error="really")["changed"] == 1
    assert still_dead() == [2]
    assert redriven(reason="stopped", status_code=503)["changed"] == 0
    operation = redriven()
    assert operation["changed"] == 1
    assert still_dead() == []
    assert call("GET", f"/v1/tasks/{ids[2]}")[1]["changed_by"] == operation["created_by"]


@pytest.mark.exhaustive
def test_a_redrive_by_death_ends_though_its_tasks_die_again(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duewheel.rules.bulk.operation.PAGE_MAX", 2)
    gone = died(wired, *[GONE] * 5)
    (busy,) = died(wired, BUSY)
    redrive = RedriveTask.at
    again: list[str] = []

    def die_again(self: RedriveTask, home: Address, *rest: Any) -> Task:
        task = redrive(self, home, *rest)
        wired.advance_ms(1_000)
        die(task.task_id, GONE, wired.now_ms())
        again.append(task.task_id)
        return task

    monkeypatch.setattr(RedriveTask, "at", die_again)
    assert redriven(reason="stopped")["changed"] == 5
    assert sorted(again) == sorted(gone)
    assert busy in listed()


def test_tasks_that_cannot_be_redriven_are_listed(wired: ManualClock) -> None:
    first, second = died(wired, GONE, GONE)
    tasks = wheel_wiring.tasks()
    task = tasks.get(address_of_task(first))
    assert task is not None
    soon = wired.now_ms() // 1000 + 60
    assert tasks.change(task, replace(task, expires_at=soon, version=task.version + 1))
    operation = redriven()
    assert (operation["changed"], operation["refused"]) == (1, 1)
    _, answer = call("GET", f"/v1/operations/{operation['operation_id']}/refused")
    assert [(one["task_id"], one["problem"]["status"]) for one in answer["refused"]] == [
        (first, 409)
    ]
    assert call("GET", f"/v1/tasks/{second}")[1]["status"] == "pending"


@each_case(
    ("member", "value"),
    [
        ("since", "yesterday"),
        ("until", "2026-01-01T00:00:00"),
        ("status_code", 99),
        ("reason", "tired"),
        ("last_error", ""),
        ("cursor", "abc"),
        ("colour", "red"),
    ],
)
def test_an_invalid_filter_is_refused_with_its_field(
    wired: ManualClock, member: str, value: Any
) -> None:
    body = {"biz_type": "orders", "action": "redrive", "filter": {"status": "dead", member: value}}
    status, problem = call("POST", "/v1/operations", body)
    assert (status, problem["field"]) == (422, f"filter.{member}")
    status, problem = call("GET", f"{PATH}/dead", query=f"{member}={value}")
    assert (status, problem["field"]) == (422, member)


def test_a_range_that_ends_before_it_begins_is_refused(wired: ManualClock) -> None:
    both = {"since": "2027-01-02T00:00:00Z", "until": "2027-01-01T00:00:00Z"}
    body = {"biz_type": "orders", "action": "redrive", "filter": {"status": "dead", **both}}
    assert call("POST", "/v1/operations", body)[1]["field"] == "filter.until"
    query = "since=2027-01-02T00:00:00Z&until=2027-01-01T00:00:00Z"
    assert call("GET", f"{PATH}/dead", query=query)[1]["field"] == "until"


@pytest.mark.exhaustive
def test_dead_tasks_of_a_business_are_spread_over_index_partitions(wired: ManualClock) -> None:
    """One partition accepts a thousand writes a second."""
    ids = died(wired, *[GONE] * 40)
    tasks = wheel_wiring.tasks()
    items = tasks.items_at(map(address_of_task, ids))
    assert len({item["dead_biz"]["S"] for item in items}) >= 10


def ids_by(limit: int) -> list[str]:
    pages = pages_of(f"{PATH}/dead", f"limit={limit}")
    return [task["task_id"] for page in pages for task in page["tasks"]]


def test_dead_tasks_are_listed_page_by_page_the_latest_first(wired: ManualClock) -> None:
    ids = died(wired, *[GONE] * 30)[::-1]
    for limit in (1, 7, 100):
        assert ids_by(limit) == ids, limit


def test_dead_tasks_of_one_millisecond_are_listed_once_each(wired: ManualClock) -> None:
    ids = [created()["task_id"] for _ in range(24)]
    for task_id in ids:
        die(task_id, GONE, wired.now_ms())
    shown = ids_by(5)
    assert len(shown) == len(ids)
    assert set(shown) == set(ids)
