"""Expired items are deleted as the stack's clock moves; items that are still needed are not."""

from collections.abc import Iterator

import pytest

from local.stack import LocalStack
from tests.support.service import Service

DAY = 86_400


@pytest.fixture
def service() -> Iterator[Service]:
    with LocalStack(frozen=True) as stack:
        yield Service(stack.url)


@pytest.mark.exhaustive
def test_the_time_to_live_deletes_ended_tasks_and_no_pending_ones(service: Service) -> None:
    for biz_type in ("orders", "paused"):
        service.call("PUT", f"/v1/businesses/{biz_type}", {"retention_days": 1})
    done = service.create("done", delay_seconds=60)
    keyed = service.create("keyed", delay_seconds=60, key="done")
    far = service.create("far", delay_seconds=40 * DAY, key="far")
    parked = service.create("parked", delay_seconds=60, biz_type="paused", key="parked")
    service.call("POST", "/v1/businesses/paused/pause")
    assert service.advance(30 * DAY) == 2
    for task in (done, keyed):
        assert service.call("GET", f"/v1/tasks/{task['task_id']}")[0] == 404
    assert service.call("GET", "/v1/businesses/orders/tasks/done")[0] == 404
    assert service.task(far)["status"] == "pending"
    assert service.call("GET", "/v1/businesses/orders/tasks/far")[0] == 200
    assert service.task(parked)["parked"]
    service.call("POST", "/v1/businesses/paused/resume")
    service.advance(60)
    assert len(service.received("parked")) == 1
    assert service.advance(10 * DAY) == 1
    assert len(service.received("far")) == 1


@pytest.mark.soak
def test_a_timer_and_its_chain_outlive_its_expired_runs(service: Service) -> None:
    service.call("PUT", "/v1/businesses/orders", {"retention_days": 1})
    new = {
        **service.new_task("timer"),
        "name": "each day",
        "every_seconds": DAY,
    }
    status, timer = service.call("POST", "/v1/timers", new)
    assert status == 201
    service.advance(10 * DAY + 60)
    assert len(service.received("timer")) in (10, 11)
    runs = service.call("GET", f"/v1/timers/{timer['timer_id']}/runs?status=delivered")[1]
    assert 0 < len(runs["tasks"]) < 5
