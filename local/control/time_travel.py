"""Freezes the clock, and advances it step by step.

Invariant: while the clock is frozen only this module moves it. It moves the clock only when no
function is working, to the next possible event: the millisecond of a task that a notifier waits
for, a queue message that becomes visible, an occupied second, a sweep. The functions run unchanged;
empty stretches of the wheel are skipped by moving the pointers. Expired items are deleted on the
way.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock

from duewheel.rules.wheel.timing import AHEAD_MS
from duewheel.settings import Settings
from local.aws.emulator import Emulator
from local.aws.invocations import Invocations
from local.aws.queue_poller import QueuePoller
from local.aws.schedules import PERIOD_MS, Schedules
from local.control import wheel_contents
from local.control.clock import MovableClock, real_ms
from local.control.wheel_contents import WheelContents
from local.control.wheel_pointers import WheelPointers

LOOK_EVERY_SECONDS = 0.001
# A page that waits for its next millisecond may be settling, if its event loop is not seen idle.
QUIET_SECONDS = 0.05
EXPIRE_EVERY_MS = 3_600_000
FREEZE_SECONDS_MAX = 60.0
TRIES_MAX = 200  # at one instant, if a scheduler does not get ahead; with faults, most may fail


class TurnFailed(Exception):
    """The clock cannot be advanced; the message has the reason."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The state between two moves of the clock."""

    now_ms: int
    time_pointer: int
    sweep_pointer: int
    contents: WheelContents

    @property
    def next_occupied(self) -> int | None:
        return self.contents.first_owed_after(self.time_pointer)

    @property
    def first_behind(self) -> int | None:
        begun = min(self.time_pointer, self.now_ms // 1000)
        return self.contents.first_occupied_between(self.sweep_pointer, begun)

    def dispatch_ms(self, tried_ahead_of: int | None) -> int | None:
        """When to dispatch: ahead, unless this failed for the second, which is then dispatched when
        its first task is due."""
        occupied = self.next_occupied
        if occupied is None:
            return None
        if occupied != tried_ahead_of:
            return max(occupied * 1000 - AHEAD_MS, self.now_ms)
        return max(self.contents.first_ms(occupied), self.now_ms)

    def sweep_ms(self, swept_ms: int) -> int | None:
        """If items remain behind the time pointer the sweeper runs each minute."""
        return None if self.first_behind is None else max(swept_ms + PERIOD_MS, self.now_ms)


class TimeTravel:
    def __init__(
        self,
        clock: MovableClock,
        emulator: Emulator,
        schedules: Schedules,
        pollers: Sequence[QueuePoller],
        invocations: Invocations,
        pointers: WheelPointers,
        settings: Settings,
        requests_held: AbstractContextManager[object],
        begin_anew: Callable[[], None],
    ) -> None:
        self._begin_anew = begin_anew
        self._clock = clock
        self._emulator = emulator
        self._schedules = schedules
        self._pollers = pollers
        self._invocations = invocations
        self._workers: list[QueuePoller | Invocations] = [*pollers, invocations]
        self._pointers = pointers
        self._settings = settings
        self._requests_held = requests_held
        self._one_at_a_time = Lock()
        self._swept_ms = clock.now_ms()
        self._expired_ms = clock.now_ms()
        self._known = WheelContents()
        self._delivered_gone = 0
        self._tried_ahead_of: int | None = None  # the second for which a scheduler ran before it

    def now_ms(self) -> int:
        return self._clock.now_ms()

    @property
    def is_frozen(self) -> bool:
        return self._clock.is_frozen

    def freeze(self) -> None:
        """Freeze, and deliver the tasks that are due at this instant."""
        with self._one_at_a_time:
            self._freeze()
            self._turn(self._clock.now_ms())

    def unfreeze(self) -> None:
        with self._one_at_a_time:
            self._clock.unfreeze()
            self._schedules.begin_anew()

    def reset(self) -> bool:
        """Back to real time. Whether the data was kept: what has happened at a later instant than
        now cannot be undone, so a clock that is ahead goes back only in an empty stack."""
        with self._one_at_a_time:
            if self._clock.is_ahead:
                self._begin_anew()
                return False
            self._freeze()
            self._turn(real_ms())
            self._clock.follow_real_time()
            self._schedules.begin_anew()
            return True

    def advance(self, milliseconds: int) -> int:
        """How many tasks became delivered on the way."""
        with self._one_at_a_time:
            before = self._contents().delivered + self._delivered_gone
            self._freeze()
            self._turn(self._clock.now_ms() + milliseconds)
            return self._contents().delivered + self._delivered_gone - before

    def _freeze(self) -> None:
        if self._clock.is_frozen:
            return
        self._clock.freeze()
        if not self._schedules.await_idle(FREEZE_SECONDS_MAX):
            raise TurnFailed("a scheduled function did not end when its time was up")
        self._swept_ms = self._clock.now_ms()
        self._pointers.free_leases()

    def _turn(self, target_ms: int) -> None:
        tries = 0
        before_ms = self._clock.now_ms()
        while self._step(target_ms):
            now_ms = self._clock.now_ms()
            tries = 0 if now_ms > before_ms else tries + 1
            before_ms = now_ms
            if tries > TRIES_MAX:
                raise TurnFailed("the functions do not work off what is due")

    def _step(self, target_ms: int) -> bool:
        """Go to the next event; False if that is the target."""
        self._await_quiet()
        with self._requests_held:  # tasks that one of them creates must not be skipped
            look = self._look()
            dispatch_ms = look.dispatch_ms(self._tried_ahead_of)
            sweep_ms = look.sweep_ms(self._swept_ms)
            happens_ms = [dispatch_ms, sweep_ms, self._clock.next_wake_ms(), self._waiting_ms()]
            next_ms = min(ms for ms in [*happens_ms, target_ms + 1] if ms is not None)
            self._clock.set_ms(min(next_ms, target_ms))
            self._expire()
            self._skip_empty_stretch(look, is_dispatched=dispatch_ms == next_ms)
        if next_ms > target_ms:
            return False
        if dispatch_ms == next_ms:
            self._tried_ahead_of = look.next_occupied
            self._invoke("scheduler")
        if sweep_ms == next_ms:
            self._swept_ms = next_ms
            self._invoke("sweeper")
        return True

    def _expire(self) -> None:
        """Delete expired items once an hour, as early as TTL may."""
        now_ms = self._clock.now_ms()
        if now_ms >= self._expired_ms + EXPIRE_EVERY_MS:
            self._expired_ms = now_ms
            gone = self._emulator.delete_expired()[self._settings.wheel_table]
            self._delivered_gone += wheel_contents.contents_of(gone).delivered

    def _invoke(self, folder: str) -> None:
        if not self._schedules.invoke_once(folder):
            self._pointers.free_leases()  # with a frozen clock they would never end

    def _await_quiet(self) -> None:
        """Wait until no message is left to receive and every invocation has ended or waits."""
        while not self._is_quiet():
            time.sleep(LOOK_EVERY_SECONDS)

    def _is_quiet(self) -> bool:
        if self._is_at_work():  # before the queues are looked at, which the work itself needs
            return False
        waiting_ms = self._waiting_ms()
        if waiting_ms is not None and waiting_ms <= self._clock.now_ms():
            for worker in self._workers:
                worker.nudge()
            return False
        if self._is_at_work():  # a message may have been received meanwhile
            return False
        if not any(worker.has_restless() for worker in self._workers):
            return True
        quiet_seconds = min(self._emulator.quiet_seconds(), self._clock.quiet_seconds())
        return quiet_seconds >= QUIET_SECONDS

    def _is_at_work(self) -> bool:
        return any(worker.is_at_work() for worker in self._workers)

    def _waiting_ms(self) -> int | None:
        """When the next message may be received, or the next invocation begins."""
        instants = [
            int(visible_ms)
            for poller in self._pollers
            for visible_ms in self._emulator.messages_visible_at_ms(poller.mapped.queue_url)
        ]
        if (invoked_ms := self._invocations.next_ms()) is not None:
            instants.append(invoked_ms)
        return min(instants, default=None)

    def _look(self) -> _Look:
        return _Look(self._clock.now_ms(), *self._pointers.positions(), self._contents())

    def _contents(self) -> WheelContents:
        written = self._emulator.written_partitions(
            self._settings.wheel_table, wheel_contents.ATTRIBUTES
        )
        for slot, items in written.items():
            self._known.replace(slot, items)
        return self._known

    def _skip_empty_stretch(self, look: _Look, *, is_dispatched: bool) -> None:
        """Neither pointer passes a pending task; the sweep keeps its distance. A scheduler that
        dispatches ahead would probe the empty seconds before the next task, and find nothing."""
        now = up_to = self._clock.now_ms() // 1000
        if look.next_occupied is not None:
            ahead = look.next_occupied - 1
            up_to = ahead if is_dispatched else min(now, ahead)
        if up_to > look.time_pointer:
            self._pointers.skip_time_to(up_to)
        distant = min(now, up_to) - self._settings.sweep_delay_seconds
        if look.first_behind is not None:
            distant = min(distant, look.first_behind - 1)
        if distant > look.sweep_pointer:
            self._pointers.skip_sweep_to(distant)
