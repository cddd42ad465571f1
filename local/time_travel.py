"""Freezes the clock, and turns the wheel while it stands still.

Invariant: while the clock is frozen this is the only driver. It moves the clock only
when nothing is at work, to the next instant at which anything can happen: a task's
millisecond that a notifier waits for, a queue message that comes up, an occupied
second, a sweep. The functions run unchanged; stretches in which the wheel holds
nothing are skipped by moving the pointers.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from duewheel.settings import Settings
from duewheel.stores import pointers
from duewheel.stores.pointers import PointerStore
from local import wheel_contents
from local.clock import MovableClock
from local.emulator import Emulator
from local.queue_poller import QueuePoller
from local.schedules import PERIOD_MS, Schedules
from local.wheel_contents import WheelContents

LOOK_EVERY_SECONDS = 0.002
# A page that waits for its next millisecond may be settling what it called before.
QUIET_SECONDS = 0.05
FREEZE_SECONDS_MAX = 60.0
TRIES_MAX = 20  # at one instant, of a scheduler that does not get ahead


class TurnFailed(Exception):
    """The wheel cannot be turned on; what stands in the way is in the message."""


@dataclass(frozen=True, slots=True)
class Pointers:
    """The wheel's two pointers, moved where nobody else is left to move them."""

    store: PointerStore
    settings: Settings
    clock: MovableClock

    @property
    def origin(self) -> int:
        return self.store.origin(self.settings.buckets, self.clock.now_ms())

    def position(self, name: str) -> int:
        return self.store.read(name, self.origin).position

    def skip_to(self, name: str, second: int) -> None:
        if second > self.position(name):
            self.store.skip_to(name, self.origin, second)

    def clear_queue_of_leaders(self) -> None:
        """Those who led or waited have ended; a lease or a place of theirs would only delay."""
        for name in (pointers.TIME, pointers.SWEEP):
            while (seen := self.store.read(name, self.origin)).owner or seen.heir or seen.newcomer:
                mine = self.store.claim(seen, "movable clock", self.clock.now_ms())
                if mine is not None:
                    self.store.release(mine, mine.position, self.clock.now_ms())


class TimeTravel:
    def __init__(
        self,
        clock: MovableClock,
        emulator: Emulator,
        schedules: Schedules,
        pollers: Sequence[QueuePoller],
        moved: Pointers,
    ) -> None:
        self._clock = clock
        self._emulator = emulator
        self._schedules = schedules
        self._pollers = pollers
        self._pointers = moved
        self._one_at_a_time = Lock()
        self._swept_ms = 0

    def now_ms(self) -> int:
        return self._clock.now_ms()

    @property
    def is_frozen(self) -> bool:
        return self._clock.is_frozen

    def freeze(self) -> None:
        with self._one_at_a_time:
            self._freeze()

    def unfreeze(self) -> None:
        with self._one_at_a_time:
            self._clock.unfreeze()
            self._schedules.begin_anew()

    def advance(self, milliseconds: int) -> int:
        """How many tasks became delivered on the way."""
        with self._one_at_a_time:
            before = self._contents().delivered
            self._freeze()
            self._turn(self._clock.now_ms() + milliseconds)
            return self._contents().delivered - before

    def _freeze(self) -> None:
        if self._clock.is_frozen:
            return
        self._clock.freeze()
        if not self._schedules.await_idle(FREEZE_SECONDS_MAX):
            raise TurnFailed("a scheduled function did not end when its time was up")
        self._pointers.clear_queue_of_leaders()
        self._turn(self._clock.now_ms())

    def _turn(self, target_ms: int) -> None:
        tries = 0
        while True:
            self._await_quiet()
            contents = self._contents()
            self._skip_empty_stretch(contents, self._clock.now_ms())
            dispatch_ms, sweep_ms = self._dispatch_ms(contents), self._sweep_ms(contents)
            happens_ms = [dispatch_ms, sweep_ms, self._clock.next_wake_ms(), self._queue_ms()]
            next_ms = min((ms for ms in happens_ms if ms is not None), default=target_ms + 1)
            if next_ms > target_ms:
                break
            tries = tries + 1 if next_ms <= self._clock.now_ms() else 0
            if tries > TRIES_MAX:
                raise TurnFailed("the scheduler does not hand over what is due")
            self._clock.set_ms(next_ms)
            if dispatch_ms == next_ms:
                self._dispatch(contents)
            if sweep_ms == next_ms:
                self._swept_ms = next_ms
                self._schedules.invoke_once("sweeper")
        self._clock.set_ms(target_ms)
        self._skip_empty_stretch(contents, target_ms)

    def _await_quiet(self) -> None:
        """Until no message is left to take and every invocation has ended or waits."""
        while not self._is_quiet():
            for poller in self._pollers:
                poller.nudge()
            time.sleep(LOOK_EVERY_SECONDS)

    def _is_quiet(self) -> bool:
        queue_ms = self._queue_ms()
        if queue_ms is not None and queue_ms <= self._clock.now_ms():
            return False
        if any(poller.is_at_work() for poller in self._pollers):
            return False
        is_waiting = any(poller.has_waiting() for poller in self._pollers)
        return not is_waiting or self._emulator.quiet_seconds() >= QUIET_SECONDS

    def _queue_ms(self) -> int | None:
        return min(
            (
                int(visible_ms)
                for poller in self._pollers
                for visible_ms in self._emulator.messages_visible_at_ms(poller.mapped.queue_url)
            ),
            default=None,
        )

    def _contents(self) -> WheelContents:
        table = self._pointers.settings.wheel_table
        return wheel_contents.contents_of(self._emulator.items(table, wheel_contents.ATTRIBUTES))

    def _dispatch_ms(self, contents: WheelContents) -> int | None:
        second = contents.next_after(self._pointers.position(pointers.TIME))
        return None if second is None else max(second * 1000, self._clock.now_ms())

    def _dispatch(self, contents: WheelContents) -> None:
        second = contents.next_after(self._pointers.position(pointers.TIME))
        if second is not None:
            self._pointers.skip_to(pointers.TIME, second - 1)
            self._schedules.invoke_once("scheduler")

    def _sweep_ms(self, contents: WheelContents) -> int | None:
        """Where something remains behind the time pointer the sweeper runs, each minute."""
        swept = self._pointers.position(pointers.SWEEP)
        if contents.first_between(swept, self._pointers.position(pointers.TIME)) is None:
            return None
        return max(self._swept_ms + PERIOD_MS, self._clock.now_ms())

    def _skip_empty_stretch(self, contents: WheelContents, now_ms: int) -> None:
        """Neither pointer passes anything owed; the sweep keeps its distance all the same."""
        time_pointer = self._pointers.position(pointers.TIME)
        occupied = contents.next_after(time_pointer)
        up_to = now_ms // 1000 if occupied is None else min(now_ms // 1000, occupied - 1)
        self._pointers.skip_to(pointers.TIME, up_to)
        swept = self._pointers.position(pointers.SWEEP)
        behind = contents.first_between(swept, max(time_pointer, up_to))
        distant = up_to - self._pointers.settings.sweep_delay_seconds
        self._pointers.skip_to(
            pointers.SWEEP, distant if behind is None else min(distant, behind - 1)
        )
