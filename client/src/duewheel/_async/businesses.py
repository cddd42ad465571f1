"""Businesses: their settings, their pause, their dead tasks, their statistics."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Unpack

from duewheel._async.transport import AsyncTransport
from duewheel.calls import ALWAYS, NEVER, changing, part, reading, version_header
from duewheel.requests import BusinessSettings, settings_body
from duewheel.values import (
    Business,
    BusinessDeleted,
    Change,
    Statistics,
    Task,
    read_changes,
)


class AsyncBusinesses:
    """With `if_match`, a call is carried out only if the business still has this version."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def configure(
        self, biz_type: str, *, if_match: int | None = None, **settings: Unpack[BusinessSettings]
    ) -> Business:
        """Set the named settings and keep the rest; None restores a default."""
        body = settings_body(settings, "callback")
        return await self._changed("PUT", _path(biz_type), if_match, body)

    async def get(self, biz_type: str) -> Business:
        return Business.read(await self._transport.send(reading(_path(biz_type))))

    async def list(self, *, page_size: int = 100) -> AsyncIterator[Business]:
        """The businesses with settings, or with tasks in the last 90 days, ordered by name."""
        async for page in self._transport.pages("/v1/businesses", {"limit": page_size}):
            for business in page["businesses"]:
                yield Business.read(business)

    async def pause(self, biz_type: str, *, if_match: int | None = None) -> Business:
        return await self._changed("POST", _path(biz_type, "/pause"), if_match)

    async def resume(self, biz_type: str, *, if_match: int | None = None) -> Business:
        return await self._changed("POST", _path(biz_type, "/resume"), if_match)

    async def probe(self, biz_type: str, host: str) -> Business:
        """Let the next due call try a host whose breaker is open."""
        call = changing(
            "POST", _path(biz_type, "/probe"), {"host": host}, repeatable_seconds=ALWAYS
        )
        return Business.read(await self._transport.send(call))

    async def pause_key(
        self, biz_type: str, flow_key: str, *, if_match: int | None = None
    ) -> Business:
        """Park the tasks of this flow key when they fall due, until it is resumed."""
        body: dict[str, object] = {"paused_flow_keys": {flow_key: True}}
        return await self._changed("PUT", _path(biz_type), if_match, body)

    async def resume_key(
        self, biz_type: str, flow_key: str, *, if_match: int | None = None
    ) -> Business:
        body: dict[str, object] = {"paused_flow_keys": {flow_key: None}}
        return await self._changed("PUT", _path(biz_type), if_match, body)

    async def changes(self, biz_type: str) -> tuple[Change, ...]:
        """The last ten, the latest first; also of one that was deleted lately."""
        answer = await self._transport.send(reading(_path(biz_type, "/changes")))
        return read_changes(answer)

    async def delete(
        self, biz_type: str, *, cancel_pending: bool = False, cursor: str | None = None
    ) -> BusinessDeleted:
        """Delete one page. While `done` is false, call it again with the returned cursor."""
        query = {"cancel_pending": cancel_pending or None, "cursor": cursor}
        call = changing("DELETE", _path(biz_type), query=query)
        return BusinessDeleted.read(await self._transport.send(call))

    async def dead(
        self,
        biz_type: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        status_code: int | None = None,
        last_error: str | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Task]:
        """Dead tasks, the latest death first."""
        query = {
            "since": since,
            "until": until,
            "reason": reason,
            "status_code": status_code,
            "last_error": last_error,
            "limit": page_size,
        }
        async for page in self._transport.pages(_path(biz_type, "/dead"), query):
            for task in page["tasks"]:
                yield Task.read(task)

    async def statistics(
        self, biz_type: str, *, begin: datetime | None = None, end: datetime | None = None
    ) -> Statistics:
        """Its statistics by minute, `end` excluded; by default the hour up to now."""
        call = reading(_path(biz_type, "/stats"), {"from": begin, "to": end})
        return Statistics.read(await self._transport.send(call))

    async def _changed(
        self, method: str, path: str, version: int | None, body: dict[str, object] | None = None
    ) -> Business:
        """With a version it is not repeated: the first request changes the version, so that a
        repeat would be refused."""
        repeatable_seconds = ALWAYS if version is None else NEVER
        headers = version_header(version)
        call = changing(method, path, body, headers=headers, repeatable_seconds=repeatable_seconds)
        return Business.read(await self._transport.send(call))


def _path(biz_type: str, below: str = "") -> str:
    return f"/v1/businesses/{part(biz_type)}{below}"
