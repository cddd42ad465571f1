"""Watchdogs on the whole stack: many with a heartbeat every second, some of which stop."""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from local.stack import LocalStack
from tests.support.service import Service, ms_of

PROVE = os.environ.get("HYPOTHESIS_PROFILE") == "prove"
DOGS = 300 if PROVE else 24
PATIENCE_SECONDS = 6
SECONDS = DOGS // 2


@pytest.fixture
def service() -> Iterator[Service]:
    with LocalStack(frozen=True) as stack:
        service = Service(stack.url)
        service.advance((1_000 - service.now_ms() % 1_000) / 1_000)
        yield service


def beat(service: Service, dog: int) -> int:
    """Send a heartbeat; returns the new due instant."""
    body = {
        "delay_seconds": PATIENCE_SECONDS,
        "payload": dog,
        "callback": {"url": f"{service.url}/_local/inbox/pound"},
    }
    status, task = service.call("PUT", f"/v1/businesses/orders/tasks/dog-{dog}", body)
    assert status in (200, 201), task
    return ms_of(task["due_at"])


@pytest.mark.soak
def test_watchdogs_whose_heartbeats_stop_fire_once_and_on_time(service: Service) -> None:
    """One watchdog stops in each second; half of all continue."""
    last_due_ms: dict[int, int] = {}
    for second in range(SECONDS):
        for dog in range(DOGS):
            if dog % 2 or dog // 2 > second:
                last_due_ms[dog] = beat(service, dog)
        service.advance(1)
    silent = {dog for dog in range(DOGS) if not dog % 2 and dog}  # the first was never beaten

    fired = {int(request["body"]): request for request in service.received("pound")}
    by_now = {dog for dog in silent if last_due_ms[dog] <= service.now_ms()}
    assert len(by_now) >= SECONDS - PATIENCE_SECONDS - 2, "they fire while the others continue"
    assert fired.keys() == by_now
    for _ in range(PATIENCE_SECONDS - 1):
        for dog in range(1, DOGS, 2):
            last_due_ms[dog] = beat(service, dog)
        service.advance(1)
    received = service.received("pound")
    assert Counter(int(request["body"]) for request in received) == Counter(silent)
    for request in received:
        assert ms_of(request["received_at"]) == last_due_ms[int(request["body"])]
