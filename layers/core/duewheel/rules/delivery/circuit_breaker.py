"""The circuit breaker: when it opens, when a probe is due, when blocked tasks fall due again.

Invariant: a breaker opens only if many recent calls were made and half of them failed. No wait or
spread is longer than its bound here, even if a record says so. Why these numbers:
docs/decisions/0024-breaker-and-slow-lane.md.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.businesses.health import Breaker
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.tasks.lifecycle import due_since_ms
from duewheel.rules.tasks.task import Task

CALLS_MIN = 20
CALLS_MAX = 50  # the latest, so that 25 failures are enough after any number of successes
FAILING_MIN = 0.5
WINDOW_MS = 30_000
WAIT_FIRST_MS = 10_000
WAIT_MS_MAX = 300_000
JITTER = 0.2
SETTLE_MS = 5_000  # the time of a probe beside its call
AHEAD_MS_MAX = 600_000
SPREAD_MS_MAX = 3_600_000
WAITS_MS_MAX = 86_400_000
FAILING_STATUSES = (408, 429)  # beside 5xx
MARK_BYTES = 4  # random, of who wrote a breaker


class HostSignal(Enum):
    HEALTHY = "well"
    FAILING = "unwell"


def signal_of(outcome: Outcome) -> HostSignal | None:
    """What a call shows of its host; None if the call was not made.

    A host that answers about the task is healthy, with any status; so is one that answers not found
    or not allowed.
    """
    if outcome.status_code is None:
        return HostSignal.FAILING if outcome.verdict is Verdict.RETRY else None
    if outcome.verdict is not Verdict.RETRY:
        return HostSignal.HEALTHY
    is_failing = outcome.status_code >= 500 or outcome.status_code in FAILING_STATUSES
    return HostSignal.FAILING if is_failing else HostSignal.HEALTHY


class Probe(Struct):
    """The one call that is made while a breaker is open, and whether its host was healthy. `rest`:
    tasks of the same page that wait for its outcome."""

    biz_type: str
    breaker: Breaker
    rest: list[Task]
    sign: HostSignal | None = None


class RecentCalls(Struct, frozen=True):
    """The latest calls of one host: when each ended, and whether it failed. Calls that began before
    `from_ms` do not count."""

    from_ms: int = 0
    calls: tuple[tuple[int, bool], ...] = ()

    def with_call(self, sign: HostSignal, started_ms: int, now_ms: int) -> "RecentCalls":
        if started_ms < self.from_ms:
            return self
        calls = (*self.calls[1 - CALLS_MAX :], (now_ms, sign is HostSignal.FAILING))
        return RecentCalls(self.from_ms, calls)

    @property
    def should_open(self) -> bool:
        """By the calls that ended within WINDOW_MS of the latest one."""
        last_ms = self.calls[-1][0] if self.calls else 0
        failed = [failed for at_ms, failed in self.calls if abs(last_ms - at_ms) < WINDOW_MS]
        return len(failed) >= CALLS_MIN and sum(failed) >= FAILING_MIN * len(failed)


def opened(host: str, now_ms: int, random_unit: float, owner_token: str) -> Breaker:
    return Breaker(
        host=host,
        since_ms=now_ms,
        until_ms=now_ms + _with_jitter(WAIT_FIRST_MS, random_unit),
        owner_token=owner_token,
    )


def claimed(
    breaker: Breaker, probe: Task, timeout_ms: int, now_ms: int, owner_token: str
) -> Breaker:
    """For one probe. If its notifier crashes, another may probe when this call would have ended."""
    until_ms = max(now_ms, probe.next_ms) + timeout_ms + SETTLE_MS
    return replace(breaker, until_ms=until_ms, owner_token=owner_token)


def reopened(breaker: Breaker, now_ms: int, random_unit: float, owner_token: str) -> Breaker:
    """The probe failed."""
    after = replace(breaker, owner_token=owner_token, probes_failed=breaker.probes_failed + 1)
    return replace(after, until_ms=now_ms + _with_jitter(_wait_ms(after), random_unit))


def to_be_probed(breaker: Breaker, now_ms: int, owner_token: str) -> Breaker:
    """A caller wants its host to be tried by the next due call, whatever its wait. The outcome of a
    probe that is under way does not count any more."""
    return replace(breaker, until_ms=min(breaker.until_ms, now_ms), owner_token=owner_token)


def is_probe_due(breaker: Breaker, instant_ms: int) -> bool:
    return not instant_ms < breaker.until_ms <= instant_ms + AHEAD_MS_MAX


def may_be_postponed(task: Task, now_ms: int) -> bool:
    """False once the task has been due for a day: it is called although its breaker is open, so
    that it uses up its attempts and ends even if its host never recovers."""
    return now_ms - due_since_ms(task) <= WAITS_MS_MAX


def postponed_instants_ms(
    breaker: Breaker | None, tasks: Sequence[Task], now_ms: int, random_unit: float
) -> list[int]:
    """When these tasks fall due again, in their order: at once if the breaker has closed, else
    spread over a time, so that a host that recovers is not flooded."""
    begins_ms, spread_ms = now_ms, 0
    if breaker is not None:
        begins_ms = now_ms if is_probe_due(breaker, now_ms) else breaker.until_ms
        spread_ms = _spread_ms(breaker, begins_ms)
    steps = [(number + random_unit) / len(tasks) for number in range(len(tasks))]
    return [
        max(task.next_ms, begins_ms + int(spread_ms * step))
        for task, step in zip(tasks, steps, strict=True)
    ]


def _wait_ms(breaker: Breaker) -> int:
    doublings = min(breaker.probes_failed, WAIT_MS_MAX.bit_length())
    return min(WAIT_FIRST_MS << doublings, WAIT_MS_MAX)


def _spread_ms(breaker: Breaker, begins_ms: int) -> int:
    """The breaker's wait, or a tenth of the task's age if that is longer: otherwise a task that is
    blocked for a day would be postponed hundreds of times."""
    age_ms = max(0, begins_ms - breaker.since_ms)
    return max(_wait_ms(breaker), min(age_ms // 10, SPREAD_MS_MAX))


def _with_jitter(wait_ms: int, random_unit: float) -> int:
    """Adds time, so that hosts that failed together are not probed together."""
    return wait_ms + int(wait_ms * JITTER * random_unit)
