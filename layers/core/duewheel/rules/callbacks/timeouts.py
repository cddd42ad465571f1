"""How long a call may take: a member of every callback, and a setting of a business."""

from typing import Annotated, Protocol

from msgspec import UNSET, UnsetType

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.retry import number_said
from duewheel.rules.fields import invalid, joined_path, says

TIMEOUT_SECONDS_MIN = 0.1

TimeoutSeconds = Annotated[
    float, says("At most what the deployment allows.", minimum=TIMEOUT_SECONDS_MIN)
]


class TimedBody(Protocol):
    """A callback of any type. Without the member the setting of the business holds."""

    timeout_seconds: float | UnsetType


def timeout_from(body: TimedBody, allowed: AllowedTargets, path: str) -> float | None:
    if isinstance(body.timeout_seconds, UnsetType):
        return None
    where = joined_path(path, "timeout_seconds")
    return checked_timeout(body.timeout_seconds, allowed.timeout_seconds_max, where)


def checked_timeout(seconds: float, largest: float, where: str) -> float:
    if not TIMEOUT_SECONDS_MIN <= seconds <= largest:
        raise invalid(where, f"must be from {TIMEOUT_SECONDS_MIN} to {largest:g}.")
    return seconds


def timeout_said(seconds: float | None) -> float | UnsetType:
    """As an answer shows it."""
    return UNSET if seconds is None else number_said(seconds)
