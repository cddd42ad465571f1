"""Lets things go wrong by chance on the local stack, as they do in AWS.

AWS calls of the functions are throttled, fail or time out, carried out or not; their processes
die before or after a call; messages come twice, late and out of order; callbacks are dropped,
hang, or their reply is lost. The seed decides what happens to which call; which call comes
first is up to the threads. What must be replayed belongs in the soak.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from threading import Lock
from typing import Any
from unittest.mock import patch

from botocore.config import Config

from duewheel.rules.outcome import Outcome, Verdict
from duewheel.rules.task import HttpCallback
from duewheel.targets.http import HttpTarget
from duewheel.wiring import notifier as notifier_wiring
from local.aws_faults import Handle, Reply, answered_by, do, operation_of, possible_faults
from local.functions import Died

DEATHS_PER_FAULT = 0.05  # a death costs a whole page, and minutes until it is taken up again
LATE_SECONDS_MAX = 10
_MARK = "local-stack"
OF_THE_STACK = Config(user_agent_extra=_MARK)  # for clients that nothing is done to
_CALLBACK_TROUBLES = ("callback dropped", "callback hangs", "reply lost")

Message = Mapping[str, Any]


class Faults:
    def __init__(self, rate: float, seed: int) -> None:
        self.rate = rate
        self.seed = seed
        self.injected: Counter[str] = Counter()
        self._chance = Random(seed)
        self._lock = Lock()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        def faulty_target(**wired: Any) -> Any:
            return _FaultyTarget(HttpTarget(**wired), self)

        with (
            answered_by(self._answer),
            patch.object(notifier_wiring, "HttpTarget", faulty_target),
        ):
            yield

    def batches(
        self, messages: list[Message], hide: Callable[[Message, int], None]
    ) -> list[list[Message]]:
        """What a poller hands over of the messages that it got, and how often."""
        if not messages:
            return []
        if self.strikes("messages late"):
            for message in messages:
                hide(message, self._below(LATE_SECONDS_MAX) + 1)
            return []
        if len(messages) > 1 and self.strikes("messages out of order"):
            messages = messages[::-1]
        return [messages, messages] if self.strikes("messages twice") else [messages]

    def callback_trouble(self) -> str | None:
        kind = _CALLBACK_TROUBLES[self._below(len(_CALLBACK_TROUBLES))]
        return kind if self.strikes(kind) else None

    def strikes(self, name: str, share: float = 1.0) -> bool:
        with self._lock:
            does = self._chance.random() < self.rate * share
            self.injected[name] += does
            return does

    def _below(self, limit: int) -> int:
        with self._lock:
            return self._chance.randrange(limit)

    def _answer(self, request: Any, handle: Handle) -> Reply | None:
        if _MARK in str(request.headers.get("User-Agent", "")):
            return handle(request)
        self._may_die("died before a call")
        possible = possible_faults(operation_of(request))
        fault = possible[self._below(len(possible))]
        struck = self.strikes(fault.value)
        reply = do(fault, request, handle, self._chance) if struck else handle(request)
        self._may_die("died after a call")
        return reply

    def _may_die(self, name: str) -> None:
        if self.strikes(name, DEATHS_PER_FAULT):
            raise Died(name)


class _FaultyTarget:
    """Stands where the HTTP target stands, and mostly lets it do its work."""

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
        trouble = self._faults.callback_trouble()
        if trouble == "callback dropped":
            return Outcome(Verdict.RETRY, trouble)
        outcome: Outcome = await self._target.call(callback, headers, body, timeout_seconds)
        if trouble == "callback hangs":
            await asyncio.sleep(timeout_seconds)
        return outcome if trouble is None else Outcome(Verdict.RETRY, trouble)
