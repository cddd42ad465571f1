"""Leader election: one scheduler leads and moves the time pointer.

A leader ends as soon as all seconds ahead are dispatched. While it cannot get ahead, because a
queue or a table refuses, it stays: each second it dispatches what opens, every few seconds it tries
to get ahead, and the next scheduler is its standby.

Two leaders at once do no harm: a page that is dispatched twice is delivered once, because of its
lease, and the pointer moves only for the epoch that owns it.
"""

from collections.abc import Callable

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.metrics import POINTER_LAG, counts
from duewheel.rules.wheel import leader_election, timing
from duewheel.rules.wheel.leader_election import Pointer, Step
from duewheel.stores.wheel import pointers
from duewheel.stores.wheel.pointers import PointerStore
from duewheel.workflows.wheel.dispatch import STRIDE_SECONDS, Dispatch

RESERVE_MS = 10_000  # what must remain of the invocation to go on
FAILED_TICKS_MAX = 5  # in a row, until the lease is left to another
_PAUSE_WHEN_STUCK_MS = 200  # the queue refuses, or this clock is ahead of AWS's


class Lead(Struct, frozen=True, kw_only=True):
    clock: Clock
    pointers: PointerStore
    dispatch: Dispatch
    origin: int

    def run(self, me: str, remaining_ms: Callable[[], int]) -> None:
        """Wait for the lease, then lead until a candidate registers or the time runs out."""
        while remaining_ms() > RESERVE_MS:
            # Half a unit a look; a claim or a registration from a stale look is refused.
            seen = self.pointers.read(pointers.TIME, self.origin, strongly=False)
            match leader_election.next_step(seen, me, self.clock.now_ms()):
                case Step.CLAIM:
                    mine = self.pointers.claim(seen, me, self.clock.now_ms())
                    if mine is not None:
                        logger.info(
                            "took leadership", action="lead", epoch=mine.epoch, at=mine.position
                        )
                        self._lead(mine, remaining_ms)
                        return
                    self.clock.sleep(
                        leader_election.WATCH_SECONDS_AT_HANDOVER
                    )  # the look was stale
                case Step.REGISTER_AS_STANDBY | Step.REGISTER_AS_CANDIDATE as step:
                    if not self.pointers.register(seen, me, step):
                        self.clock.sleep(leader_election.WATCH_SECONDS_AT_HANDOVER)
                case Step.WAIT:
                    self.clock.sleep(leader_election.watch_seconds(seen))

    def _lead(self, mine: Pointer, remaining_ms: Callable[[], int]) -> None:
        self.dispatch.begin()
        dispatched = mine.position
        written_ms = self.clock.now_ms()
        is_stuck, failed, gets_ahead = False, 0, True
        try:
            while True:
                before = dispatched
                ahead_ms = timing.AHEAD_MS if gets_ahead else 0
                last = self.dispatch.last_second(timing.AHEAD_MS)
                dispatched, failed = self._tick(dispatched, ahead_ms, failed, is_stuck)
                now_ms = self.clock.now_ms()
                gets_ahead = dispatched > before
                if self._is_write_due(mine, dispatched, now_ms - written_ms):
                    moved = self.pointers.advance(mine, dispatched, now_ms)
                    if moved is None:
                        logger.warning("lost leadership", action="deposed", epoch=mine.epoch)
                        return
                    mine, written_ms, gets_ahead = moved, now_ms, True
                is_ahead = dispatched >= last
                if is_ahead or mine.candidate is not None or remaining_ms() <= RESERVE_MS:
                    break
                is_stuck = self._pause(dispatched, moved=dispatched > before)
        except Exception:
            self._release(mine, dispatched)
            raise
        self._release(mine, dispatched)
        logger.info("stepped down", action="step-down", epoch=mine.epoch, at=dispatched)

    def _release(self, mine: Pointer, dispatched: int) -> None:
        now_ms = self.clock.now_ms()
        counts.measured(POINTER_LAG, timing.lag_seconds(dispatched, now_ms))
        self.pointers.release(mine, dispatched, now_ms)

    def _tick(self, dispatched: int, ahead_ms: int, failed: int, is_stuck: bool) -> tuple[int, int]:
        """Run one tick; returns how many have failed in a row. The leader continues after a few
        failures: another leader would have the same."""
        try:
            if is_stuck:
                # The pointer may wait for AWS's time, which any reply updates.
                self.pointers.read(pointers.TIME, self.origin, strongly=False)
            last = self.dispatch.tick(dispatched, ahead_ms)
            return last, 0
        except Exception:
            if failed + 1 >= FAILED_TICKS_MAX:
                raise
            logger.exception("tick failed", action="tick-failed", at=dispatched)
            return dispatched, failed + 1

    def _is_write_due(self, mine: Pointer, dispatched: int, since_ms: int) -> bool:
        """Seconds share a write, empty or not. Seconds that a crash leaves unwritten are dispatched
        again, and the leases of the pages drop the repeats. A stride is written at once."""
        if since_ms >= leader_election.POINTER_WRITE_EVERY_MS:
            return True
        return dispatched - mine.position >= STRIDE_SECONDS

    def _pause(self, dispatched: int, *, moved: bool) -> bool:
        """Sleep until the next second opens; at most one second, so that the lease is renewed. True
        if it has opened already and this tick could not take it."""
        wait_ms = self.dispatch.next_tick_ms(dispatched) - self.clock.now_ms()
        is_stuck = wait_ms <= 0 and not moved
        if is_stuck:
            wait_ms = _PAUSE_WHEN_STUCK_MS
        self.clock.sleep(min(max(wait_ms, 0), 1_000) / 1000)
        return is_stuck
