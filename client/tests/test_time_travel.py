"""The fixture `duewheel`: what tests of an application get."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
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


def test_a_task_is_called_at_its_instant_when_time_is_moved(duewheel: FrozenStack) -> None:
    task = duewheel.client.tasks.create(
        "orders",
        delay=timedelta(days=30),
        payload={"order": 17},
        callback={"url": duewheel.inbox_url("shop"), "method": "PUT"},
    )
    assert (duewheel.advance("29d"), duewheel.inbox("shop")) == (0, [])
    assert duewheel.advance(timedelta(days=1)) == 1
    (call,) = duewheel.inbox("shop")
    assert (call.method, call.path) == ("PUT", "/_local/inbox/shop")
    assert call.headers["webhook-id"] == task.task_id
    assert (call.body, call.json) == (b'{"order":17}', {"order": 17})
    assert call.received_at == task.due_at == duewheel.now


def test_an_inbox_answers_as_it_is_told(duewheel: FrozenStack) -> None:
    duewheel.answer("shop", status=503, times=2, delay=0.001, headers={"retry-after": "7"})
    task = duewheel.client.tasks.create("orders", delay=1, callback=duewheel.inbox_url("shop"))
    duewheel.advance(1)
    assert duewheel.client.tasks.get(task.task_id).attempts == 1
    assert duewheel.advance("1d") == 1
    first, second, third = (call.received_at for call in duewheel.inbox("shop"))
    assert second - first >= timedelta(seconds=7)
    assert third - second >= timedelta(seconds=7)
    with pytest.raises(errors.Problem, match="status must be a whole number"):
        duewheel.answer("shop", status=42)


class TestElsewhere:
    @pytest.fixture
    def duewheel_starts_at(self) -> datetime:
        return datetime(2030, 3, 30, 12, tzinfo=UTC)

    def test_the_clock_begins_where_it_is_told_and_stands_still(
        self, duewheel: FrozenStack
    ) -> None:
        assert duewheel.now == duewheel.now == datetime(2030, 3, 30, 12, tzinfo=UTC)


async def _profile() -> str | None:
    async with AsyncDuewheel() as client:
        return (await client.wheel()).profile


class TestTheEnvironment:
    @pytest.fixture(autouse=True)
    def another_stack(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Asked for before the fixture, as a machine's own settings are there before."""
        monkeypatch.setenv("DUEWHEEL_URL", "http://127.0.0.1:1")
        monkeypatch.setenv("DUEWHEEL_KEY", "dw_another")

    def test_clients_without_arguments_reach_this_stack_and_no_other(
        self, duewheel: FrozenStack
    ) -> None:
        with Duewheel() as client:
            assert client.url == duewheel.url == duewheel.client.url
        assert "DUEWHEEL_KEY" not in os.environ
        assert asyncio.run(_profile()) == "precise"


def test_two_stacks_know_nothing_of_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.perf_counter()
    with FrozenStack() as one:
        took = time.perf_counter() - began
        with capsys.disabled():
            sys.stdout.write(f"\na stack for a test: up after {took:.2f} s\n")
        with FrozenStack() as other:
            one.client.tasks.create("orders", delay=60, callback=one.inbox_url("shop"))
            assert (other.advance("1h"), one.advance("1h")) == (0, 1)
            assert (len(one.inbox("shop")), other.inbox("shop")) == (1, [])


def test_a_stack_ends_with_the_process_that_is_killed() -> None:
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
    """Waits for it; a stack that lives on keeps the connection, until it is tired of it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_the_plugin_brings_nothing_heavy() -> None:
    code = "import sys, duewheel.testing.plugin; print('httpx' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"


def test_every_name_of_the_package_is_there_and_no_other() -> None:
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
def test_what_is_no_span_is_refused(span: str) -> None:
    with pytest.raises(ValueError, match="is no span of time"):
        span_seconds(span)
