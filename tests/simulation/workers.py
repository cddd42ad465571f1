"""Receivers that work on after they have answered, and report the end: done, failed, after some
progress, or never."""

import contextvars
from asyncio import sleep
from random import Random
from typing import Any

from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER
from tests.simulation.receiver import ReportedEnd
from tests.simulation.service import Service

_TRIES = 20
_HOWS = ("complete", "complete", "fail", "progress", "silence")


class Workers:
    def __init__(self, service: Service, seed: int) -> None:
        self.reports = 0
        self._service = service
        self._chance = Random(seed)
        self._outside = contextvars.copy_context()  # of any invocation

    def begin(self, task_id: str, token: str) -> None:
        self._outside.copy().run(self._service.spawn, self._work(task_id, token))

    async def _work(self, task_id: str, token: str) -> None:
        how = self._chance.choice(_HOWS)
        await sleep(self._chance.choice((0.0, 0.1, 1.0, 10.0)) * self._chance.random())
        if how == "silence":
            return
        if how == "progress":
            await self._report(task_id, token, "progress", {"note": "half"})
            await sleep(self._chance.uniform(1, 10))
            how = "complete"
        status = await self._report(task_id, token, how, None)
        if how == "complete" and status == 200:
            self._service.receiver.completed.setdefault(task_id, self._service.seconds())

    async def _report(self, task_id: str, token: str, kind: str, body: Any) -> int | None:
        """Until it is answered, as the client does."""
        path, begun = f"/v1/tasks/{task_id}/{kind}", self._service.seconds()
        for _ in range(_TRIES):
            reply = await self._service.request("POST", path, body, {TOKEN_HEADER: token})
            if reply is not None and reply[0] < 500:
                assert reply[0] in (200, 409), reply
                self.reports += 1
                if reply[0] == 200 and kind != "progress":
                    end = ReportedEnd(task_id, begun, self._service.seconds())
                    self._service.receiver.ends.append(end)
                return reply[0]
            await sleep(self._chance.uniform(0.5, 3))
        return None
