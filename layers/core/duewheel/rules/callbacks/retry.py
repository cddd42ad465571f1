"""The retry policy: how a request states it, and the backoff between attempts.

Backoff is exponential with full jitter, or an explicit ladder of delays. It ends with the number of
attempts or the age that the policy allows.
"""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.fields import SECONDS_MIN, RequestBody, given, invalid, joined_path

ATTEMPTS_MAX = 100
RETRY_DELAY_SECONDS_MAX = 7 * 86_400
RETRY_FIRST_DELAY_SECONDS_MIN = 0.1
RETRY_FACTOR_MAX = 100
RETRY_AGE_SECONDS_MAX = 366 * 86_400

_Attempts = Annotated[int, Meta(ge=1, le=ATTEMPTS_MAX)]
_Delay = Annotated[float, Meta(ge=0, le=RETRY_DELAY_SECONDS_MAX)]
_LongerDelay = Annotated[float, Meta(ge=RETRY_FIRST_DELAY_SECONDS_MIN, le=RETRY_DELAY_SECONDS_MAX)]


class Retry(RequestBody):
    """Exponential, or a ladder where `delays_seconds` is given. A ladder has by default one attempt
    more than delays."""

    attempts: _Attempts | UnsetType = UNSET
    first_delay_seconds: _LongerDelay | UnsetType = UNSET
    factor: Annotated[float, Meta(ge=1, le=RETRY_FACTOR_MAX)] | UnsetType = UNSET
    max_delay_seconds: _LongerDelay | UnsetType = UNSET
    delays_seconds: (
        Annotated[tuple[_Delay, ...], Meta(min_length=1, max_length=ATTEMPTS_MAX - 1)] | UnsetType
    ) = UNSET
    max_age_seconds: (
        Annotated[float, Meta(ge=SECONDS_MIN, le=RETRY_AGE_SECONDS_MAX)] | UnsetType
    ) = UNSET


EXPONENTIAL = ("first_delay_seconds", "factor", "max_delay_seconds")


def retry_policy(retry: Retry, path: str = "retry") -> RetryPolicy:
    usual, delays = RetryPolicy(), given(retry.delays_seconds, ())
    age = given(retry.max_age_seconds, None)
    if delays:
        for name in EXPONENTIAL:
            if getattr(retry, name) is not UNSET:
                raise invalid(joined_path(path, name), "cannot be combined with delays_seconds.")
        attempts = given(retry.attempts, len(delays) + 1)
        return RetryPolicy(attempts_max=attempts, delays_seconds=delays, max_age_seconds=age)
    first = given(retry.first_delay_seconds, usual.first_delay_seconds)
    largest = given(retry.max_delay_seconds, max(first, usual.delay_max_seconds))
    if largest < first:
        reason = f"must be from {number_said(first)} to {RETRY_DELAY_SECONDS_MAX}."
        raise invalid(joined_path(path, "max_delay_seconds"), reason)
    return RetryPolicy(
        attempts_max=given(retry.attempts, usual.attempts_max),
        first_delay_seconds=first,
        factor=given(retry.factor, usual.factor),
        delay_max_seconds=largest,
        max_age_seconds=age,
    )


DEFAULT_RETRY = RetryPolicy()
RETRY_AFTER_SECONDS_MAX = 86_400.0


def delay_ms(
    policy: RetryPolicy,
    attempts_made: int,
    random_unit: float,
    retry_after_seconds: float | None = None,
) -> int | None:
    """Milliseconds until the next attempt; None when none is left.

    Full jitter spreads retries over the whole exponential delay, so that tasks that
    failed together are not retried together. The delays of a ladder have no jitter.
    """
    if attempts_made >= policy.attempts_max:
        return None
    seconds = _planned_seconds(policy, attempts_made, random_unit)
    if retry_after_seconds is not None:
        seconds = max(seconds, min(retry_after_seconds, RETRY_AFTER_SECONDS_MAX))
    return round(seconds * 1000)


def _planned_seconds(policy: RetryPolicy, attempts_made: int, random_unit: float) -> float:
    if policy.delays_seconds:
        rung = min(attempts_made, len(policy.delays_seconds)) - 1
        return policy.delays_seconds[rung]
    ceiling = policy.first_delay_seconds
    for _ in range(attempts_made - 1):
        ceiling *= policy.factor
        if ceiling >= policy.delay_max_seconds:
            break
    return min(ceiling, policy.delay_max_seconds) * random_unit


def shown_retry(policy: RetryPolicy) -> Retry:
    """In the form of a request."""
    delays = tuple(map(number_said, policy.delays_seconds)) or UNSET
    age = UNSET if policy.max_age_seconds is None else number_said(policy.max_age_seconds)
    if delays is not UNSET:
        return Retry(policy.attempts_max, delays_seconds=delays, max_age_seconds=age)
    return Retry(
        policy.attempts_max,
        number_said(policy.first_delay_seconds),
        number_said(policy.factor),
        number_said(policy.delay_max_seconds),
        max_age_seconds=age,
    )


def number_said(value: float) -> float:
    """60, not 60.0."""
    return int(value) if value == int(value) else value
