"""Invokes scheduled functions each minute by the stack's clock, and once at the start.

Invariant: an invocation never waits for the one before; leader and standby overlap as they do in
AWS. When the clock freezes or the stack stops, all of them get the signal to end, and are awaited.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Condition, Thread, current_thread
from typing import Any

from local.aws.functions import Function
from local.aws.intrinsics import TemplateError
from local.aws.resources import Resources
from local.aws.template import ACCOUNT_ID, REGION
from local.control.clock import MovableClock

log = logging.getLogger(__name__)

PERIOD_MS = 60_000
LOOK_EVERY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Schedule:
    function: Function
    rule_arn: str

    def event(self, now_ms: int) -> dict[str, Any]:
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": ACCOUNT_ID,
            "time": f"{datetime.fromtimestamp(now_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "region": REGION,
            "resources": [self.rule_arn],
            "detail": {},
        }


def schedules_of(resources: Resources, functions: dict[str, Function]) -> list[Schedule]:
    schedules = []
    for rule in resources.template.of_type("AWS::Events::Rule"):
        properties = resources.resolve(rule.properties)
        if properties.get("ScheduleExpression") != "rate(1 minute)":
            raise TemplateError(f"{rule.logical_id} is not a schedule of rate(1 minute)")
        arn = f"arn:aws:events:{REGION}:{ACCOUNT_ID}:rule/{resources.ref(rule.logical_id)}"
        schedules += [Schedule(functions[target["Arn"]], arn) for target in properties["Targets"]]
    return schedules


class Schedules:
    def __init__(self, schedules: Sequence[Schedule], clock: MovableClock) -> None:
        self._schedules = schedules
        self._clock = clock
        self._changed = Condition()
        self._running: set[Thread] = set()
        self._stopped = False
        self._due_ms = 0  # at once
        self._thread = Thread(target=self._run, name="schedules", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(timeout_seconds)
        self.await_idle(timeout_seconds)

    def await_idle(self, timeout_seconds: float) -> bool:
        """After the clock was frozen or stopped: wait until the last invocation has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, timeout_seconds)

    def invoke_once(self, folder: str) -> bool:
        """While the clock is frozen: one invocation that ends after its first tick, or fails."""
        schedule = next(s for s in self._schedules if s.function.folder == folder)
        ticks = self._clock.ticks
        return _succeeds(
            schedule,
            schedule.event(self._clock.now_ms()),
            lambda: schedule.function.timeout_ms if self._clock.ticks == ticks else 0,
        )

    def begin_anew(self) -> None:
        """Invoke all at the next check, as at the start."""
        with self._changed:
            self._due_ms = 0
            self._changed.notify_all()

    def _run(self) -> None:
        with self._changed:
            while not self._stopped:
                now_ms = self._clock.now_ms()
                if now_ms >= self._due_ms and not self._clock.is_frozen:
                    self._due_ms = (now_ms // PERIOD_MS + 1) * PERIOD_MS
                    for schedule in self._schedules:
                        self._begin(schedule)
                self._changed.wait(LOOK_EVERY_SECONDS)

    def _begin(self, schedule: Schedule) -> None:
        name = f"{schedule.function.folder} invocation"
        thread = Thread(target=self._invoke, args=[schedule], name=name, daemon=True)
        self._running.add(thread)
        thread.start()

    def _invoke(self, schedule: Schedule) -> None:
        deadline_ms = self._clock.now_ms() + schedule.function.timeout_ms

        def remaining_ms() -> int:
            if self._stopped or self._clock.is_frozen:
                return 0
            return max(0, deadline_ms - self._clock.now_ms())

        try:
            _succeeds(schedule, schedule.event(self._clock.now_ms()), remaining_ms)
        finally:
            with self._changed:
                self._running.discard(current_thread())
                self._changed.notify_all()


def _succeeds(schedule: Schedule, event: dict[str, Any], remaining_ms: Callable[[], int]) -> bool:
    try:
        schedule.function.invoke(event, remaining_ms)
    except Exception:  # Lambda, too, logs the exception of a function, and goes on
        log.exception("%s failed", schedule.function.name)
        return False
    return True
