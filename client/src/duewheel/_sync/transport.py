# Made of _async/transport.py by make_sync.py; change that.
"""Sends calls, and repeats them if that is safe. No other module of this package waits."""

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from duewheel.answers import no_answer, read_answer
from duewheel.calls import Call, reading
from duewheel.retrying import Failure, Tries


class Transport:
    def __init__(
        self, http: httpx.Client, url: str, *, timeout_seconds: float, patience_seconds: float
    ) -> None:
        self._http = http
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = patience_seconds

    def send(self, call: Call) -> Any:
        """The answer's JSON."""
        tries = Tries(call, self._patience_seconds, self._timeout_seconds, random.random)
        begun = time.monotonic()
        while True:
            answer = self._try(call)
            if not isinstance(answer, Failure):
                return answer
            self.pause(tries.pause_after(answer, time.monotonic() - begun))

    def pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        """Every page of a list. An empty page may be followed by others."""
        cursor = None
        while True:
            page = self.send(reading(path, {**query, "cursor": cursor}))
            yield page
            cursor = page["cursor"]
            if cursor is None:
                return

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    @property
    def patience_seconds(self) -> float:
        return self._patience_seconds

    def close(self) -> None:
        self._http.close()

    def _try(self, call: Call) -> Any:
        headers = {**call.headers, **({"content-type": "application/json"} if call.content else {})}
        try:
            response = self._http.request(
                call.method, self._url + call.path, content=call.content or None, headers=headers
            )
        except httpx.RequestError as error:
            return no_answer(error, self._url)
        return read_answer(response)
