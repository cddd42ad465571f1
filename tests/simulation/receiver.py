"""Those who are called back, and the network on the way to them.

How a receiver answers stands in the callback's URL, so that it is known from the task alone: `/ok`,
`/busy/2` (503 twice, then 200), `/gone`, `/never` (404 for ever: a host at work, which is not
spared), `/slow/9` (200, after so many seconds), `/works` (202, and the end is reported:
`workers.py`), `/slow-first/9/works` (the first call 200 after so many seconds, the second at once
202 or, with `busy`, 503, then 200). A host may be slow for a while. While the receiver is down no
call is answered.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.wiring import process
from tests.simulation.faults import SLOW_HOST, Faults
from tests.simulation.invocation import Invocation, current

_OK = Outcome(Verdict.DELIVERED, "ok", status_code=200)
_WORKS = Outcome(Verdict.DELIVERED, "", status_code=202, complete_within_seconds=15)
_WORKS_ALONE = Outcome(Verdict.DELIVERED, "", status_code=202, complete_within_seconds=60)
_BUSY = Outcome(Verdict.RETRY, "busy", status_code=503)
_NOT_FOUND = Outcome(Verdict.RETRY, "not found", status_code=404)
_GONE = Outcome(Verdict.STOP, "gone", status_code=410)
_NOTHING_HEARD = Outcome(Verdict.RETRY, "no whole reply in time")
SLOW_CALL = "slow call of a host that turns quick"
_SLOW_SECONDS = 6.0  # of a host that is slow for a while


@dataclass(frozen=True)
class ReportedEnd:
    """A worker said that its attempt is over, and that was accepted between these instants."""

    task_id: str
    begun_seconds: float
    answered_seconds: float


@dataclass(frozen=True)
class Call:
    """A callback as it arrived. `heard` is what the notifier got for an answer."""

    task_id: str
    biz_type: str
    attempt: int
    due_at: str
    began_seconds: float
    notifier_ms: int  # when it was made, by the notifier's own clock
    by: Invocation
    heard: Outcome
    ended_seconds: float = 0.0

    @property
    def is_heard_delivered(self) -> bool:
        """And not only that the work goes on."""
        is_over = self.heard.complete_within_seconds is None
        return self.heard.verdict is Verdict.DELIVERED and is_over


@dataclass(frozen=True)
class Dropped:
    """A callback that was made and never arrived."""

    task_id: str
    attempt: int
    began_seconds: float
    by: Invocation


class Receiver:
    def __init__(self, faults: Faults) -> None:
        self.calls: list[Call] = []
        self.dropped: list[Dropped] = []
        self.works: Callable[[str, str], None] = lambda task_id, token: None
        self.completed: dict[str, float] = {}  # when the end of work was reported, by task
        self.ends: list[ReportedEnd] = []
        self.wrong: list[str] = []  # time-outs that are not those of their callbacks
        self._faults = faults
        self._answered: Counter[str] = Counter()

    def target(self, **_: object) -> "Target":
        return Target(self)

    async def called(
        self, callback: HttpCallback, headers: Mapping[str, str], notifier_ms: int, timeout: float
    ) -> Outcome:
        began = asyncio.get_running_loop().time()
        by = current.get()
        assert by is not None
        by.must_live(began)
        self._check_timeout(callback, timeout)
        is_down = any(
            self._faults.is_down(what, began) for what in ("receiver", _host_of(callback.url))
        )
        trouble = "dropped on the way" if is_down else self._trouble()
        if trouble == "dropped on the way":
            attempt = int(headers["duewheel-attempt"])
            self.dropped.append(Dropped(headers["webhook-id"], attempt, began, by))
            await asyncio.sleep(0.05)
            return _NOTHING_HEARD
        outcome = self._answer(callback.url, headers["webhook-id"])
        takes = self._seconds_taken(callback.url, headers["webhook-id"])
        takes += self._faults.latency_seconds() * 5
        if self._is_slow(callback.url):
            takes += _SLOW_SECONDS
        if trouble == "hangs" or takes > timeout:
            takes, trouble = timeout, "hangs"
        heard = outcome if trouble is None else _NOTHING_HEARD
        call = Call(
            headers["webhook-id"],
            headers["duewheel-biz-type"],
            int(headers["duewheel-attempt"]),
            headers["duewheel-due-at"],
            began,
            notifier_ms,
            by,
            heard,
            began + takes,
        )
        self.calls.append(call)
        if outcome is _WORKS:
            self.works(call.task_id, headers[TOKEN_HEADER])
        await asyncio.sleep(takes)
        await by.environment.thawed()
        by.must_live(asyncio.get_running_loop().time())
        return heard

    def _check_timeout(self, callback: HttpCallback, timeout: float) -> None:
        own = callback.timeout_seconds
        if own not in (None, timeout):
            self.wrong.append(f"a call may take {timeout:g} s, and its callback says {own:g} s")

    def _seconds_taken(self, url: str, task_id: str) -> float:
        _, _, _, kind, *times = url.split("/")
        is_slow = kind == "slow" or (kind == "slow-first" and self._answered[task_id] == 1)
        return float(times[0]) if is_slow else 0.0

    def _is_slow(self, url: str) -> bool:
        host, now = _host_of(url), asyncio.get_running_loop().time()
        is_slow = f"{host} slow" == SLOW_HOST and self._faults.is_down(SLOW_HOST, now)
        self._faults.injected[SLOW_CALL] += is_slow
        return is_slow

    def _trouble(self) -> str | None:
        kinds = ("dropped on the way", "reply lost", "hangs")
        kind = self._faults.chance.choice(kinds)
        return kind if self._faults.strikes(kind, self._faults.rates.network) else None

    def _answer(self, url: str, task_id: str) -> Outcome:
        _, _, _, kind, *times = url.split("/")
        self._answered[task_id] += 1
        match kind:
            case "ok" | "slow":
                return _OK
            case "busy":
                return _BUSY if self._answered[task_id] <= int(times[0]) else _OK
            case "slow-first":
                again = {"works": _WORKS_ALONE, "busy": _BUSY}[times[1]]
                return again if self._answered[task_id] == 2 else _OK
            case "gone":
                return _GONE
            case "works":
                return _WORKS
            case "never":
                return _NOT_FOUND
            case _:
                raise AssertionError(f"{url} does not say how to answer")


def _host_of(url: str) -> str:
    return url.split("/")[2]


class Target:
    """Stands where the HTTP target stands."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    async def call(
        self,
        callback: HttpCallback,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Outcome:
        now_ms = process.clock().now_ms()
        return await self._receiver.called(callback, headers, now_ms, timeout_seconds)
