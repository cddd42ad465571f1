"""A private local stack whose clock is frozen until the test advances it.

Invariant: it has no state in common with another one, and ends with its block or with this process.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import httpx

from duewheel import Duewheel
from duewheel.answers import read_answer
from duewheel.instants import Seconds, instant_from, seconds_of
from duewheel.local_stack import LocalStack
from duewheel.retrying import Failure
from duewheel.testing.spans import span_seconds

ADVANCE_SECONDS_MAX = 600.0  # of real time


@dataclass(frozen=True, kw_only=True)
class Received:
    """A request that an inbox received. The names of its headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    received_at: datetime

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class FrozenStack:
    """`with FrozenStack() as stack:` starts a stack whose clock shows now, or `start_at`.

    `url` is its address, `client` a `Duewheel` of it.
    """

    def __init__(self, start_at: datetime | None = None) -> None:
        self._stack = LocalStack(frozen_at=start_at or datetime.now(UTC))

    @property
    def now(self) -> datetime:
        return instant_from(self._ask("GET", "/clock")["now"])

    def advance(self, span: str | Seconds) -> int:
        """Move the clock ahead. Returns how many tasks were delivered, each at its instant, with
        retries."""
        body = {"advance_seconds": span_seconds(span)}
        delivered: int = self._ask("POST", "/clock", body)["delivered"]
        return delivered

    def inbox_url(self, name: str) -> str:
        """An address for callbacks: it stores requests, and answers 200 or as set by `answer`."""
        return f"{self.url}/_local/inbox/{name}"

    def inbox(self, name: str) -> list[Received]:
        """The requests so far, in order."""
        return [_received(each) for each in self._ask("GET", f"/received/{name}")["requests"]]

    def answer(
        self,
        name: str,
        *,
        status: int = 200,
        times: int | None = None,
        delay: Seconds = 0,
        headers: Mapping[str, str] | None = None,
        body: str = "",
    ) -> None:
        """Set the answer to the next `times` calls, then 200, or to all later calls. A `delay`
        passes in real time."""
        answer = {
            "status": status,
            "headers": dict(headers or {}),
            "delay_ms": round(seconds_of(delay) * 1000),
            **({"body": body} if body else {}),
            **({} if times is None else {"times": times}),
        }
        self._ask("PUT", f"/received/{name}", answer)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        answer = read_answer(self._http.request(method, f"/_local{path}", json=body))
        if isinstance(answer, Failure):
            raise answer.error
        return answer

    def __enter__(self) -> Self:
        self._stack.start()
        self.url = self._stack.url
        no_auth = httpx.Auth()  # instead of a key in the environment, which is for another stack
        self.client = Duewheel(self.url, no_auth)
        self._http = httpx.Client(base_url=self.url, timeout=ADVANCE_SECONDS_MAX)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()
        self.client.close()
        self._stack.stop()


def _received(request: Mapping[str, Any]) -> Received:
    return Received(
        method=request["method"],
        path=request["path"],
        headers=request["headers"],
        body=request["body"].encode(),
        received_at=instant_from(request["received_at"]),
    )
