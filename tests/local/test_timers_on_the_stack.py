"""Timers on the whole stack: planned, called and shown, by both interfaces."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.client import BaseClient

from duewheel.rules.timers.planning import PLANNED_MAX
from duewheel.rules.wheel.timing import AHEAD_SECONDS, RUN_EVERY_SECONDS
from local.stack import LocalStack
from tests.support.service import Service

DEF = "/api/timer/v1/def"


@pytest.fixture(scope="module")
def running() -> Iterator[LocalStack]:
    with LocalStack(frozen=True) as stack:
        yield stack


@pytest.fixture
def service(running: LocalStack) -> Service:
    """The stack at a whole hour, with an empty inbox."""
    service = Service(running.url)
    service.advance((3_600_000 - service.now_ms() % 3_600_000) / 1_000)
    service.call("DELETE", "/_local/received/box")
    return service


def done(service: Service, method: str, path: str, body: Any = None) -> Any:
    status, answer = service.call(method, path, body)
    assert status in (200, 201), answer
    return answer


@pytest.mark.exhaustive
def test_an_xtimer_client_gets_its_own_body_on_the_second(
    service: Service, running: LocalStack
) -> None:
    """GET with a query string and DELETE with a JSON body pass the gateway's own routes."""
    text = 'kept: {"at": "{{due_at}}"}\n é'
    param = {
        "url": f"{running.url}/_local/inbox/box",
        "method": "PUT",
        "header": {"x-team": ["billing", "orders"], "content-type": ["text/x-own"]},
        "body": text,
    }
    new = {"app": "订单", "name": "close", "cron": "30 0 * * * * *", "notifyHTTPParam": param}
    timer_id = done(service, "POST", DEF, new)["id"]
    named = {"id": timer_id, "app": "订单"}
    query = f"id={timer_id}&app=%E8%AE%A2%E5%8D%95"
    assert done(service, "GET", f"{DEF}?{query}")["data"] == {**new, "id": timer_id, "status": 1}
    start_ms = service.now_ms()
    assert service.advance(60) == 0, "it starts inactive"

    assert done(service, "POST", "/api/timer/v1/enable", named) == {"code": 0, "msg": "success"}
    service.advance(3_600)
    assert service.received_at_ms("box") == [start_ms + 3_630_000]
    (received,) = service.received("box")
    assert (received["method"], received["body"]) == ("PUT", text)
    assert received["headers"]["x-team"] in ("billing,orders", "billing, orders")
    assert received["headers"]["content-type"] == "text/x-own"

    records = done(service, "GET", f"/api/task/v1/records?timerID={timer_id}")
    assert (records["total"], records["data"][0]["status"]) == (1, 2)
    assert done(service, "DELETE", DEF, named) == {"code": 0, "msg": "success"}
    service.advance(3_600)
    assert len(service.received("box")) == 1


@pytest.mark.exhaustive
def test_a_disabled_timer_of_every_second_causes_no_further_work(
    service: Service, running: LocalStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test counts all requests of the functions and pollers while the clock is moved."""
    new = {
        "biz_type": "orders",
        "name": "each second",
        "every_seconds": 1,
        "max_runs": 4 * PLANNED_MAX,
        "callback": {"url": f"{running.url}/_local/inbox/box"},
        "enabled": True,
    }
    timer_id = done(service, "POST", "/v1/timers", new)["timer_id"]
    service.advance(20)
    assert len(service.received("box")) >= 18
    done(service, "POST", f"/v1/timers/{timer_id}/disable")
    service.advance(1)
    called = len(service.received("box"))
    # Until then messages arrive that were sent before, and their occurrences are cancelled.
    service.advance(AHEAD_SECONDS + RUN_EVERY_SECONDS)
    asked: Counter[str] = Counter()
    real = BaseClient._make_api_call

    def counted(client: BaseClient, operation: str, params: Any) -> Any:
        asked[operation] += 1
        return real(client, operation, params)

    monkeypatch.setattr(BaseClient, "_make_api_call", counted)
    service.advance(60)
    monkeypatch.undo()
    assert asked.total() < 5 * 60, asked
    pending = done(service, "GET", f"/v1/timers/{timer_id}/runs?status=pending")
    assert pending["tasks"] == []
    assert len(service.received("box")) == called
