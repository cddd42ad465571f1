"""What came of one try at a callback: a value, never an exception."""

from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    DELIVERED = "delivered"
    RETRY = "retry"
    STOP = "stop"


class Outcome(Struct, frozen=True):
    verdict: Verdict
    note: str  # the reason, or the start of the reply's body
    status_code: int | None = None
    retry_after_seconds: float | None = None
    was_begun: bool = True  # else nothing went out, and it is no attempt
    said_stop: bool = False  # by the receiver itself, whatever the status means
