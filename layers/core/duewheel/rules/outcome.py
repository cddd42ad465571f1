"""What came of one try at a callback: a value, never an exception."""

from enum import StrEnum

from duewheel.frozen import frozen


class Verdict(StrEnum):
    DELIVERED = "delivered"
    RETRY = "retry"
    STOP = "stop"


@frozen
class Outcome:
    verdict: Verdict
    note: str  # the reason, or the start of the reply's body
    status_code: int | None = None
    retry_after_seconds: float | None = None
    said_stop: bool = False  # by the receiver itself, whatever the status means
