"""When a host is spared, for how long, and when those that wait for it come up again.

Invariant: a breaker opens only when most of many recent calls say that the host is not well, and
no wait or spread is longer than its bound here, whatever a record says. Why these numbers:
docs/decisions/0024-breaker.md.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.businesses.health import Breaker
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.callbacks.url import parse_callback_url
from duewheel.rules.tasks.lifecycle import owed_since_ms
from duewheel.rules.tasks.task import Task

CALLS_MIN = 20
CALLS_MAX = 50  # the latest ones: however many succeeded before, some 25 failures are clear
UNWELL_MIN = 0.5
WINDOW_MS = 30_000
WAIT_FIRST_MS = 10_000
WAIT_MS_MAX = 300_000
JITTER = 0.2
SETTLE_MS = 5_000  # what a probe takes beside its call
AHEAD_MS_MAX = 600_000
SPREAD_MS_MAX = 3_600_000
WAITS_MS_MAX = 86_400_000
UNWELL_STATUSES = (408, 429)  # beside 5xx


class Sign(Enum):
    WELL = "well"
    UNWELL = "unwell"


def host_of(callback: Callback | Outcome) -> str | None:
    """Whose breaker a call falls under; other targets than HTTP have none."""
    if not isinstance(callback, HttpCallback):
        return None
    try:
        return parse_callback_url(callback.url).authority
    except ValueError:
        return None


def sign_of(outcome: Outcome) -> Sign | None:
    """What a call says of its host; None: nothing, for it was not made.

    An answer that judges the task, whatever its status, comes from a host that is at work; so does
    one that says not found or not allowed.
    """
    if outcome.status_code is None:
        return Sign.UNWELL if outcome.verdict is Verdict.RETRY else None
    if outcome.verdict is not Verdict.RETRY:
        return Sign.WELL
    is_unwell = outcome.status_code >= 500 or outcome.status_code in UNWELL_STATUSES
    return Sign.UNWELL if is_unwell else Sign.WELL


class Recent(Struct, frozen=True):
    """The latest calls of one host: when each ended, and whether it went badly. Those that began
    before `from_ms` do not count."""

    from_ms: int = 0
    calls: tuple[tuple[int, bool], ...] = ()

    def heard(self, sign: Sign, started_ms: int, now_ms: int) -> "Recent":
        if started_ms < self.from_ms:
            return self
        kept = [call for call in self.calls if abs(now_ms - call[0]) < WINDOW_MS]
        return replace(self, calls=(*kept, (now_ms, sign is Sign.UNWELL))[-CALLS_MAX:])

    @property
    def is_clear_failure(self) -> bool:
        unwell = sum(is_unwell for _, is_unwell in self.calls)
        return len(self.calls) >= CALLS_MIN and unwell >= UNWELL_MIN * len(self.calls)


def opened(host: str, now_ms: int, random_unit: float, by: str) -> Breaker:
    return Breaker(host, now_ms, now_ms + _with_jitter(WAIT_FIRST_MS, random_unit), by)


def claimed(breaker: Breaker, probe: Task, timeout_ms: int, now_ms: int, by: str) -> Breaker:
    """One call is made; should its notifier die, another may probe when this one would be over."""
    until_ms = max(now_ms, probe.next_ms) + timeout_ms + SETTLE_MS
    return replace(breaker, until_ms=until_ms, by=by)


def reopened(breaker: Breaker, now_ms: int, random_unit: float, by: str) -> Breaker:
    """The probe failed."""
    after = replace(breaker, by=by, probes_failed=breaker.probes_failed + 1)
    return replace(after, until_ms=now_ms + _with_jitter(_wait_ms(after), random_unit))


def is_waited_out(breaker: Breaker, instant_ms: int) -> bool:
    return not instant_ms < breaker.until_ms <= instant_ms + AHEAD_MS_MAX


def may_wait(task: Task, now_ms: int) -> bool:
    """For a host that is spared. One that has been owed for a day is called nevertheless: with its
    attempts it comes to an end, though its host never comes back."""
    return now_ms - owed_since_ms(task) <= WAITS_MS_MAX


def put_off_instants_ms(
    breaker: Breaker | None, tasks: Sequence[Task], now_ms: int, random_unit: float
) -> list[int]:
    """When these tasks, in their order, come up again: spread, so that the end of the wait is no
    stampede, and at once if the breaker has closed."""
    begins_ms, spread_ms = now_ms, 0
    if breaker is not None:
        begins_ms = now_ms if is_waited_out(breaker, now_ms) else breaker.until_ms
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
    """As long as it waits, or a tenth of how long it has been open: else those that wait for a day
    would be put off hundreds of times."""
    age_ms = max(0, begins_ms - breaker.since_ms)
    return max(_wait_ms(breaker), min(age_ms // 10, SPREAD_MS_MAX))


def _with_jitter(wait_ms: int, random_unit: float) -> int:
    """Upwards, so that hosts which failed together are not probed together."""
    return wait_ms + int(wait_ms * JITTER * random_unit)
