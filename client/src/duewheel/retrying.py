"""Decides whether a call is repeated, and after which pause, without network or clock.

Invariant: a request that may have been carried out is sent again only while a repeat has no further
effect (`Call.repeatable_seconds`); otherwise `OutcomeUnknown` is raised.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from duewheel.calls import Call
from duewheel.errors import (
    IdempotencyKeyInUse,
    Internal,
    OutcomeUnknown,
    Problem,
    TooManyCreates,
    TooManyRequests,
    Unavailable,
    Unreachable,
)

NOTHING_WRITTEN = (Unavailable, TooManyCreates, TooManyRequests)
UNREACHED_TRIES_MAX = 4  # within about two seconds: a wrong address should fail soon
FIRST_PAUSE_SECONDS = 0.25
PAUSE_SECONDS_MAX = 8.0


@dataclass(frozen=True)
class Failure:
    """`error` is a `Problem`, or `Unreachable` for a request that has no answer."""

    error: Problem | Unreachable
    was_sent: bool = True
    retry_after_seconds: float = 0.0

    @property
    def may_have_been_done(self) -> bool:
        match self.error:
            case Unreachable():
                return self.was_sent
            case Internal():
                return True
            case Problem(type="about:blank", status=status):
                return status >= 500
        return False

    @property
    def passes(self) -> bool:
        """Whether the failure is temporary, by the answer alone."""
        soon_over = (*NOTHING_WRITTEN, IdempotencyKeyInUse, Unreachable)
        return isinstance(self.error, soon_over) or self.may_have_been_done


@dataclass
class Tries:
    """The tries of one call, within `patience_seconds` from the first."""

    call: Call
    patience_seconds: float
    timeout_seconds: float
    random: Callable[[], float]  # from 0 to 1
    number: int = 0
    is_in_doubt: bool = False  # an earlier try may have been carried out

    def pause_after(self, failure: Failure, elapsed_seconds: float) -> float:
        """The pause before the next try; raises if there is none."""
        self.number += 1
        self.is_in_doubt |= failure.may_have_been_done
        pause = max(self._backoff_seconds(), failure.retry_after_seconds)
        next_seconds = elapsed_seconds + pause
        if (
            not failure.passes
            or next_seconds > self.patience_seconds
            or (self.is_in_doubt and self._would_come_too_late(next_seconds))
            or (not failure.was_sent and self.number >= UNREACHED_TRIES_MAX)
        ):
            self._give_up(failure)
        return pause

    def _backoff_seconds(self) -> float:
        """Full jitter above a floor: clients that were throttled together must spread out."""
        most = min(PAUSE_SECONDS_MAX, FIRST_PAUSE_SECONDS * 2.0**self.number)
        return most * (0.25 + 0.75 * self.random())

    def _would_come_too_late(self, sent_seconds: float) -> bool:
        return sent_seconds + self.timeout_seconds > self.call.repeatable_seconds

    def _give_up(self, failure: Failure) -> NoReturn:
        """If an earlier try is in doubt, a permanent refusal of a safe repeat holds for that try as
        well; a temporary failure holds for the last try alone."""
        if self.is_in_doubt and not self.call.is_read and failure.passes:
            detail = f"{self.call.method} {self.call.path.partition('?')[0]}: {failure.error}"
            doubt = OutcomeUnknown(f"It may have been carried out or not. {detail}")
            raise doubt from failure.error
        raise failure.error
