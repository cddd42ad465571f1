"""Callbacks and retry policies as JSON in tasks and businesses.

Short: a member that has its default is left out. A row without `type` is of type http; the form of
the others is declared by their classes.
"""

from typing import Any

from msgspec import ValidationError, convert, to_builtins
from msgspec.json import encode
from msgspec.structs import astuple

from duewheel.rules.callbacks.aws.registry import BY_TYPE
from duewheel.rules.callbacks.types import AwsCallback, Callback, HttpCallback, RetryPolicy
from duewheel.stores.item_attributes import decimal, integer, string


def callback_row(callback: Callback) -> dict[str, Any]:
    if isinstance(callback, AwsCallback):
        row: dict[str, Any] = to_builtins(callback)
        return row
    url, method, headers, is_raw = astuple(callback)
    members = {"url": url or None, "method": method or None, "headers": headers, "raw": is_raw}
    return {name: value for name, value in members.items() if value not in (None, False, ())}


def callback_of_row(row: dict[str, Any]) -> Callback:
    """Raises one of `NOT_UNDERSTOOD` for a row that is never written here."""
    if "type" in row:
        encode(row)  # raises for half a surrogate pair, which could not be written again
        try:
            return convert(row, BY_TYPE[row["type"]].callback)
        except ValidationError as error:
            raise ValueError("no callback") from error
    url, method = string(row.get("url", "")), string(row.get("method", ""))
    headers = tuple((string(name), string(value)) for name, value in row.get("headers", ()))
    return HttpCallback(url, method, headers, _flag(row, "raw"))


def _flag(row: dict[str, Any], name: str) -> bool:
    value = row.get(name, False)
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


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
        attempts_max=integer(row["attempts_max"], COUNT_MAX, smallest=1),
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
