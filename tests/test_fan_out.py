"""Concurrent calls have ended when their caller goes on, however it ended."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import pytest

from duewheel.fan_out import fan_out
from duewheel.workflows.gather_all import gather_all, in_thread
from local.aws.functions import Died
from tests.support.cases import each_case

LONG_SECONDS = 0.2  # after which a call under way ends by itself, if its caller still waits


class UnderWay:
    """A call that still runs when another has failed. `outlived`: the caller did not wait for its
    end."""

    def __init__(self) -> None:
        self.another_failed = Event()
        self.caller_goes_on = Event()
        self.outlived = False
        self.ended = Event()

    def run(self) -> None:
        self.another_failed.wait()
        self.outlived = self.caller_goes_on.wait(LONG_SECONDS)
        self.ended.set()

    def fail(self, error: BaseException) -> None:
        self.another_failed.set()
        raise error


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_results_come_in_the_order_of_the_arguments(pool: ThreadPoolExecutor) -> None:
    assert fan_out(pool, divmod, [7, 9, 4], iter([2, 5, 4])) == [(3, 1), (1, 4), (1, 0)]
    assert fan_out(pool, divmod, [], []) == []
    assert fan_out(pool, divmod, [7], [2]) == [(3, 1)]


def test_a_failure_is_raised_when_the_calls_under_way_have_ended(pool: ThreadPoolExecutor) -> None:
    slow = UnderWay()

    def work(number: int) -> None:
        slow.fail(ValueError("refused")) if number == 0 else slow.run()

    with pytest.raises(ValueError, match="refused"):
        fan_out(pool, work, range(2))
    slow.caller_goes_on.set()

    assert slow.ended.wait(10)
    assert not slow.outlived


def test_every_call_is_made_and_the_first_failure_is_raised(pool: ThreadPoolExecutor) -> None:
    made: list[int] = []

    def work(number: int) -> None:
        made.append(number)
        if number in (3, 7):
            raise ValueError(number)

    with pytest.raises(ValueError, match="3"):
        fan_out(pool, work, range(20))
    assert sorted(made) == list(range(20))


def test_begun_calls_are_awaited_when_no_more_can_begin() -> None:
    slow = UnderWay()

    class Full(ThreadPoolExecutor):
        def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Any:
            if arguments[0] == 1:
                slow.fail(RuntimeError("can't start new thread"))
            return super().submit(work, *arguments, **named)

    with Full(2) as full:
        with pytest.raises(RuntimeError, match="new thread"):
            fan_out(full, lambda _: slow.run(), range(3))
        slow.caller_goes_on.set()

    assert not slow.outlived


def test_a_death_is_raised_without_waiting_for_a_call_that_never_ends(
    pool: ThreadPoolExecutor,
) -> None:
    never = Event()

    def work(number: int) -> None:
        if number:
            raise Died("the process is gone")
        never.wait()

    with pytest.raises(Died):
        fan_out(pool, work, range(2))
    never.set()


def on_a_loop(story: Any) -> Any:
    """Like the notifier's loop, this one does not end tasks by itself."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(story)
    finally:
        loop.close()


def test_a_cancelled_coroutine_waits_for_its_thread() -> None:
    slow = UnderWay()

    async def story() -> None:
        writing = asyncio.ensure_future(in_thread(slow.run))
        await asyncio.sleep(0)
        slow.another_failed.set()
        writing.cancel()
        await asyncio.sleep(0)
        writing.cancel()  # a second cancel changes nothing
        with pytest.raises(asyncio.CancelledError):
            await writing
        slow.caller_goes_on.set()

    on_a_loop(story())
    assert slow.ended.wait(10)
    assert not slow.outlived


def test_the_result_or_exception_of_a_thread_is_passed_on() -> None:
    assert on_a_loop(in_thread(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        on_a_loop(in_thread(divmod, 7, 0))


@each_case("ending", ["failed", "cancelled"])
def test_concurrent_coroutines_end_before_their_caller_goes_on(ending: str) -> None:
    slow = UnderWay()

    async def fails() -> None:
        slow.another_failed.set()
        if ending == "failed":
            raise ValueError("refused")
        await asyncio.Event().wait()

    async def story() -> None:
        both = asyncio.ensure_future(gather_all([in_thread(slow.run), fails()]))
        if ending == "cancelled":
            await asyncio.sleep(0.01)
            both.cancel()
        with pytest.raises((ValueError, asyncio.CancelledError)):
            await both
        slow.caller_goes_on.set()

    on_a_loop(story())
    assert slow.ended.wait(10)
    assert not slow.outlived


def test_a_waiting_caller_can_be_interrupted_by_the_end_of_the_process() -> None:
    """A signal ends the wait for futures, and no exception is caught on the way."""
    never, ended = Event(), []

    class Interrupted(ThreadPoolExecutor):
        def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Any:
            if arguments[0] == 1:
                raise KeyboardInterrupt
            return super().submit(work, *arguments, **named)

    def run() -> None:
        try:
            fan_out(pool, lambda _: never.wait(), range(2))
        except KeyboardInterrupt:
            ended.append("interrupted")

    pool = Interrupted(2)
    caller = Thread(target=run)
    caller.start()
    caller.join(10)
    assert ended == ["interrupted"]
    never.set()
    pool.shutdown()
