"""Callbacks and retry policies as JSON in tasks, timers and businesses.

A member that has its default is left out. A row without `type` is of type http; the form of the
others is declared by their classes.
"""

from typing import Annotated, Any, cast

from msgspec import Meta, Raw, Struct, convert, to_builtins
from msgspec.json import Decoder, decode, encode
from msgspec.structs import asdict, astuple

from duewheel.rules.callbacks.aws.registry import BY_TYPE
from duewheel.rules.callbacks.types import (
    AwsCallback,
    Callback,
    HttpCallback,
    OnOutcome,
    RetryPolicy,
    Told,
)

COUNT_MAX = 10_000
DURATION_SECONDS_MAX = 10**9

Duration = Annotated[float, Meta(ge=0, le=DURATION_SECONDS_MAX)]


class _HttpRow(Struct, omit_defaults=True):
    """The fields of an HttpCallback, in its order."""

    url: str = ""
    method: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    raw: bool = False
    timeout_seconds: Duration | None = None


class _Typed(Struct):
    type: str | None = None


class _RetryRow(Struct, omit_defaults=True, kw_only=True):
    """The fields of a RetryPolicy. Those without a default are always written."""

    attempts_max: Annotated[int, Meta(ge=1, le=COUNT_MAX)]
    first_delay_seconds: Duration
    factor: Duration
    delay_max_seconds: Duration
    delays_seconds: tuple[Duration, ...]
    max_age_seconds: Duration | None = None


def callback_row(callback: Callback) -> dict[str, Any]:
    return cast("dict[str, Any]", to_builtins(_row(callback)))


def callback_text(callback: Callback | None) -> str:
    return encode(callback and _row(callback)).decode()


def _row(callback: Callback) -> Struct:
    return callback if isinstance(callback, AwsCallback) else _HttpRow(*astuple(callback))


def callback_of_row(row: dict[str, Any]) -> Callback:
    """Raises one of `NOT_UNDERSTOOD` for a row that is never written here."""
    return callback_of_text(encode(row))


def callback_of_text(source: str | bytes) -> Callback:
    """Raises the same errors."""
    named = _typed.decode(source).type
    if named is not None:
        return cast("Callback", _aws[named].decode(source))
    return HttpCallback(*astuple(_http.decode(source)))


class _OnOutcomeRow(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The fields of an OnOutcome."""

    outcomes: Annotated[tuple[Told, ...], Meta(min_length=1)]
    callback: Raw
    with_payload: bool = False


def on_outcome_row(on_outcome: OnOutcome) -> dict[str, Any]:
    return cast("dict[str, Any]", decode(on_outcome_text(on_outcome)))


def on_outcome_text(on_outcome: OnOutcome) -> str:
    callback = Raw(callback_text(on_outcome.callback).encode())
    row = _OnOutcomeRow(on_outcome.outcomes, callback, on_outcome.with_payload)
    return encode(row).decode()


def on_outcome_of_row(row: dict[str, Any]) -> OnOutcome:
    """Raises one of `NOT_UNDERSTOOD` for a row that is never written here."""
    return on_outcome_of_text(encode(row))


def on_outcome_of_text(source: str | bytes) -> OnOutcome:
    """Raises the same errors."""
    row = _on_outcome.decode(source)
    callback = callback_of_text(bytes(row.callback))
    return OnOutcome(row.outcomes, callback, with_payload=row.with_payload)


_typed, _http, _retry = Decoder(_Typed), Decoder(_HttpRow), Decoder(_RetryRow)
_on_outcome = Decoder(_OnOutcomeRow)
_aws = {name: Decoder(target.callback) for name, target in BY_TYPE.items()}


def retry_row(retry: RetryPolicy) -> dict[str, Any]:
    return cast("dict[str, Any]", to_builtins(_RetryRow(**asdict(retry))))


def retry_text(retry: RetryPolicy) -> str:
    return encode(_RetryRow(**asdict(retry))).decode()


def retry_of_row(row: dict[str, Any]) -> RetryPolicy:
    """Raises one of `NOT_UNDERSTOOD` for a row that is never written here."""
    return RetryPolicy(**asdict(convert(row, _RetryRow)))


def retry_of_text(source: str) -> RetryPolicy:
    """Raises the same errors."""
    return RetryPolicy(**asdict(_retry.decode(source)))
