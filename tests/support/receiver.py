"""A substitute for the HTTP target: records the calls, and gives set answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from duewheel.rules.callbacks.outcome import Outcome, Verdict, outcome_of_answer
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.targets.http.connection import Reply
from tests.support.clock import ManualClock

OK = Outcome(Verdict.DELIVERED, "ok", status_code=200)
BUSY = Outcome(Verdict.RETRY, "503", status_code=503)
# The receiver works on for ten seconds at most.
WORKS_ON = Outcome(Verdict.DELIVERED, "", status_code=202, complete_within_seconds=10)
GONE = Outcome(Verdict.STOP, "410", status_code=410)


@dataclass(frozen=True)
class Received:
    task_id: str
    at_ms: int
    headers: Mapping[str, str]
    body: bytes | None
    url: str
    timeout_seconds: float = 0


@dataclass
class Receiver:
    clock: ManualClock
    answer: Callable[[Received], Outcome] = lambda received: OK
    received: list[Received] = field(default_factory=list)
    callbacks: list[HttpCallback] = field(default_factory=list)  # with all that was filled in

    whole_answer: Callable[[Received], Outcome | Reply] = lambda received: Reply(200, {}, b"")

    async def call(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Outcome:
        return self.answer(self._received(callback, headers, body, timeout_seconds))

    async def reply(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Outcome | Reply:
        return self.whole_answer(self._received(callback, headers, body, timeout_seconds))

    def outcome_of(self, reply: Reply) -> Outcome:
        now_ms = self.clock.now_ms()
        return outcome_of_answer(reply.status_code, reply.headers, reply.body_start, now_ms)

    def _received(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Received:
        received = Received(
            headers["webhook-id"],
            self.clock.now_ms(),
            dict(headers),
            body,
            callback.url,
            timeout_seconds,
        )
        self.received.append(received)
        self.callbacks.append(callback)
        return received

    @property
    def task_ids(self) -> list[str]:
        return [received.task_id for received in self.received]
