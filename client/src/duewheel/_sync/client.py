# Made of _async/client.py by make_sync.py; change that.
"""The client: the service's address, the caller's credentials, and the groups of calls."""

from collections.abc import Iterator
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import httpx

from duewheel import whereabouts
from duewheel._sync.businesses import Businesses
from duewheel._sync.keys import Keys
from duewheel._sync.operations import Operations
from duewheel._sync.tasks import Tasks
from duewheel._sync.timers import Timers
from duewheel._sync.transport import Transport
from duewheel._sync.work import Work
from duewheel.calls import reading
from duewheel.overviews import Overview
from duewheel.values import Finding, Health, Wheel

TIMEOUT_SECONDS = 35.0  # API Gateway answers after thirty in any case
CONNECT_SECONDS = 5.0
PATIENCE_SECONDS = 60.0  # the claim of a request that died ends after 45


class Duewheel:
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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = whereabouts.base_url(url)
        http = httpx.Client(
            auth=whereabouts.auth_or_key(auth),
            timeout=httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
            headers={"user-agent": whereabouts.USER_AGENT},
            transport=transport,
        )
        self._transport = Transport(
            http, self.url, timeout_seconds=timeout_seconds, patience_seconds=patience_seconds
        )
        self.tasks = Tasks(self._transport)
        self.businesses = Businesses(self._transport)
        self.timers = Timers(self._transport)
        self.operations = Operations(self._transport)
        self.keys = Keys(self._transport)

    def work(self, task_id: str, token: str) -> Work:
        """Work that goes on after a callback: its reports need the completion token of the
        callback, and no credentials."""
        return Work(self._transport, task_id, token)

    def wheel(self) -> Wheel:
        return Wheel.read(self._transport.send(reading("/v1/wheel")))

    def overview(self, *, page_size: int = 50) -> Iterator[Overview]:
        """What is wrong now, the last hour and the latest deaths: a value for each page of the
        businesses within reach."""
        for page in self._transport.pages("/v1/overview", {"limit": page_size}):
            yield Overview.read(page)

    def audit(
        self, *, begin: datetime | None = None, end: datetime | None = None
    ) -> Iterator[Finding]:
        """The inconsistent items: none on a healthy wheel. By default of the last and the next
        hour."""
        query = {"from": begin, "to": end, "cursor": None}
        while True:
            page = self._transport.send(reading("/v1/audit", query))
            for finding in page["findings"]:
                yield Finding.read(finding)
            if page["cursor"] is None:
                return
            query = {name: page[name] for name in query}

    def health(self) -> Health:
        return Health.read(self._transport.send(reading("/v1/health")))

    def api_document(self) -> dict[str, Any]:
        """This deployment's description of its calls, in OpenAPI 3.1."""
        document: dict[str, Any] = self._transport.send(reading("/v1/openapi.json"))
        return document

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"
