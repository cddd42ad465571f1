"""What the pictures show: an hour of three businesses behind them, and one ahead."""

import json
import urllib.request
from typing import Any

START = "2030-01-31T08:00:00Z"
MINUTE, HOUR = 60, 3600


class Story:
    def __init__(self, url: str) -> None:
        self.url = url

    def tell(self) -> dict[str, str]:
        """Afterwards it is two hours later. The ids of what has a page of its own."""
        self._businesses()
        timer = self._call("POST", "/v1/timers", self._report())["timer_id"]
        self._call("POST", f"/v1/timers/{timer}/enable")
        self._inbox("orders", {"status": 200})
        self._inbox("partner", {"status": 503})
        self._create("orders", [20 * n for n in range(1, 365)])
        self._create("mail", [90 * n + 7 for n in range(1, 82)])
        self._create(
            "partner", [600 * n for n in range(1, 9)], {"attempts": 3, "delays_seconds": [30]}
        )
        tried = self._task("partner", HOUR + 50 * MINUTE, {"delays_seconds": [5, 60, 1800]})
        self._call("POST", "/_local/clock", {"advance_seconds": 2 * HOUR})
        self._call("POST", "/v1/businesses/mail/pause")
        self._create("orders", [12 * n % HOUR + n for n in range(1, 290)])
        self._create("mail", [n * 77 for n in range(1, 40)])
        self._create("orders", [30 * MINUTE] * 45)
        return {"task": tried, "timer": timer}

    def _businesses(self) -> None:
        for biz_type, settings in {
            "orders": {"calls_per_second": 50},
            "mail": {"calls_in_flight": 10},
            "partner": {"timeout_seconds": 5, "retention_days": 90},
        }.items():
            callback = {"url": f"{self.url}/_local/inbox/{biz_type}"}
            self._call("PUT", f"/v1/businesses/{biz_type}", {"callback": callback, **settings})

    def _report(self) -> dict[str, Any]:
        return {
            "name": "daily-report",
            "biz_type": "mail",
            "cron": "30 8,18 * * *",
            "timezone": "Europe/Berlin",
            "payload": {"report": "orders"},
        }

    def _task(self, biz_type: str, in_seconds: int, retry: dict[str, Any]) -> str:
        task = self._new(biz_type, in_seconds, retry) | {"key": "order-17:settle"}
        return str(self._call("POST", "/v1/tasks", task)["task_id"])

    def _create(
        self, biz_type: str, in_seconds: list[int], retry: dict[str, Any] | None = None
    ) -> None:
        tasks = [self._new(biz_type, seconds, retry) for seconds in in_seconds]
        results = self._call("POST", "/v1/tasks/batch", {"tasks": tasks})["results"]
        assert {result["status"] for result in results} == {201}

    def _new(self, biz_type: str, in_seconds: int, retry: dict[str, Any] | None) -> dict[str, Any]:
        payload = {"order": 1000 + in_seconds, "note": "<b>as it was given</b>"}
        task = {"biz_type": biz_type, "delay_seconds": in_seconds, "payload": payload}
        return task if retry is None else {**task, "retry": retry}

    def _inbox(self, name: str, answers: dict[str, Any]) -> None:
        self._call("PUT", f"/_local/received/{name}", answers)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        raw = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, raw, method=method)
        with urllib.request.urlopen(request, timeout=300) as reply:
            return json.loads(reply.read() or b"null")
