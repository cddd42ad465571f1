"""Makes faults by chance on the local stack, as they happen in AWS.

AWS calls of the functions are throttled, fail or time out, carried out or not; their processes
crash before or after a call, or have too little time; the clock of each run is wrong; messages come
twice, late and out of order, or wait in a backlog; asynchronous events come twice; callbacks are
dropped, hang, or their reply is lost.

The seed decides the fault of each call; the threads decide the order of calls. Faults that must be
replayed belong in the soak.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from random import Random
from threading import Lock
from typing import Any
from unittest.mock import patch

from duewheel.clock import Clock
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.targets.http.connection import Reply as HttpReply
from duewheel.targets.http.target import HttpTarget
from duewheel.wiring import notifier as notifier_wiring
from local.aws.calling_function import pools_keep_the_context
from local.aws.functions import Context, Function
from local.chaos.aws_faults import Handle, Reply, answered_by, do, operation_of, possible_faults
from local.chaos.fault_run import Run, SkewedClock, current
from local.control.clock import MovableClock

SKEW_MS_MAX = 950  # either way; two clocks then differ by less than SKEW_SECONDS
DEATHS_PER_FAULT = 0.05  # a crash costs a whole page, and minutes until it is begun again
LATE_SECONDS_MAX = 10
BACKLOGS_PER_FAULT = 0.05
BACKLOG_SECONDS = 60  # and later messages wait as well
_CALLBACK_TROUBLES = ("callback dropped", "callback hangs", "reply lost")

Message = Mapping[str, Any]


class Faults:
    def __init__(self, rate: float, seed: int) -> None:
        self.rate = rate
        self.seed = seed
        self.injected: Counter[str] = Counter()
        self._chance = Random(seed)
        self._lock = Lock()
        self._backlog_batches = 0  # those that still wait

    @contextmanager
    def at_work(self) -> Iterator[None]:
        if not self.rate:
            yield
            return

        def faulty_target(**wired: Any) -> Any:
            return _FaultyTarget(HttpTarget(**wired), self)

        with (
            answered_by(self._answer),
            patch.object(notifier_wiring, "HttpTarget", faulty_target),
            pools_keep_the_context(),
        ):
            yield

    def clock_for_functions(self, clock: MovableClock) -> Clock:
        return SkewedClock(clock) if self.rate else clock

    def functions(self, functions: dict[str, Function], clock: MovableClock) -> dict[str, Function]:
        """The same functions, each run with its own clock and time limit."""
        if not self.rate:
            return functions
        return {
            arn: replace(function, handler=partial(self._run, function, clock))
            for arn, function in functions.items()
        }

    def batches(
        self, messages: list[Message], hide: Callable[[Message, int], None]
    ) -> list[list[Message]]:
        """The messages that a poller passes on, and how often."""
        if not messages:
            return []
        if self.strikes("a backlog", BACKLOGS_PER_FAULT):
            self._backlog_batches = self._below(10) + 2
        if self._backlog_batches:
            self._backlog_batches -= 1
            for message in messages:
                hide(message, BACKLOG_SECONDS)
            return []
        if self.strikes("messages late"):
            for message in messages:
                hide(message, self._below(LATE_SECONDS_MAX) + 1)
            return []
        if len(messages) > 1 and self.strikes("messages out of order"):
            messages = messages[::-1]
        return [messages, messages] if self.strikes("messages twice") else [messages]

    def events(self) -> int:
        """How often Lambda runs an event, with one request id, in sequence or in parallel."""
        return 2 if self.strikes("event twice") else 1

    def callback_trouble(self) -> str | None:
        kind = _CALLBACK_TROUBLES[self._below(len(_CALLBACK_TROUBLES))]
        return kind if self.strikes(kind) else None

    def strikes(self, name: str, share: float = 1.0) -> bool:
        with self._lock:
            does = self._chance.random() < self.rate * share
            self.injected[name] += does
            return does

    def must_live(self, run: Run) -> None:
        """Lambda stops a run at its time limit; here it stops at its next call."""
        run.must_live()
        if not run.left_ms():
            self._count("time ran out")
            run.die("ran out of time")

    def _run(self, function: Function, clock: MovableClock, event: Any, context: Context) -> Any:
        run = self._begun(function, clock)

        def remaining_ms() -> int:
            return min(context.get_remaining_time_in_millis(), run.left_ms())

        token = current.set(run)
        try:
            answer = function.handler(
                event, replace(context, get_remaining_time_in_millis=remaining_ms)
            )
        finally:
            current.reset(token)
        run.must_live()  # or its answer is lost
        return answer

    def _begun(self, function: Function, clock: MovableClock) -> Run:
        """A slow start uses up some of the time: mostly little is left."""
        has_ms = function.timeout_ms
        if self.strikes("short of time"):
            with self._lock:
                has_ms = int(has_ms * self._chance.random() ** 4)
        self._count("clock off")
        return Run(clock, self._below(2 * SKEW_MS_MAX + 1) - SKEW_MS_MAX, clock.now_ms() + has_ms)

    def _count(self, name: str) -> None:
        with self._lock:
            self.injected[name] += 1

    def _below(self, limit: int) -> int:
        with self._lock:
            return self._chance.randrange(limit)

    def _answer(self, request: Any, handle: Handle) -> Reply | None:
        run = current.get()
        if run is None:
            return handle(request)  # the stack's own
        self.must_live(run)
        self._may_die(run, "died before a call")
        possible = possible_faults(operation_of(request))
        fault = possible[self._below(len(possible))]
        struck = self.strikes(fault.value)
        reply = do(fault, request, handle, self._chance) if struck else handle(request)
        self._may_die(run, "died after a call")
        return reply

    def _may_die(self, run: Run, name: str) -> None:
        if self.strikes(name, DEATHS_PER_FAULT):
            run.die(name)


class _FaultyTarget:
    """Wraps the HTTP target, and mostly lets it do its work."""

    def __init__(self, target: Any, faults: Faults) -> None:
        self._target = target
        self._faults = faults

    @property
    def calls_in_flight(self) -> int:
        in_flight: int = self._target.calls_in_flight
        return in_flight

    async def call(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Outcome:
        call = partial(self._target.call, callback, headers, body, timeout_seconds)
        outcome: Outcome = await self._troubled(call, timeout_seconds)
        return outcome

    async def reply(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Outcome | HttpReply:
        """Of a batch."""
        call = partial(self._target.reply, callback, headers, body, timeout_seconds)
        reply: Outcome | HttpReply = await self._troubled(call, timeout_seconds)
        return reply

    def outcome_of(self, reply: HttpReply) -> Outcome:
        outcome: Outcome = self._target.outcome_of(reply)
        return outcome

    async def _troubled(
        self, call: Callable[[], Coroutine[None, None, Any]], timeout_seconds: float
    ) -> Any:
        if (run := current.get()) is not None:
            self._faults.must_live(run)
        trouble = self._faults.callback_trouble()
        if trouble == "callback dropped":
            return Outcome(Verdict.RETRY, trouble)
        answer = await call()
        if trouble == "callback hangs":
            await asyncio.sleep(timeout_seconds)
        return answer if trouble is None else Outcome(Verdict.RETRY, trouble)
