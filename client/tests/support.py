"""A scripted service, and the stack's own inbox and clock."""

from datetime import timedelta
from typing import Any

import httpx

TASK = {
    "task_id": "AQG5dxdnQAAAeOt8N-CZJxW76LPH",
    "biz_type": "orders",
    "status": "pending",
    "due_at": "2030-01-31T08:30:00.000Z",
}

OPERATION = {
    "operation_id": "OP1",
    "biz_type": "orders",
    "action": "cancel",
    "state": "done",
    "dry_run": False,
    "looked_at": 0,
    "changed": 0,
    "unchanged": 0,
    "refused": 0,
    "total": None,
}

Answer = httpx.Response | Exception


def plain_http() -> httpx.HTTPTransport:
    """For services of this machine: reads no certificates, which would take long."""
    return httpx.HTTPTransport(verify=False)


HTTP = httpx.Client(timeout=60, transport=plain_http())


class Script:
    """Answers requests with the given answers in order, then with the last one, and records
    them."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        # A response can be read once, so each request gets a new one.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self)

    def headers(self, name: str) -> list[str | None]:
        return [request.headers.get(name) for request in self.requests]


def made(status: int = 201, **members: Any) -> httpx.Response:
    return httpx.Response(status, json={**TASK, **members})


def operation(status: int = 200, **members: Any) -> httpx.Response:
    return httpx.Response(status, json={**OPERATION, **members})


def problem(name: str, status: int, **members: Any) -> httpx.Response:
    after = {"retry-after": str(members.pop("retry_after"))} if "retry_after" in members else {}
    body = {"type": f"urn:duewheel:problem:{name}", "title": name, "status": status, **members}
    return httpx.Response(status, json={"detail": "Just so.", **body}, headers=after)


def gateway(status: int, message: str = "Just so") -> httpx.Response:
    return httpx.Response(status, json={"message": message})


def advance(url: str, span: timedelta) -> None:
    body = {"advance_seconds": span.total_seconds()}
    HTTP.post(f"{url}/_local/clock", json=body).raise_for_status()


def received(url: str, name: str) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = HTTP.get(f"{url}/_local/received/{name}").json()["requests"]
    return requests
