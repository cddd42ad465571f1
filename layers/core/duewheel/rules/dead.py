"""Dead tasks of a business: which of them are meant, and where a list of them goes on.

They are listed by the instant of their death. A cursor holds the last one that was looked at,
and the end that the list had when it began: what dies later is left to another one, so that a
redrive comes to an end though its tasks may die again.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules import cursors
from duewheel.rules.addresses import Address, address_named
from duewheel.rules.task import Status, Task

LIMIT_DEFAULT = 50
LIMIT_MAX = 100
# One call looks at no more, however few of them match; the next one goes on from there.
LOOKED_AT_MAX = 500
REDRIVEN_MAX = 100
TEXT_CHARACTERS_MAX = 120


class DeadFilter(Struct, frozen=True):
    """What is None does not matter. `until_ms` is exclusive."""

    since_ms: int | None = None
    until_ms: int | None = None
    reason: str | None = None
    status_code: int | None = None
    last_error: str | None = None  # what it contains

    def takes(self, task: Task) -> bool:
        """Whatever the index says: it follows the task a moment later."""
        if task.status is not Status.DEAD or task.settled_ms is None:
            return False
        last_status = task.history[-1].status_code if task.history else None
        return (
            (self.since_ms is None or self.since_ms <= task.settled_ms)
            and (self.until_ms is None or task.settled_ms < self.until_ms)
            and (self.reason is None or self.reason == task.reason)
            and (self.status_code is None or self.status_code == last_status)
            and (self.last_error is None or self.last_error in (task.last_error or ""))
        )


class DeadRequest(Struct, frozen=True):
    wanted: DeadFilter
    limit: int = LIMIT_DEFAULT
    cursor: str | None = None


class Died(Struct, frozen=True):
    """Where the index has a dead task."""

    settled_ms: int
    home: Address


class Stretch(Struct, frozen=True):
    """What is still to be looked at: from `low_ms` to `high_ms`, both included, behind `after`."""

    low_ms: int
    high_ms: int
    after: Died | None = None


def first_stretch(wanted: DeadFilter, now_ms: int) -> Stretch:
    high_ms = now_ms if wanted.until_ms is None else min(now_ms, wanted.until_ms - 1)
    return Stretch(max(0, wanted.since_ms or 0), high_ms)


def cursor_at(stretch: Stretch, question: Sequence[str | int | None], secret: bytes) -> str:
    after = stretch.after
    place = "" if after is None else f" {after.settled_ms} {after.home.name}"
    return cursors.sealed(f"{stretch.high_ms}{place}", question, secret)


def stretch_of(
    cursor: str, asked: DeadFilter, question: cursors.Question, secret: bytes
) -> Stretch:
    high_ms, settled_ms, name = cursors.opened(cursor, question, secret).split(" ")
    after = Died(int(settled_ms), address_named(name))
    return replace(first_stretch(asked, int(high_ms)), low_ms=after.settled_ms, after=after)


def question_of(call: str, biz_type: str, wanted: DeadFilter) -> tuple[str | int | None, ...]:
    return (
        call,
        biz_type,
        wanted.since_ms,
        wanted.until_ms,
        wanted.reason,
        wanted.status_code,
        wanted.last_error,
    )
