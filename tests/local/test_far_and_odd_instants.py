"""Difficult instants: ten years ahead, and the hour that a clock shows twice."""

import os
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import ANY

import pytest

from local.stack import LocalStack
from tests.support.service import Service, ms_of

TEN_YEARS_SECONDS = 3_653 * 86_400


@pytest.fixture
def service() -> Iterator[Service]:
    """A stack whose clock is at a whole second."""
    with LocalStack(frozen=True) as stack:
        service = Service(stack.url)
        service.advance((1_000 - service.now_ms() % 1_000) / 1_000)
        yield service


def change(service: Service, task: dict[str, Any], **fields: Any) -> dict[str, Any]:
    status, changed = service.call("PATCH", f"/v1/tasks/{task['task_id']}", fields)
    assert status == 200, changed
    return changed


def listed(service: Service, **parameters: str) -> list[str]:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    status, page = service.call("GET", f"/v1/tasks?biz_type=orders&{query}")
    assert (status, page["cursor"]) == (200, None), page
    return [task["task_id"] for task in page["tasks"]]


@pytest.mark.exhaustive
def test_a_task_due_in_ten_years_is_kept_changed_and_called_in_its_millisecond(
    service: Service,
) -> None:
    latest_ms = service.now_ms() + TEN_YEARS_SECONDS * 1_000
    kept = service.create("kept", due_ms=latest_ms)
    moved = service.create("moved", due_ms=latest_ms, key="order-17")
    cancelled = service.create("cancelled", delay_seconds=TEN_YEARS_SECONDS)
    pushed = service.create("pushed", delay_seconds=60)
    far = [kept, moved, cancelled]
    assert {task["due_at"] for task in far} == {kept["due_at"]}
    effective = {"effective_callback": ANY}  # only of a task that is read alone
    assert [service.task(task) for task in far] == [{**task, **effective} for task in far]
    assert sorted(listed(service, due_from=kept["due_at"])) == sorted(t["task_id"] for t in far)

    change(service, moved, due_ms=latest_ms - 250, payload="moved")
    assert change(service, pushed, due_at=kept["due_at"])["due_at"] == kept["due_at"]
    path = "/v1/businesses/orders/tasks/order-17"
    assert service.call("GET", path)[1]["payload"] == "moved"
    assert service.call("DELETE", f"/v1/tasks/{cancelled['task_id']}")[0] == 200
    assert service.advance(TEN_YEARS_SECONDS - 1) == 0
    assert service.advance(1) == 3

    assert service.received_at_ms("moved") == [latest_ms - 250]
    assert service.received_at_ms("kept") == service.received_at_ms("pushed") == [latest_ms]
    assert service.received("cancelled") == []
    for task in (kept, moved, pushed):
        assert (service.task(task)["status"], service.task(task)["lateness_ms"]) == ("delivered", 0)


# Rules as POSIX writes them: they need no time zone database on the machine.
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
NEW_YORK = "EST5EDT,M3.2.0,M11.1.0"


@pytest.fixture(
    params=[
        (BERLIN, "2026-10-25T02:30:00", "+02:00", "+01:00", "2026-10-25T01:30:00Z"),
        (NEW_YORK, "2026-11-01T01:30:00", "-04:00", "-05:00", "2026-11-01T06:30:00Z"),
    ],
    ids=["Berlin", "New York"],
)
def repeated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An hour that a zone's clocks show twice, in a process with that time zone. The stack starts
    half an hour before the first half past of that hour."""
    zone, wall, summer, winter, second_time = request.param
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        with LocalStack(start_ms=ms_of(wall + summer) - 1_800_000, frozen=True) as stack:
            yield Service(stack.url), wall + summer, wall + winter, second_time
    finally:
        if before is None:
            monkeypatch.delenv("TZ")
        else:
            monkeypatch.setenv("TZ", before)
        time.tzset()


@pytest.mark.exhaustive
def test_the_hour_that_clocks_show_twice_lasts_two_hours(
    repeated: tuple[Service, str, str, str],
) -> None:
    service, summer, winter, in_utc = repeated
    assert [time.localtime(ms_of(at) / 1_000).tm_isdst for at in (summer, winter)] == [1, 0]
    assert time.localtime(ms_of(summer) / 1_000)[:6] == time.localtime(ms_of(winter) / 1_000)[:6]

    first = service.create("first", due_at=summer)
    second = service.create("second", due_at=winter)
    same = service.create("same", due_at=in_utc)
    assert ms_of(second["due_at"]) - ms_of(first["due_at"]) == 3_600_000
    assert second["due_at"] == same["due_at"]
    assert first["created_at"].endswith("Z")
    assert ms_of(first["created_at"]) == service.now_ms()

    assert listed(service, due_to=winter) == [first["task_id"]]
    assert listed(service, due_from=summer, due_to=in_utc) == [first["task_id"]]
    both = sorted(task["task_id"] for task in (second, same))
    assert sorted(listed(service, due_from=winter)) == sorted(listed(service, due_from=in_utc))
    assert sorted(listed(service, due_from=winter)) == both

    assert service.advance(1_800) == 1
    assert service.received_at_ms("first") == [ms_of(summer)]
    assert service.advance(3_600) == 2
    assert service.received_at_ms("second") == service.received_at_ms("same") == [ms_of(winter)]
    assert service.task(first)["lateness_ms"] == service.task(second)["lateness_ms"] == 0
    (headers,) = [request["headers"] for request in service.received("second")]
    assert headers["webhook-timestamp"] == str(ms_of(winter) // 1_000)
    assert headers["duewheel-due-at"] == second["due_at"]
