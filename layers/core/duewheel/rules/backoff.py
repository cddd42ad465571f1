"""When a failed task is tried again, if it is."""

from duewheel.rules.task import RetryPolicy

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
