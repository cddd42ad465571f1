"""Those who cancel or move a task late: its receiver is slow at first, a second message may have
led to another attempt, and the answer to the first comes after the request."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from tests.simulation.ledger import Asked, DueAsked, Known
from tests.support.clock import NOON_MS

LATE_MINDS = "late-minds"
FIRST_CALL_SECONDS = 18

Ask = Callable[[str, str, Any], Awaitable[tuple[Asked, Any]]]


class LateMinds:
    def __init__(self, chance: Random, ask: Ask, note: Callable[[Asked, Any], Known]) -> None:
        self._chance = chance
        self._ask = ask
        self._note = note

    async def live(self, tasks: int, seconds: float) -> None:
        stories = [self._change_mind(self._chance.uniform(0, seconds)) for _ in range(tasks)]
        await asyncio.gather(*stories)

    async def _change_mind(self, after_seconds: float) -> None:
        await asyncio.sleep(after_seconds)
        asked, answer = await self._ask("POST", "/v1/tasks", self._task())
        if not asked.is_granted:
            return
        known = self._note(asked, answer)
        await asyncio.sleep(self._chance.uniform(FIRST_CALL_SECONDS / 2, FIRST_CALL_SECONDS))
        path = f"/v1/tasks/{known.task_id}"
        if self._chance.random() < 0.5:
            asked, _ = await self._ask("DELETE", path, None)
            known.cancels.append(asked)
            return
        due_ms = NOON_MS + round((asked.begun_seconds + self._chance.uniform(60, 90)) * 1000)
        asked, _ = await self._ask("PATCH", path, {"due_ms": due_ms})
        due = DueAsked(asked.begun_seconds, asked.answered_seconds, asked.status, due_ms)
        known.dues.append(due)
        known.called_again.append(asked)

    def _task(self) -> dict[str, Any]:
        then = self._chance.choice(("works", "busy"))
        url = f"https://receiver.example/slow-first/{FIRST_CALL_SECONDS}/{then}"
        return {
            "biz_type": LATE_MINDS,
            "delay_seconds": round(self._chance.random(), 3),
            "callback": {"url": url, "timeout_seconds": FIRST_CALL_SECONDS + 7},
            "retry": {"attempts": 6, "delays_seconds": [30]},
        }
