"""The client: the service's address, the caller's credentials, and the groups of calls."""

from collections.abc import AsyncIterator
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import httpx

from duewheel import whereabouts
from duewheel._async.businesses import AsyncBusinesses
from duewheel._async.keys import AsyncKeys
from duewheel._async.operations import AsyncOperations
from duewheel._async.tasks import AsyncTasks
from duewheel._async.timers import AsyncTimers
from duewheel._async.transport import AsyncTransport
from duewheel._async.work import AsyncWork
from duewheel.calls import reading
from duewheel.overviews import Overview
from duewheel.values import Finding, Health, Wheel

TIMEOUT_SECONDS = 35.0  # API Gateway answers after thirty in any case
CONNECT_SECONDS = 5.0
PATIENCE_SECONDS = 60.0  # the claim of a request that died ends after 45


class AsyncDuewheel:
    """`url` and the key default to `DUEWHEEL_URL` and `DUEWHEEL_KEY` of the environment, or else to
    the local stack's.

    `timeout_seconds` is for one request. `patience_seconds` is how long after its first try a call
    may be repeated; 0 means never. A `transport` of httpx replaces the network.
    """

    def __init__(
        self,
        url: str | None = None,
        auth: httpx.Auth | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = whereabouts.base_url(url)
        http = httpx.AsyncClient(
            auth=whereabouts.auth_or_key(auth),
            timeout=httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
            headers={"user-agent": whereabouts.USER_AGENT},
            transport=transport,
        )
        self._transport = AsyncTransport(
            http, self.url, timeout_seconds=timeout_seconds, patience_seconds=patience_seconds
        )
        self.tasks = AsyncTasks(self._transport)
        self.businesses = AsyncBusinesses(self._transport)
        self.timers = AsyncTimers(self._transport)
        self.operations = AsyncOperations(self._transport)
        self.keys = AsyncKeys(self._transport)

    def work(self, task_id: str, token: str) -> AsyncWork:
        """Work that goes on after a callback: its reports need the completion token of the
        callback, and no credentials."""
        return AsyncWork(self._transport, task_id, token)

    async def wheel(self) -> Wheel:
        return Wheel.read(await self._transport.send(reading("/v1/wheel")))

    async def overview(self, *, page_size: int = 50) -> AsyncIterator[Overview]:
        """What is wrong now, the last hour and the latest deaths: a value for each page of the
        businesses within reach."""
        async for page in self._transport.pages("/v1/overview", {"limit": page_size}):
            yield Overview.read(page)

    async def audit(
        self, *, begin: datetime | None = None, end: datetime | None = None
    ) -> AsyncIterator[Finding]:
        """The inconsistent items: none on a healthy wheel. By default of the last and the next
        hour."""
        query = {"from": begin, "to": end, "cursor": None}
        while True:
            page = await self._transport.send(reading("/v1/audit", query))
            for finding in page["findings"]:
                yield Finding.read(finding)
            if page["cursor"] is None:
                return
            query = {name: page[name] for name in query}

    async def health(self) -> Health:
        return Health.read(await self._transport.send(reading("/v1/health")))

    async def api_document(self) -> dict[str, Any]:
        """This deployment's description of its calls, in OpenAPI 3.1."""
        document: dict[str, Any] = await self._transport.send(reading("/v1/openapi.json"))
        return document

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"
