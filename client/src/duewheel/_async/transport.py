"""Sends calls, and repeats them if that is safe. No other module of this package waits."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from duewheel.answers import no_answer, read_answer
from duewheel.calls import Call, reading
from duewheel.retrying import Failure, Tries


class AsyncTransport:
    def __init__(
        self, http: httpx.AsyncClient, url: str, *, timeout_seconds: float, patience_seconds: float
    ) -> None:
        self._http = http
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = patience_seconds

    async def send(self, call: Call) -> Any:
        """The answer's JSON."""
        tries = Tries(call, self._patience_seconds, self._timeout_seconds, random.random)
        begun = time.monotonic()
        while True:
            answer = await self._try(call)
            if not isinstance(answer, Failure):
                return answer
            await self.pause(tries.pause_after(answer, time.monotonic() - begun))

    async def pages(self, path: str, query: Mapping[str, Any]) -> AsyncIterator[Any]:
        """Every page of a list. An empty page may be followed by others."""
        cursor = None
        while True:
            page = await self.send(reading(path, {**query, "cursor": cursor}))
            yield page
            cursor = page["cursor"]
            if cursor is None:
                return

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @property
    def patience_seconds(self) -> float:
        return self._patience_seconds

    async def close(self) -> None:
        await self._http.aclose()

    async def _try(self, call: Call) -> Any:
        headers = {**call.headers, **({"content-type": "application/json"} if call.content else {})}
        try:
            response = await self._http.request(
                call.method, self._url + call.path, content=call.content or None, headers=headers
            )
        except httpx.RequestError as error:
            return no_answer(error, self._url)
        return read_answer(response)
