"""A substitute for the HTTP target: records the calls, and gives set answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback
from tests.support.clock import ManualClock

OK = Outcome(Verdict.DELIVERED, "ok", status_code=200)
BUSY = Outcome(Verdict.RETRY, "503", status_code=503)
GONE = Outcome(Verdict.STOP, "410", status_code=410)


@dataclass(frozen=True)
class Received:
    task_id: str
    at_ms: int
    headers: Mapping[str, str]
    body: bytes | None
    url: str


@dataclass
class Receiver:
    clock: ManualClock
    answer: Callable[[Received], Outcome] = lambda received: OK
    received: list[Received] = field(default_factory=list)
    callbacks: list[HttpCallback] = field(default_factory=list)  # with all that was filled in

    async def call(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Outcome:
        received = Received(
            headers["webhook-id"], self.clock.now_ms(), dict(headers), body, callback.url
        )
        self.received.append(received)
        self.callbacks.append(callback)
        return self.answer(received)

    @property
    def task_ids(self) -> list[str]:
        return [received.task_id for received in self.received]
