"""The retry policy: how a request states it, and the backoff between attempts.

Backoff is exponential with full jitter, or an explicit ladder of delays. It ends with the number of
attempts or the age that the policy allows.
"""

from msgspec.structs import replace

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.fields import SECONDS_MIN, Fields

ATTEMPTS_MAX = 100
RETRY_DELAY_SECONDS_MAX = 7 * 86_400
RETRY_FIRST_DELAY_SECONDS_MIN = 0.1
RETRY_FACTOR_MAX = 100
RETRY_AGE_SECONDS_MAX = 366 * 86_400

_EXPONENTIAL_FIELDS = ("first_delay_seconds", "factor", "max_delay_seconds", "jitter")


def retry_from(fields: Fields) -> RetryPolicy:
    fields.refuse_unknown(("attempts", "delays_seconds", *_EXPONENTIAL_FIELDS, "max_age_seconds"))
    policy = _ladder(fields) if "delays_seconds" in fields else _exponential(fields)
    if "max_age_seconds" not in fields:
        return policy
    age_seconds = fields.number("max_age_seconds", SECONDS_MIN, RETRY_AGE_SECONDS_MAX)
    return replace(policy, max_age_seconds=age_seconds)


def _exponential(fields: Fields) -> RetryPolicy:
    usual = RetryPolicy()
    first = usual.first_delay_seconds
    if "first_delay_seconds" in fields:
        first = fields.number(
            "first_delay_seconds", RETRY_FIRST_DELAY_SECONDS_MIN, RETRY_DELAY_SECONDS_MAX
        )
    largest = max(first, usual.delay_max_seconds)
    if "max_delay_seconds" in fields:
        largest = fields.number("max_delay_seconds", first, RETRY_DELAY_SECONDS_MAX)
    factor = fields.number("factor", 1, RETRY_FACTOR_MAX) if "factor" in fields else usual.factor
    return RetryPolicy(
        attempts_max=_attempts(fields, usual.attempts_max),
        first_delay_seconds=first,
        factor=factor,
        delay_max_seconds=largest,
        has_jitter=fields.boolean("jitter") if "jitter" in fields else usual.has_jitter,
    )


def _ladder(fields: Fields) -> RetryPolicy:
    for name in _EXPONENTIAL_FIELDS:
        if name in fields:
            raise fields.invalid(name, "cannot stand beside delays_seconds.")
    delays = fields.numbers("delays_seconds", ATTEMPTS_MAX - 1, 0, RETRY_DELAY_SECONDS_MAX)
    return RetryPolicy(attempts_max=_attempts(fields, len(delays) + 1), delays_seconds=delays)


def _attempts(fields: Fields, usual: int) -> int:
    return fields.whole_number("attempts", 1, ATTEMPTS_MAX) if "attempts" in fields else usual


DEFAULT_RETRY = RetryPolicy()
RETRY_AFTER_SECONDS_MAX = 86_400.0


def delay_ms(
    policy: RetryPolicy,
    attempts_made: int,
    random_unit: float,
    retry_after_seconds: float | None = None,
) -> int | None:
    """Milliseconds until the next attempt; None when none is left.

    Full jitter, if it is wanted, spreads over the whole exponential delay so that tasks which
    failed together do not return together; a ladder is taken literally.
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
    return min(ceiling, policy.delay_max_seconds) * (random_unit if policy.has_jitter else 1)


def retry_members(retry: RetryPolicy) -> dict[str, object]:
    members: dict[str, object] = {"attempts": retry.attempts_max}
    if retry.delays_seconds:
        members["delays_seconds"] = [number_said(delay) for delay in retry.delays_seconds]
    else:
        members["first_delay_seconds"] = number_said(retry.first_delay_seconds)
        members["factor"] = number_said(retry.factor)
        members["max_delay_seconds"] = number_said(retry.delay_max_seconds)
        if not retry.has_jitter:
            members["jitter"] = False
    if retry.max_age_seconds is not None:
        members["max_age_seconds"] = number_said(retry.max_age_seconds)
    return members


def number_said(value: float) -> float:
    """60, not 60.0."""
    return int(value) if value == int(value) else value
