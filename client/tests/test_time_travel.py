"""The fixture `duewheel`, for the tests of an application."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import duewheel as package
from duewheel import AsyncDuewheel, Duewheel, errors
from duewheel.testing.frozen_stack import FrozenStack
from duewheel.testing.spans import span_seconds

SOURCES = Path(__file__).parents[1] / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCES)}
KILLED = """
import sys
from duewheel.testing.frozen_stack import FrozenStack
with FrozenStack() as stack:
    print(stack.url, flush=True)
    sys.stdin.read()
"""


async def _status() -> str:
    async with AsyncDuewheel() as client:
        return (await client.health()).status


class TestTheFixture:
    BEGIN = datetime(2030, 3, 30, 12, tzinfo=UTC)

    @pytest.fixture
    def duewheel_starts_at(self) -> datetime:
        return self.BEGIN

    @pytest.fixture(autouse=True)
    def another_stack(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Requested before the fixture, since the environment of a machine is also set before
        it."""
        monkeypatch.setenv("DUEWHEEL_URL", "http://127.0.0.1:1")
        monkeypatch.setenv("DUEWHEEL_KEY", "dw_another")

    def test_its_stack_starts_at_the_given_instant_and_is_the_default_of_clients(
        self, duewheel: FrozenStack
    ) -> None:
        assert duewheel.now == duewheel.now == self.BEGIN
        with Duewheel() as client:
            assert client.url == duewheel.url == duewheel.client.url
        assert "DUEWHEEL_KEY" not in os.environ
        assert asyncio.run(_status()) == "ok"


def test_an_inbox_stores_calls_unchanged(stack: FrozenStack, biz_type: str) -> None:
    task = stack.client.tasks.create(
        biz_type,
        delay=timedelta(seconds=30),
        payload={"order": 17},
        callback={"url": stack.inbox_url(biz_type), "method": "PUT"},
    )
    stack.advance("29s")
    assert stack.inbox(biz_type) == []
    stack.advance(timedelta(seconds=1))
    (call,) = stack.inbox(biz_type)
    assert (call.method, call.path) == ("PUT", f"/_local/inbox/{biz_type}")
    assert call.headers["webhook-id"] == task.task_id
    assert (call.body, call.json) == (b'{"order":17}', {"order": 17})
    assert call.received_at == task.due_at == stack.now


def test_an_inbox_gives_the_answers_that_were_set(stack: FrozenStack, biz_type: str) -> None:
    stack.answer(biz_type, status=503, times=2, delay=0.001, headers={"retry-after": "7"})
    task = stack.client.tasks.create(
        biz_type, delay=1, callback=stack.inbox_url(biz_type), retry={"delays_seconds": [1, 1]}
    )
    stack.advance(1)
    assert stack.client.tasks.get(task.task_id).attempts == 1
    stack.advance("1m")
    assert stack.client.tasks.get(task.task_id).status == "delivered"
    first, second, third = (call.received_at for call in stack.inbox(biz_type))
    assert second - first >= timedelta(seconds=7)
    assert third - second >= timedelta(seconds=7)
    with pytest.raises(errors.Problem, match="status must be a whole number"):
        stack.answer(biz_type, status=42)


@pytest.mark.stack
def test_two_stacks_are_independent(stack: FrozenStack, biz_type: str) -> None:
    with FrozenStack() as other:
        stack.client.tasks.create(biz_type, delay=60, callback=stack.inbox_url(biz_type))
        assert other.advance("1h") == 0
        assert stack.advance("1m") >= 1
        assert (len(stack.inbox(biz_type)), other.inbox(biz_type)) == (1, [])


@pytest.mark.stack
def test_a_stack_ends_when_its_process_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        where = urlsplit(process.stdout.readline().strip())
        with socket.create_connection((where.hostname, where.port), timeout=30) as connection:
            process.send_signal(signal.SIGKILL)
            assert _is_ended(connection)


def _is_ended(connection: socket.socket) -> bool:
    """Whether the connection ends in time; a stack that is still running keeps it open."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_the_plugin_imports_no_heavy_module() -> None:
    code = "import sys, duewheel.testing.plugin; print('httpx' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"


def test_the_package_exports_exactly_its_names() -> None:
    missing = [name for name in [*package.__all__, "nothing"] if not hasattr(package, name)]
    assert missing == ["nothing"]


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        ("30d", 2_592_000),
        ("1h30m", 5_400),
        ("1w2s", 604_802),
        (0.25, 0.25),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_span_is_read(span: str | float | timedelta, seconds: float) -> None:
    assert span_seconds(span) == seconds


@pytest.mark.parametrize("span", ["", "30", "d", "-1d", "1.5h", "1 d", "1y", "1d\n", "١d"])
def test_an_invalid_span_is_refused(span: str) -> None:
    with pytest.raises(ValueError, match="is no span of time"):
        span_seconds(span)
