"""Dead tasks of a business over HTTP: listed with their causes, redriven by a filter."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules import cursors
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.stores.tasks import codec
from duewheel.wiring import api as api_wiring
from duewheel.wiring import wheel as wheel_wiring
from tests.functions.conftest import call
from tests.support.cases import each_case
from tests.support.clock import ManualClock

PATH = "/v1/businesses/orders"
GONE, BUSY = (
    Outcome(Verdict.STOP, "gone", status_code=410),
    Outcome(Verdict.RETRY, "busy, really", status_code=503),
)


def died(clock: ManualClock, *outcomes: Outcome, biz_type: str = "orders") -> list[str]:
    """Tasks with these last outcomes, which died a second apart; returns their ids."""
    hook = {"url": "https://receiver.example/"}
    body = {"biz_type": biz_type, "delay_seconds": 600, "callback": hook}
    ids = []
    for outcome in outcomes:
        clock.advance_ms(1_000)
        task_id = call("POST", "/v1/tasks", body)[1]["task_id"]
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


def as_earlier_releases_wrote(*ids: str) -> None:
    """Move the dead tasks into the single partition of their business, where earlier releases wrote
    them."""
    tasks = wheel_wiring.tasks()
    for task_id in ids:
        tasks.client.update_item(
            TableName=tasks.table,
            Key=codec.key(address_of_task(task_id), tasks.buckets),
            UpdateExpression="SET dead_biz = biz_type",
        )


def listed(query: str = "") -> list[str]:
    status, page = call("GET", f"{PATH}/dead", query=query)
    assert (status, page["cursor"]) == (200, None), page
    return [task["task_id"] for task in page["tasks"]]


def test_dead_tasks_are_filtered_by_instant_and_cause_of_death(
    wired: ManualClock,
) -> None:
    first, second, third = died(wired, GONE, BUSY, GONE)
    died(wired, BUSY, biz_type="devices")
    status, page = call("GET", f"{PATH}/dead")
    assert status == 200
    assert [task["task_id"] for task in page["tasks"]] == [first, second, third]
    assert [task["reason"] for task in page["tasks"]] == [
        "stopped",
        "attempts exhausted",
        "stopped",
    ]
    assert page["tasks"][1]["last_error"] == "busy, really"

    since = page["tasks"][1]["settled_at"]
    assert listed(f"since={since}") == [second, third]
    assert listed(f"until={since}") == [first]
    assert listed("status_code=503") == [second]
    assert listed("last_error=really") == [second]
    assert listed("reason=stopped") == [first, third]
    assert listed("reason=stopped&status_code=503") == []


def test_a_paged_list_of_dead_tasks_leaves_out_later_deaths(
    wired: ManualClock,
) -> None:
    ids = died(wired, GONE, GONE, GONE)
    status, page = call("GET", f"{PATH}/dead", query="limit=2")
    died(wired, GONE)
    status, rest = call("GET", f"{PATH}/dead", query=f"limit=2&cursor={page['cursor']}")
    assert status == 200
    assert [task["task_id"] for task in page["tasks"] + rest["tasks"]] == ids
    assert rest["cursor"] is None
    query = f"limit=2&status_code=410&cursor={page['cursor']}"
    assert call("GET", f"{PATH}/dead", query=query)[1]["field"] == "cursor"


@pytest.mark.exhaustive
def test_a_redrive_follows_the_filter_page_by_page(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duewheel.workflows.tasks.dead_tasks.REDRIVEN_MAX", 2)
    gone = died(wired, *[GONE] * 5)
    (busy,) = died(wired, BUSY)
    redriven, cursor = 0, None
    for _ in range(3):
        body = {"reason": "stopped"} | ({} if cursor is None else {"cursor": cursor})
        status, answer = call("POST", f"{PATH}/redrive", body)
        assert (status, answer["refused"]) == (200, [])
        redriven += answer["redriven"]
        # They die again at once, and are not redriven a second time.
        for task_id in gone[:redriven]:
            wired.advance_ms(1_000)
            if call("GET", f"/v1/tasks/{task_id}")[1]["status"] == "pending":
                die(task_id, GONE, wired.now_ms())
        if (cursor := answer["cursor"]) is None:
            break
    assert (redriven, cursor) == (5, None)
    assert call("GET", f"/v1/tasks/{busy}")[1]["status"] == "dead"
    assert call("POST", f"{PATH}/redrive", {"since": rfc3339(wired.now_ms())})[1]["redriven"] == 1


def test_tasks_that_cannot_be_redriven_are_returned(wired: ManualClock) -> None:
    first, second = died(wired, GONE, GONE)
    tasks = wheel_wiring.tasks()
    task = tasks.get(address_of_task(first))
    assert task is not None
    soon = wired.now_ms() // 1000 + 60
    assert tasks.change(task, replace(task, expires_at=soon, version=task.version + 1))
    status, answer = call("POST", f"{PATH}/redrive", {})
    assert (status, answer["redriven"], answer["cursor"]) == (200, 1, None)
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
    status, problem = call("POST", f"{PATH}/redrive", {member: value})
    assert (status, problem["field"]) == (422, member)
    status, problem = call("GET", f"{PATH}/dead", query=f"{member}={value}")
    assert (status, problem["field"]) == (422, member)


def test_a_range_that_ends_before_it_begins_is_refused(wired: ManualClock) -> None:
    both = {"since": "2027-01-02T00:00:00Z", "until": "2027-01-01T00:00:00Z"}
    assert call("POST", f"{PATH}/redrive", both)[1]["field"] == "until"


@pytest.mark.exhaustive
def test_dead_tasks_of_a_business_are_spread_over_index_partitions(wired: ManualClock) -> None:
    """One partition accepts a thousand writes a second."""
    ids = died(wired, *[GONE] * 40)
    tasks = wheel_wiring.tasks()
    items = tasks.items_at(map(address_of_task, ids))
    assert len({item["dead_biz"]["S"] for item in items}) >= 10


def pages_of(limit: int) -> list[list[str]]:
    pages, query = [], f"limit={limit}"
    while True:
        status, page = call("GET", f"{PATH}/dead", query=query)
        assert status == 200, page
        pages.append([task["task_id"] for task in page["tasks"]])
        if page["cursor"] is None:
            return pages
        query = f"limit={limit}&cursor={page['cursor']}"


def test_dead_tasks_of_earlier_releases_are_listed_in_order(
    wired: ManualClock,
) -> None:
    ids = died(wired, *[GONE] * 30)
    as_earlier_releases_wrote(*ids[:20:2])
    for limit in (1, 7, 100):
        assert [task_id for page in pages_of(limit) for task_id in page] == ids, limit


def test_dead_tasks_of_one_millisecond_are_listed_once_each(wired: ManualClock) -> None:
    hook = {"url": "https://receiver.example/"}
    body = {"biz_type": "orders", "delay_seconds": 600, "callback": hook}
    ids = [call("POST", "/v1/tasks", body)[1]["task_id"] for _ in range(24)]
    for task_id in ids:
        die(task_id, GONE, wired.now_ms())
    as_earlier_releases_wrote(*ids[::3])
    shown = [task_id for page in pages_of(5) for task_id in page]
    assert len(shown) == len(ids)
    assert set(shown) == set(ids)


@pytest.mark.exhaustive
def test_dead_tasks_of_earlier_releases_are_redriven_by_a_filter(wired: ManualClock) -> None:
    ids = died(wired, *[GONE] * 12)
    as_earlier_releases_wrote(*ids[::2])
    status, done = call("POST", f"{PATH}/redrive", {"status_code": 410})
    assert (status, done["redriven"], done["refused"]) == (200, 12, [])
    tasks = wheel_wiring.tasks()
    assert not [item for item in tasks.items_at(map(address_of_task, ids)) if "dead_biz" in item]


def test_a_cursor_of_an_earlier_release_keeps_its_position(wired: ManualClock) -> None:
    ids = died(wired, *[GONE] * 9)
    as_earlier_releases_wrote(*ids[:6])
    fourth = wheel_wiring.tasks().get(address_of_task(ids[3]))
    assert fourth is not None
    question = ("dead", "orders", None, None, None, None, None)
    position = f"{wired.now_ms()} {fourth.settled_ms} {fourth.home.name}"
    cursor = cursors.sealed(position, question, api_wiring.cursor_secret())
    assert listed(f"cursor={cursor}") == ids[4:]
