"""A client of a local stack over HTTP, for end-to-end tests."""

import json
import urllib.error
import urllib.request
from datetime import datetime
from typing import Any


class Service:
    def __init__(self, url: str, key: str | None = None) -> None:
        self.url = url
        self.key = key

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"} | self._bearer(),
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def _bearer(self) -> dict[str, str]:
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

    def create(self, inbox: str, **due: Any) -> dict[str, Any]:
        status, task = self.call("POST", "/v1/tasks", self.new_task(inbox, **due))
        assert status == 201, task
        return task

    def new_task(self, inbox: str, **more: Any) -> dict[str, Any]:
        return {
            "biz_type": "orders",
            "callback": {"url": f"{self.url}/_local/inbox/{inbox}"},
            **more,
        }

    def task(self, task: dict[str, Any]) -> dict[str, Any]:
        return self.call("GET", f"/v1/tasks/{task['task_id']}")[1]

    def received(self, inbox: str) -> list[dict[str, Any]]:
        return self.call("GET", f"/_local/received/{inbox}")[1]["requests"]

    def received_at_ms(self, inbox: str) -> list[int]:
        return [ms_of(request["received_at"]) for request in self.received(inbox)]

    def advance(self, seconds: float) -> int:
        status, answer = self.call("POST", "/_local/clock", {"advance_seconds": seconds})
        assert status == 200, answer
        return answer["delivered"]

    def now_ms(self) -> int:
        return ms_of(self.call("GET", "/_local/clock")[1]["now"])


def ms_of(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
