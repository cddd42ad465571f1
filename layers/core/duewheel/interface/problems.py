"""Problem documents (RFC 9457): the one place where a refusal becomes an answer.

`type` is a stable name, `urn:duewheel:problem:` and the refusal's own; callers tell problems
apart by it and by nothing else.
"""

from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import Refusal, TooLate

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1  # with 503: long enough for a throttled partition to recover

Problem = dict[str, object]


def problem_of(refusal: Refusal) -> Problem:
    problem = _problem(refusal.type, refusal.title, refusal.status, refusal.detail)
    if refusal.field is not None:
        problem["field"] = refusal.field
    if isinstance(refusal, TooLate) and refusal.cut_off_ms is not None:
        problem["cut_off"] = rfc3339(refusal.cut_off_ms)
    return problem


def misconfigured(detail: str) -> Problem:
    return _problem("misconfigured", "This deployment is configured wrongly", 500, detail)


def internal(request_id: str) -> Problem:
    """Says where to look, and nothing of what went wrong."""
    detail = f"The log of the api function says more under request id {request_id}."
    return _problem("internal", "The service failed unexpectedly", 500, detail)


def _problem(name: str, title: str, status: int, detail: str) -> Problem:
    return {
        "type": f"urn:duewheel:problem:{name}",
        "title": title,
        "status": status,
        "detail": detail,
    }
