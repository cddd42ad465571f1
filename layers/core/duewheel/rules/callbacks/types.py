"""Types of callbacks, who is told of an outcome, the fields of a retry policy, and what is kept of
an answer."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

KEPT_BYTES_MAX = 2_048  # of an answer's body


class HttpCallback(Struct, frozen=True):
    """`url` and `method` are empty if a task uses those of its business. `is_raw`: the payload is a
    string, and its text is the body. `timeout_seconds` None: that of its business."""

    url: str = ""
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    is_raw: bool = False
    timeout_seconds: float | None = None


class AwsCallback(Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True):
    """Each target has a class of its own (`aws/`), with the tag and names of its stored form.
    `timeout_seconds` None: that of its business."""

    timeout_seconds: Annotated[float, Meta(ge=0)] | None = None

    @property
    def resource(self) -> str:
        """The name of what it calls, without the rest of its ARN."""
        raise NotImplementedError


class FilledCallback(HttpCallback, frozen=True):
    """As it is called, with the named secrets that are in its headers. Never stored."""

    secrets: tuple[str, ...] = ()


# Where and what to deliver: data, not a function.
Callback = HttpCallback | AwsCallback


class Told(StrEnum):
    """What a notice tells. Stored."""

    DELIVERED = "delivered"
    DEAD = "dead"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    MISSED = "missed"  # of a timer's runs: missed, superseded or skipped
    DISABLED = "disabled"  # of a timer: by the service itself


class OnOutcome(Struct, frozen=True):
    outcomes: tuple[Told, ...]
    callback: Callback
    with_payload: bool = False


class RetryPolicy(Struct, frozen=True):
    """Exponential with full jitter, or, when `delays_seconds` is given, that explicit
    ladder. `max_age_seconds` counts from the due instant, or from the latest redrive."""

    attempts_max: int = 16
    first_delay_seconds: float = 3.0
    factor: float = 2.0
    delay_max_seconds: float = 21_600.0
    delays_seconds: tuple[float, ...] = ()
    max_age_seconds: float | None = None


class KeepAnswers(Struct, frozen=True):
    """A setting of a business: how much of the last answer to a task is kept, beside the beginning
    in its history. The names of headers are in lower case."""

    body_bytes: Annotated[int, Meta(ge=0)] = KEPT_BYTES_MAX
    headers: tuple[str, ...] = ()


class KeptAnswer(Struct, frozen=True, kw_only=True):
    """`is_whole`: whether `body` is all of the body."""

    at_ms: int
    status_code: int
    is_whole: bool
    headers: Mapping[str, str]
    body: str
