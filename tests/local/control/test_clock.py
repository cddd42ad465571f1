"""The movable clock: running, frozen, moved ahead and never back."""

import asyncio
from threading import Event, Thread

import pytest

from local.control.clock import MovableClock

START_MS = 1_800_000_000_000


@pytest.fixture
def still() -> MovableClock:
    return MovableClock(START_MS, frozen=True)


def in_thread(work) -> Thread:
    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


def waiting_for(clock: MovableClock, instant_ms: int, woken: Event) -> Thread:
    """A thread whose event loop waits for an instant."""

    async def wait() -> None:
        await clock.sleep_until_ms(instant_ms)
        woken.set()

    thread = in_thread(lambda: asyncio.run(wait()))
    while clock.next_wake_ms() != instant_ms:
        assert thread.is_alive()
    return thread


def test_a_frozen_clock_does_not_move(still: MovableClock) -> None:
    assert still.now_ms() == still.now_ms() == START_MS


def test_a_frozen_clock_is_set_ahead_and_never_back(still: MovableClock) -> None:
    still.set_ms(START_MS + 10)
    still.set_ms(START_MS)
    assert still.now_ms() == START_MS + 10


def test_a_running_clock_cannot_be_set() -> None:
    with pytest.raises(RuntimeError, match="frozen"):
        MovableClock().set_ms(0)


def test_an_unfrozen_clock_continues_from_its_instant(still: MovableClock) -> None:
    still.unfreeze()
    assert still.now_ms() >= START_MS
    still.freeze()
    stands_ms = still.now_ms()
    still.unfreeze()
    assert still.now_ms() >= stands_ms


def test_a_sleep_ends_when_the_clock_freezes() -> None:
    clock = MovableClock()
    thread = in_thread(lambda: clock.sleep(3_600))
    while not clock.ticks:
        pass
    clock.freeze()
    thread.join(10)
    assert not thread.is_alive()


def test_while_frozen_a_sleep_returns_at_once(still: MovableClock) -> None:
    still.sleep(3_600)
    assert still.now_ms() == START_MS
    assert still.ticks == 1


def test_a_waiting_thread_is_woken_at_its_instant(still: MovableClock) -> None:
    woken = Event()
    thread = waiting_for(still, START_MS + 900, woken)
    still.set_ms(START_MS + 899)
    assert not woken.wait(0.05)
    still.set_ms(START_MS + 900)
    thread.join(10)
    assert woken.is_set()
    assert still.next_wake_ms() is None


def test_the_clock_counts_waiting_threads(still: MovableClock) -> None:
    thread = waiting_for(still, START_MS + 900, Event())
    assert still.threads_asleep() == {thread.ident}
    still.set_ms(START_MS + 900)
    thread.join(10)
    assert still.threads_asleep() == set()


def test_a_waiting_thread_continues_when_the_clock_is_unfrozen(still: MovableClock) -> None:
    woken = Event()
    thread = waiting_for(still, START_MS + 20, woken)
    still.unfreeze()
    thread.join(10)
    assert woken.is_set()
    assert still.now_ms() >= START_MS + 20


def test_a_past_instant_is_not_waited_for(still: MovableClock) -> None:
    asyncio.run(still.sleep_until_ms(START_MS))
