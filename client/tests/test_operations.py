"""Operations by the client: what is sent, what is repeated, and how their end is awaited."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from duewheel import AsyncDuewheel, Duewheel, errors
from duewheel._async.operations import PAUSE_SECONDS_MAX
from duewheel._sync.transport import Transport
from tests.support import Script, operation, problem

LOST = httpx.ReadTimeout("lost")
HOUR = timedelta(hours=1)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses of the client. They move the clock instead of waiting."""
    waited: list[float] = []
    monkeypatch.setattr(Transport, "pause", lambda _, seconds: waited.append(seconds))
    monkeypatch.setattr("duewheel._sync.transport.time.monotonic", lambda: sum(waited))
    monkeypatch.setattr("duewheel._sync.operations.time.monotonic", lambda: sum(waited))
    return waited


def sent(script: Script) -> object:
    return json.loads(script.requests[0].content)


def test_an_operation_is_started_with_what_is_given() -> None:
    script = Script(operation(201))
    client = Duewheel(transport=script.transport)
    begin = datetime(2030, 1, 31, tzinfo=UTC)
    client.operations.start(
        "orders",
        "reschedule",
        shift=-HOUR,
        filter={"status": None, "due_from": begin, "labels": {"team": "billing"}},
        per_second=20,
    )
    assert sent(script) == {
        "biz_type": "orders",
        "action": "reschedule",
        "shift_seconds": -3600,
        "filter": {"due_from": "2030-01-31T00:00:00+00:00", "labels": {"team": "billing"}},
        "per_second": 20,
    }


def test_an_empty_filter_is_sent_and_neither_or_both_is_refused() -> None:
    script = Script(operation(201))
    client = Duewheel(transport=script.transport)
    client.operations.start("orders", "cancel", filter={}, dry_run=True)
    assert sent(script) == {"biz_type": "orders", "action": "cancel", "filter": {}, "dry_run": True}
    for neither_or_both in ({}, {"ids": ["AQ"], "filter": {}}):
        with pytest.raises(ValueError, match="exactly one"):
            client.operations.start("orders", "cancel", **neither_or_both)  # type: ignore[arg-type]
    assert len(script.requests) == 1


@pytest.mark.usefixtures("pauses")
def test_a_start_whose_answer_is_lost_is_repeated_only_under_an_idempotency_key() -> None:
    script = Script(LOST, operation(201))
    with pytest.raises(errors.OutcomeUnknown):
        Duewheel(transport=script.transport).operations.start("orders", "run", ids=["AQ"])
    assert script.headers("idempotency-key") == [None]
    script = Script(LOST, operation(201))
    client = Duewheel(transport=script.transport)
    client.operations.start("orders", "run", ids=["AQ"], once="mine")
    assert script.headers("idempotency-key") == ["mine", "mine"]


@pytest.mark.usefixtures("pauses")
def test_a_stop_is_repeated_and_refused_after_the_end() -> None:
    script = Script(LOST, operation(state="stopping"))
    assert Duewheel(transport=script.transport).operations.stop("OP1").state == "stopping"
    script = Script(problem("operation-ended", 409))
    with pytest.raises(errors.OperationEnded):
        Duewheel(transport=script.transport).operations.stop("OP1")


def test_its_end_is_awaited_with_pauses_that_grow_to_a_bound(pauses: list[float]) -> None:
    script = Script(*[operation(state="running")] * 10, operation(state="stopping"), operation())
    ended = Duewheel(transport=script.transport).operations.wait("OP1")
    assert (ended.state, ended.has_ended) == ("done", True)
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.5, PAUSE_SECONDS_MAX)


def test_after_the_timeout_it_is_returned_as_it_is(pauses: list[float]) -> None:
    script = Script(operation(state="running"))
    client = Duewheel(transport=script.transport)
    assert client.operations.wait("OP1", timeout=timedelta(minutes=1)).state == "running"
    assert 60 <= sum(pauses) <= 60 + PAUSE_SECONDS_MAX
    looks = len(script.requests)
    client.operations.wait("OP1", timeout=0)
    assert len(script.requests) == looks + 1


def test_it_is_followed_with_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def story() -> list[int]:
        script = Script(operation(state="running"), operation(state="running", changed=5), LAST)
        async with AsyncDuewheel(transport=script.transport) as client:
            return [found.changed async for found in client.operations.follow("OP1")]

    monkeypatch.setattr("duewheel._async.transport.asyncio.sleep", sleep)
    assert asyncio.run(story()) == [0, 5, 9]
    assert len(waited) == 2


LAST = operation(changed=9)
