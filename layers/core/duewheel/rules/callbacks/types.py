"""What a callback may be, one type for each target, and how it is tried again."""

from msgspec import Struct


class HttpCallback(Struct, frozen=True):
    """`url` and `method` are empty where a task leaves them to its business. `is_raw`: the payload
    is a string, and its text is the body."""

    url: str = ""
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    is_raw: bool = False


class LambdaCallback(Struct, frozen=True):
    """`function` is a name or an ARN, with or without an alias or a version."""

    function: str
    waits: bool = True  # for the function's answer; else Lambda keeps the event and tries it


class SqsCallback(Struct, frozen=True):
    """`group_id` is there for a FIFO queue, and for no other."""

    queue_url: str
    group_id: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    is_raw: bool = False


class SnsCallback(Struct, frozen=True):
    """`group_id` is there for a FIFO topic, and for no other."""

    topic_arn: str
    group_id: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    is_raw: bool = False


class EventBridgeCallback(Struct, frozen=True):
    """`event_bus` is a name or an ARN."""

    event_bus: str
    source: str
    detail_type: str


# Where and what to deliver: data, not a function. One type for each target.
Callback = HttpCallback | LambdaCallback | SqsCallback | SnsCallback | EventBridgeCallback


class RetryPolicy(Struct, frozen=True):
    """Exponential, by default with full jitter, or, when `delays_seconds` is given, that explicit
    ladder. `max_age_seconds` counts from the due instant, or from the latest redrive."""

    attempts_max: int = 16
    first_delay_seconds: float = 3.0
    factor: float = 2.0
    delay_max_seconds: float = 21_600.0
    delays_seconds: tuple[float, ...] = ()
    has_jitter: bool = True
    max_age_seconds: float | None = None
