"""Statistics and the forecast over HTTP."""

from tests.functions.conftest import call, created
from tests.support.clock import ManualClock

STATS = "/v1/businesses/orders/stats"


def test_tasks_are_counted_by_the_minute_of_their_due_instant(wired: ManualClock) -> None:
    created(delay_seconds=0)
    created(delay_seconds=0)
    created(delay_seconds=0, biz_type="invoices")
    created(delay_seconds=3_600)
    cancelled = created(delay_seconds=30)
    assert call("DELETE", f"/v1/tasks/{cancelled['task_id']}")[0] == 200
    wired.advance_ms(40_000)
    status, answer = call("GET", STATS)

    assert status == 200
    assert list(answer) == [
        *("biz_type", "from", "to", "counted_until", "closed_until", "total", "minutes")
    ]
    total = answer["total"]
    assert {name: total[name] for name in ("created", "pending", "cancelled", "delivered")} == {
        "created": 3,
        "pending": 2,
        "cancelled": 1,
        "delivered": 0,
    }
    assert sum(minute["created"] for minute in answer["minutes"]) == 3
    assert all(set(minute) == {"at", *total} for minute in answer["minutes"])
    assert answer["closed_until"] < answer["counted_until"]


def test_an_unknown_business_has_empty_statistics(wired: ManualClock) -> None:
    status, answer = call("GET", "/v1/businesses/nobody/stats")
    assert status == 200
    assert answer["minutes"] == []
    assert answer["total"]["created"] == 0


def test_an_invalid_query_is_refused_with_the_name_of_its_field(wired: ManualClock) -> None:
    assert call("GET", "/v1/businesses/Orders/stats")[1]["field"] == "biz_type"
    for query, field in (("from=now", "from"), ("biz_type=orders", "biz_type")):
        status, problem = call("GET", STATS, query=query)
        assert (status, problem["field"]) == (422, field)


def test_the_wheel_has_the_forecast_of_the_next_hour(wired: ManualClock) -> None:
    tasks = [
        {
            "biz_type": "orders",
            "delay_seconds": 600 + n % 2,
            "callback": {"url": "https://receiver.example/"},
        }
        for n in range(320)
    ]
    for _ in range(4):
        assert call("POST", "/v1/tasks/batch", {"tasks": tasks})[0] == 200
    status, wheel = call("GET", "/v1/wheel")

    assert status == 200
    assert wheel["forecast"]["tasks"] == 1_280
    (minute,) = wheel["forecast"]["minutes"]
    assert minute["tasks"] == 1_280
    assert sorted(minute["seconds"].values()) == [640, 640]
