"""Timers: definitions that produce tasks."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Literal, Unpack

from duewheel._async.transport import AsyncTransport
from duewheel.calls import (
    ALWAYS,
    NEVER,
    asking,
    changing,
    once_of,
    part,
    query_text,
    reading,
    version_header,
)
from duewheel.instants import instant_from, plain
from duewheel.requests import Schedule, TimerChange, TimerFields, label_texts, settings_body
from duewheel.values import Change, Task, Timer, read_changes


class AsyncTimers:
    """With `if_match`, a call is carried out only if the timer still has this version."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, biz_type: str, name: str, *, once: bool | str = False, **fields: Unpack[TimerFields]
    ) -> Timer:
        """`cron` or `every_seconds` is needed. A lost answer raises `OutcomeUnknown`, since a
        repeat would make a second timer, unless `once` is true, or an idempotency key."""
        body = {"biz_type": biz_type, "name": name, **settings_body(fields, "callback")}
        call = changing("POST", "/v1/timers", body, **once_of(once))
        return Timer.read(await self._transport.send(call))

    async def put(
        self,
        biz_type: str,
        name: str,
        *,
        if_match: int | None = None,
        dry_run: bool = False,
        **fields: Unpack[TimerFields],
    ) -> Timer:
        """Make the timer of this name, or change it to this definition; fields that are left out
        have their defaults. `dry_run`: the timer as it would be, and nothing is changed."""
        path = _named(biz_type, name) + query_text({"dry_run": dry_run or None})
        return await self._changed("PUT", path, if_match, settings_body(fields, "callback"))

    async def get_by_name(self, biz_type: str, name: str) -> Timer:
        return Timer.read(await self._transport.send(reading(_named(biz_type, name))))

    async def delete_by_name(
        self, biz_type: str, name: str, *, if_match: int | None = None
    ) -> None:
        headers = version_header(if_match)
        await self._transport.send(changing("DELETE", _named(biz_type, name), headers=headers))

    async def get(self, timer_id: str) -> Timer:
        return Timer.read(await self._transport.send(reading(_path(timer_id))))

    async def list(
        self,
        biz_type: str | None = None,
        *,
        name_prefix: str | None = None,
        state: Literal["enabled", "disabled", "ended"] | None = None,
        labels: Mapping[str, str] | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Timer]:
        """Timers that have all these labels, ordered by name; without a business those of all
        within reach, by business."""
        query = {
            "biz_type": biz_type,
            "name_prefix": name_prefix,
            "state": state,
            "label": label_texts(labels),
            "limit": page_size,
        }
        async for page in self._transport.pages("/v1/timers", query):
            for timer in page["timers"]:
                yield Timer.read(timer)

    async def change(
        self, timer_id: str, *, if_match: int | None = None, **fields: Unpack[TimerChange]
    ) -> Timer:
        """Change the named fields. From cron to an interval: name both, one of them None."""
        body = settings_body(fields, "callback")
        return await self._changed("PATCH", _path(timer_id), if_match, body)

    async def enable(self, timer_id: str, *, if_match: int | None = None) -> Timer:
        return await self._changed("POST", _path(timer_id, "/enable"), if_match)

    async def disable(self, timer_id: str, *, if_match: int | None = None) -> Timer:
        return await self._changed("POST", _path(timer_id, "/disable"), if_match)

    async def delete(self, timer_id: str, *, if_match: int | None = None) -> None:
        headers = version_header(if_match)
        await self._transport.send(changing("DELETE", _path(timer_id), headers=headers))

    async def run(self, timer_id: str, *, once: bool | str = False) -> Task:
        """Make one call of it now, enabled or not. `once` as in `create`."""
        call = changing("POST", _path(timer_id, "/run"), **once_of(once))
        return Task.read(await self._transport.send(call))

    async def upcoming(self, timer_id: str, *, count: int = 10) -> tuple[datetime, ...]:
        call = reading(_path(timer_id, "/upcoming"), {"count": count})
        return _instants(await self._transport.send(call))

    async def preview(
        self, *, count: int = 10, begin: datetime | None = None, **schedule: Unpack[Schedule]
    ) -> tuple[datetime, ...]:
        """The next instants of a schedule, without a timer."""
        body = {**plain(schedule), "count": count}
        if begin is not None:
            body["from"] = plain(begin)
        return _instants(await self._transport.send(asking("/v1/timers/upcoming", body)))

    async def runs(
        self, timer_id: str, *, status: str | None = None, page_size: int = 100
    ) -> AsyncIterator[Task]:
        """Its occurrences up to now, the latest first."""
        query = {"status": status, "limit": page_size}
        async for page in self._transport.pages(_path(timer_id, "/runs"), query):
            for task in page["tasks"]:
                yield Task.read(task)

    async def changes(self, timer_id: str) -> tuple[Change, ...]:
        """The last ten, the latest first; also of one that was deleted lately."""
        answer = await self._transport.send(reading(_path(timer_id, "/changes")))
        return read_changes(answer)

    async def _changed(
        self, method: str, path: str, version: int | None, body: dict[str, Any] | None = None
    ) -> Timer:
        """With a version it is not repeated: the first request changes the version, so that a
        repeat would be refused."""
        repeatable_seconds = ALWAYS if version is None else NEVER
        headers = version_header(version)
        call = changing(method, path, body, headers=headers, repeatable_seconds=repeatable_seconds)
        return Timer.read(await self._transport.send(call))


def _path(timer_id: str, below: str = "") -> str:
    return f"/v1/timers/{part(timer_id)}{below}"


def _named(biz_type: str, name: str) -> str:
    return f"/v1/timers/by-name/{part(biz_type)}/{part(name)}"


def _instants(answer: Any) -> tuple[datetime, ...]:
    return tuple(instant_from(text) for text in answer["upcoming"])
