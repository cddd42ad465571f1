"""The `retry` of a task or a business: how often, how soon and for how long it is tried again."""

from msgspec.structs import replace

from duewheel.rules.task import RetryPolicy
from duewheel.rules.task_fields import SECONDS_MIN, Fields

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
        has_jitter=fields.truth("jitter") if "jitter" in fields else usual.has_jitter,
    )


def _ladder(fields: Fields) -> RetryPolicy:
    for name in _EXPONENTIAL_FIELDS:
        if name in fields:
            raise fields.invalid(name, "cannot stand beside delays_seconds.")
    delays = fields.numbers("delays_seconds", ATTEMPTS_MAX - 1, 0, RETRY_DELAY_SECONDS_MAX)
    return RetryPolicy(attempts_max=_attempts(fields, len(delays) + 1), delays_seconds=delays)


def _attempts(fields: Fields, usual: int) -> int:
    return fields.whole_number("attempts", 1, ATTEMPTS_MAX) if "attempts" in fields else usual
