"""The answers of the local routes to invalid input."""

import json

from local.aws.http_api import Reply


class BadInput(Exception):
    """The caller's mistake; `detail` follows the field's name if there is one."""

    def __init__(self, detail: str, field: str | None = None, status: int = 422) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.status = status


_TITLES = {
    400: "The body is not the JSON that this call takes",
    404: "There is no such local call",
    405: "The local call does not know this method",
    409: "This cannot be done here",
    422: "A field is unknown or has a value that is not allowed",
}


def problem_reply(error: BadInput) -> Reply:
    problem: dict[str, object] = {
        "type": "local-call",
        "title": _TITLES[error.status],
        "status": error.status,
        "detail": f"{error.field} {error.detail}." if error.field else error.detail,
    }
    if error.field:
        problem["field"] = error.field
    return json_reply(error.status, problem, "application/problem+json")


def json_reply(status: int, value: object, content_type: str = "application/json") -> Reply:
    body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return Reply(status, body, (("Content-Type", content_type),))
