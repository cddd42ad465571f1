"""What is seen of an event loop that only waits for the clock."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from threading import Event, Thread
from typing import Any

import pytest

from local.aws.loop_watch import LoopWatch


class Running:
    """A loop on a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.watch = LoopWatch(self.loop, {Running.tidy})
        self.tidied = Event()
        self.end = asyncio.Event()
        self._thread = Thread(target=self.loop.run_until_complete, args=[self.end.wait()])
        self._thread.start()

    def tidy(self) -> None:
        self.tidied.set()

    def begin(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        asyncio.run_coroutine_threadsafe(work(), self.loop)

    def becomes_idle(self) -> bool:
        ends = time.monotonic() + 20
        while not self.watch.is_idle and time.monotonic() < ends:
            time.sleep(0.001)
        return self.watch.is_idle

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.end.set)
        self._thread.join(20)
        self.loop.close()


@pytest.fixture
def running() -> Iterator[Running]:
    running = Running()
    yield running
    running.stop()


def test_a_loop_that_waits_for_an_event_is_idle(running: Running) -> None:
    assert running.becomes_idle()


def test_a_job_on_a_thread_is_work_until_the_loop_has_its_result(running: Running) -> None:
    going, results = Event(), list[str]()

    async def work() -> None:
        begun.set()
        await asyncio.to_thread(going.wait)
        results.append("done")

    begun = Event()
    running.begin(work)
    assert begun.wait(20)
    for _ in range(20):
        assert not running.watch.is_idle
        time.sleep(0.002)
    going.set()
    assert running.becomes_idle()
    assert results == ["done"]


def test_a_loop_with_a_timer_is_not_idle(running: Running) -> None:
    begun, woken = Event(), Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(0.05)
        woken.set()

    running.begin(work)
    assert begun.wait(20)
    while not woken.is_set():
        assert not running.watch.is_idle or woken.is_set()
    assert running.becomes_idle()


def test_a_loop_whose_only_timer_tidies_is_idle(running: Running) -> None:
    async def work() -> None:
        asyncio.get_running_loop().call_later(3600, running.tidy)
        asyncio.get_running_loop().call_later(0.01, lambda: None).cancel()
        begun.set()

    begun = Event()
    running.begin(work)
    assert begun.wait(20)
    assert running.becomes_idle()
    assert not running.tidied.is_set()


def test_a_loop_that_runs_its_own_code_is_not_idle(running: Running) -> None:
    begun, going = Event(), Event()

    async def work() -> None:
        begun.set()
        going.wait(20)

    running.begin(work)
    assert begun.wait(20)
    assert not running.watch.is_idle
    going.set()
    assert running.becomes_idle()
