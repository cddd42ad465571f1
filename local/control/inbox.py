"""A receiver of callbacks of all types: stores them, and gives the configured answers.

Invariant: requests are numbered by arrival: storing a request and choosing its answer is one step.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from duewheel.rules.instants import rfc3339
from local.aws.http_api import Request
from local.control.problems import BadInput

DELAY_MS_MAX = 600_000
_SET_BY_THE_SERVER = {"connection", "content-length", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_ms: int = 0
    times: int | None = None  # None: until it is changed
    body: str = ""

    def as_json(self) -> dict[str, Any]:
        shown = {"status": self.status, "headers": self.headers, "delay_ms": self.delay_ms}
        times = {} if self.times is None else {"times": self.times}
        return {**shown, **times, **({"body": self.body} if self.body else {})}


@dataclass(slots=True)
class _Box:
    received: list[dict[str, Any]] = field(default_factory=list)
    answer: Answer = field(default_factory=Answer)
    answers_left: int | None = None


class Inbox:
    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._lock = Lock()
        self._boxes: defaultdict[str, _Box] = defaultdict(_Box)

    def receive(self, name: str, request: Request) -> Answer:
        body = request.body.decode(errors="replace")
        return self.take(name, request.method, request.target, request.joined_headers(), body)

    def take(
        self,
        name: str,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: str,
        at_ms: int | None = None,
    ) -> Answer:
        """`at_ms`: its arrival, if that was before now."""
        with self._lock:
            box = self._boxes[name]
            box.received.append(
                {
                    "method": method,
                    "path": path,
                    "headers": headers,
                    "body": body,
                    "received_at": rfc3339(self._now_ms() if at_ms is None else at_ms),
                }
            )
            if box.answers_left is None:
                return box.answer
            if box.answers_left == 0:
                return Answer()
            box.answers_left -= 1
            return box.answer

    def received(self, name: str) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._boxes[name].received) if name in self._boxes else []

    def answer_with(self, name: str, answer: Answer) -> None:
        with self._lock:
            self._boxes[name].answer = answer
            self._boxes[name].answers_left = answer.times

    def forget(self, name: str) -> None:
        with self._lock:
            self._boxes.pop(name, None)


def answer_from(body: Mapping[str, Any]) -> Answer:
    """The body of `PUT /_local/received/{name}`; unknown members are refused."""
    unknown = sorted(set(body) - {"status", "headers", "delay_ms", "times", "body"})
    if unknown:
        raise BadInput("is not known here", unknown[0])
    headers = body.get("headers", {})
    if not isinstance(headers, dict) or not all(
        _is_header(name, value) for name, value in headers.items()
    ):
        raise BadInput(
            "must be an object of header names, none that frames the reply, and texts of one line",
            "headers",
        )
    text = body.get("body", "")
    if not isinstance(text, str):
        raise BadInput("must be a text", "body")
    return Answer(
        _whole_number(body, "status", 200, 200, 599),
        headers,
        _whole_number(body, "delay_ms", 0, 0, DELAY_MS_MAX),
        _whole_number(body, "times", 1, 1, 1_000_000) if "times" in body else None,
        text,
    )


def _is_header(name: str, value: object) -> bool:
    is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if name.lower() in _SET_BY_THE_SERVER:
        return False
    return is_name and isinstance(value, str) and value.isascii() and value.isprintable()


def _whole_number(body: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = body.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadInput(f"must be a whole number from {least} to {most}", name)
    return value
