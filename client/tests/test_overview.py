"""The overview as values, and the command that shows it again and again."""

from typing import Any

import httpx

from duewheel.cli.overview import PAUSE_SECONDS, shown
from duewheel.overviews import Overview
from tests.cli_support import done
from tests.support import Script

COUNTS = {
    "created": 3, "pending": 1, "delivered": 1, "dead": 1, "expired": 0, "cancelled": 0,
    "failed_attempts": 2, "lateness": {"sum_ms": 1, "max_ms": 1, "counts": {"up_to_10_ms": 1}},
}  # fmt: skip
BREAKER = {
    "host": "a.example",
    "since": "2030-01-31T08:00:00.000Z",
    "until": "2030-01-31T08:10:00.000Z",
}
PAGE: dict[str, Any] = {
    "now": "2030-01-31T08:05:10.000Z",
    "from": "2030-01-31T07:03:00.000Z",
    "to": "2030-01-31T08:03:00.000Z",
    "minutes": [{"at": "2030-01-31T08:01:00.000Z", **COUNTS}],
    "businesses": [
        {
            "biz_type": "orders", "paused": True, "paused_flow_keys": 2, "lane": "slow",
            "breakers": [BREAKER], "calls_per_second": None,
            "calls_in_flight": 4, "hour": COUNTS,
            "usage": {"calls": None, "calls_in_flight": {"used": 3, "waiting": 9}},
        }
    ],
    "deaths": {
        "since": "2030-01-30T08:05:10.000Z", "businesses": 1, "tasks": 1, "more": False,
        "groups": [
            {
                "last_error": "status 503", "reason": "attempts exhausted", "tasks": 1,
                "businesses": [{"biz_type": "orders", "tasks": 1}],
                "last_died_at": "2030-01-31T08:01:01.000Z", "last_task_id": "AQG5",
            }
        ],
    },
    "looked_at": {"businesses": 2},
    "cursor": None,
}  # fmt: skip


def answered(page: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json=page)


def test_a_page_is_read_as_a_value() -> None:
    page = Overview.read(PAGE)
    assert page.businesses[0].breakers[0].host == "a.example"
    assert page.deaths.groups[0].tasks == 1
    assert page.minutes[0].failed_attempts == 2
    assert page.end.minute == 3


def test_the_command_shows_all_pages_together() -> None:
    more = {**PAGE, "cursor": "more", "businesses": [], "deaths": {**PAGE["deaths"], "groups": []}}
    text = done("overview", script=Script(answered(more), answered(PAGE)))
    assert "4 businesses looked at" in text
    assert "2 delivered, 2 pending, 2 dead, 4 failed attempts" in text
    assert "paused, 2 flow keys paused, blocked: a.example, slow lane" in text
    assert "3 of 4" in text
    assert "orders 1" in text


def test_an_hour_without_tasks_is_said_in_words() -> None:
    quiet = {**PAGE, "minutes": [], "businesses": []}
    assert "no task fell due" in done("overview", script=Script(answered(quiet)))


def test_it_is_watched_with_a_pause_between_two_reads() -> None:
    pauses: list[float] = []
    pages = shown(lambda: [Overview.read(PAGE)], is_repeated=True, pause=pauses.append)
    for _ in range(3):
        assert len(next(pages)) == 1
    assert pauses == [PAUSE_SECONDS] * 2
    once = shown(lambda: [Overview.read(PAGE)], is_repeated=False, pause=pauses.append)
    assert len(list(once)) == 1
