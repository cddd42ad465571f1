"""Retry policies as they are kept in tasks and businesses: what JSON can hold."""

from typing import Any

from duewheel.rules.task import RetryPolicy
from duewheel.stores.attributes import decimal, whole

COUNT_MAX = 10_000
DURATION_SECONDS_MAX = 10**9


def retry_row(retry: RetryPolicy) -> dict[str, Any]:
    row: dict[str, Any] = {
        "attempts_max": retry.attempts_max,
        "first_delay_seconds": retry.first_delay_seconds,
        "factor": retry.factor,
        "delay_max_seconds": retry.delay_max_seconds,
        "delays_seconds": retry.delays_seconds,
    }
    if not retry.has_jitter:
        row["has_jitter"] = False
    if retry.max_age_seconds is not None:
        row["max_age_seconds"] = retry.max_age_seconds
    return row


def retry_of_row(row: dict[str, Any]) -> RetryPolicy:
    age_seconds = row.get("max_age_seconds")
    return RetryPolicy(
        attempts_max=whole(row["attempts_max"], COUNT_MAX, smallest=1),
        first_delay_seconds=decimal(row["first_delay_seconds"], DURATION_SECONDS_MAX),
        factor=decimal(row["factor"], DURATION_SECONDS_MAX),
        delay_max_seconds=decimal(row["delay_max_seconds"], DURATION_SECONDS_MAX),
        delays_seconds=tuple(
            decimal(delay, DURATION_SECONDS_MAX) for delay in row["delays_seconds"]
        ),
        has_jitter=row.get("has_jitter", True) is not False,
        max_age_seconds=(
            None if age_seconds is None else decimal(age_seconds, DURATION_SECONDS_MAX)
        ),
    )
