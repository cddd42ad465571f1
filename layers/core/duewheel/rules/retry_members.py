"""A retry policy, and a number, as a request would say them."""

from duewheel.rules.task import RetryPolicy


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
