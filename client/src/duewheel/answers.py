"""The result of one request: the JSON of its answer, or a failure."""

import json
from typing import Any

import httpx

from duewheel.errors import UnexpectedAnswer, Unreachable, problem_from
from duewheel.retrying import Failure

NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
)


def read_answer(response: httpx.Response) -> Any:
    """The decoded body, or a `Failure`."""
    if response.status_code == httpx.codes.NO_CONTENT:
        return None
    if response.is_success:
        try:
            return response.json()
        except ValueError as error:
            raise UnexpectedAnswer(f"The answer of {response.url.host} is no JSON") from error
    try:
        body = json.loads(response.content)
    except ValueError:
        body = None
    return Failure(
        problem_from(response.status_code, body),
        retry_after_seconds=_retry_after_seconds(response.headers.get("retry-after", "")),
    )


def no_answer(error: httpx.RequestError, url: str) -> Failure:
    """The kind of the error decides whether the request can have been sent."""
    unreachable = Unreachable(f"No answer from {url}: {type(error).__name__}: {error}")
    unreachable.__cause__ = error
    return Failure(unreachable, was_sent=not isinstance(error, NOT_SENT))


def _retry_after_seconds(text: str) -> float:
    """The service and API Gateway write seconds; a date would be a proxy's."""
    return float(text) if text.isascii() and text.isdecimal() else 0.0
