"""Problem documents (RFC 9457): the one place where a refusal becomes an answer.

`type` is a stable name, `urn:duewheel:problem:` and the refusal's own; it alone identifies the
problem to callers.
"""

from duewheel.interface.http import Answer, compact
from duewheel.rules.callbacks.outcome import STOP_HEADER
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import (
    CallbackRefused,
    IdempotencyKeyInUse,
    MethodNotAllowed,
    NotRedrivable,
    Refusal,
    TooLate,
    TooManyCreates,
    TooManyOperations,
    Unavailable,
)

PROBLEM_JSON = "application/problem+json"
URN = "urn:duewheel:problem:"
RETRY_AFTER_SECONDS = 1  # long enough for a throttled partition to recover


def refused(refusal: Refusal) -> Answer:
    headers = {}
    if isinstance(refusal, MethodNotAllowed):
        headers["allow"] = refusal.allow
    if isinstance(refusal, Unavailable | IdempotencyKeyInUse):
        headers["retry-after"] = str(RETRY_AFTER_SECONDS)
    if isinstance(refusal, TooManyCreates | TooManyOperations):
        headers["retry-after"] = str(refusal.retry_after_seconds)
    if isinstance(refusal, CallbackRefused):
        headers[STOP_HEADER] = "true"  # another attempt would get the same answer
    return Answer(
        refusal.status, compact(problem_of(refusal)), content_type=PROBLEM_JSON, headers=headers
    )


def misconfigured(detail: str) -> Answer:
    """For the operator: the detail says what to correct."""
    return _failed("misconfigured", "This deployment is configured wrongly", detail)


def internal(request_id: str) -> Answer:
    """The answer names the log record, and gives no details of the error."""
    detail = f"The function's log says more under request id {request_id}."
    return _failed("internal", "The service failed unexpectedly", detail)


def problem_of(refusal: Refusal) -> dict[str, object]:
    problem = _problem(refusal.type, refusal.title, refusal.status, refusal.detail)
    if refusal.field is not None:
        problem["field"] = refusal.field
    if isinstance(refusal, TooLate) and refusal.cut_off_ms is not None:
        problem["cut_off"] = rfc3339(refusal.cut_off_ms)
    if isinstance(refusal, NotRedrivable) and refusal.redrivable_ms is not None:
        problem["redrivable_at"] = rfc3339(refusal.redrivable_ms)
    if isinstance(refusal, TooManyCreates):
        problem["retry_after_seconds"] = refusal.retry_after_seconds  # a batch has no header for it
    return problem


def _failed(name: str, title: str, detail: str) -> Answer:
    return Answer(500, compact(_problem(name, title, 500, detail)), content_type=PROBLEM_JSON)


def _problem(name: str, title: str, status: int, detail: str) -> dict[str, object]:
    return {
        "type": f"{URN}{name}",
        "title": title,
        "status": status,
        "detail": detail,
    }
