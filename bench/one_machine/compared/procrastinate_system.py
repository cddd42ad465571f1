"""Procrastinate with PostgreSQL, each call a job with `schedule_at`.

Its worker polls for due jobs, by default every five seconds.
"""

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import aiohttp
from procrastinate import App, PsycopgConnector

from bench.one_machine.compared.calling import BODY, HEADERS, THREADS
from bench.one_machine.compared.driver import serve

STALLED_SECONDS = 30  # since the last heartbeat of a worker; its default

app = App(connector=PsycopgConnector(conninfo=os.environ["POSTGRES_URL"]))
_sessions: list[aiohttp.ClientSession] = []


@app.task(name="bench.call")
async def call_sink(url: str, payload: str) -> None:
    if not _sessions:
        _sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=THREADS)))
    async with _sessions[0].post(url, data=BODY, headers=HEADERS) as reply:
        if reply.status != 200:
            raise RuntimeError(f"the sink answered {reply.status}")


class ProcrastinateSystem:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(app.open_async())

    def create(self, due_ms: int, url: str) -> Any:
        deferring = _due(due_ms).defer_async(url=url, payload=BODY.decode())
        return self._loop.run_until_complete(deferring)

    def create_batch(self, due_ms: int, urls: Sequence[str]) -> None:
        jobs: list[Any] = [{"url": url, "payload": BODY.decode()} for url in urls]
        self._loop.run_until_complete(_due(due_ms).batch_defer_async(*jobs))

    def cancel(self, identifier: Any) -> bool:
        cancelling = app.job_manager.cancel_job_by_id_async(identifier)
        return self._loop.run_until_complete(cancelling)

    def waiting(self) -> int:
        jobs = self._loop.run_until_complete(app.job_manager.list_jobs_async(status="todo"))
        return len(list(jobs))

    def mend(self) -> int:
        """The recipe of its documentation for jobs whose worker crashed."""
        return self._loop.run_until_complete(_retry_stalled())


def _due(due_ms: int) -> Any:
    return call_sink.configure(schedule_at=datetime.fromtimestamp(due_ms / 1000, UTC))


async def _retry_stalled() -> int:
    stalled = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS)
    jobs = [*stalled]
    for job in jobs:
        await app.job_manager.retry_job(job)
    return len(jobs)


if __name__ == "__main__":
    serve(ProcrastinateSystem())
