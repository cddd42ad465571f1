"""Those who own businesses: each, by chance, pauses one, changes its limits, or has a timer."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from duewheel.rules.instants import rfc3339
from tests.simulation.ledger import Asked, KnownTimer, Ledger, Pause
from tests.support.clock import NOON_MS

PAUSED = ("orders", "parcels", "limited")  # by chance
LIMITED = "limited"  # by calls a second
NARROW = "narrow"  # by calls in flight, and a rate
IN_FLIGHT = 2
KEYED = "keyed"  # by calls a second of each flow key; single keys are paused
KEYS = ("eu/1", "eu/2", "us/1")
TOLD = "invoices"  # of each outcome of its tasks
ON_OUTCOME = {
    "outcomes": ["delivered", "dead", "expired", "cancelled", "missed"],
    "callback": {"url": "https://receiver.example/busy/1"},
}
DORMANT = "dormant"  # paused for a day and longer
TIMERS_LAST_SECONDS = (5, 60)

Ask = Callable[[str, str, Any], Awaitable[tuple[Asked, Any]]]


class Owners:
    def __init__(self, chance: Random, ledger: Ledger, ask: Ask, now: Callable[[], float]) -> None:
        self._chance = chance
        self._ledger = ledger
        self._ask = ask
        self._now = now
        self._timers = 0
        self._steered: set[str] = set()  # one owner at a time says when a pause begins and ends

    async def pause_one(self) -> None:
        biz_type = self._chance.choice(PAUSED)
        if biz_type in self._steered:
            return
        self._steered.add(biz_type)
        path = f"/v1/businesses/{biz_type}"
        paused, _ = await self._ask("POST", f"{path}/pause", None)
        await asyncio.sleep(self._chance.uniform(5, 60))
        while True:
            resumed, _ = await self._ask("POST", f"{path}/resume", None)
            if paused.is_granted and paused.answered_seconds is not None:
                pause = Pause(biz_type, paused.answered_seconds, resumed.begun_seconds)
                self._ledger.pauses.append(pause)
                paused = Asked(0, None, None)  # whether it is over is not known from here on
            if resumed.is_granted:
                break
            await asyncio.sleep(2)
        self._steered.discard(biz_type)

    async def pause_a_key(self) -> None:
        flow_key = self._chance.choice(KEYS)
        if flow_key in self._steered:
            return
        self._steered.add(flow_key)
        paused = await self._steer_key(flow_key, value=True)
        await asyncio.sleep(self._chance.uniform(5, 60))
        while True:
            resumed = await self._steer_key(flow_key, value=None)
            if paused.is_granted and paused.answered_seconds is not None:
                pause = Pause(KEYED, paused.answered_seconds, resumed.begun_seconds, flow_key)
                self._ledger.pauses.append(pause)
                paused = Asked(0, None, None)
            if resumed.is_granted:
                break
            await asyncio.sleep(2)
        self._steered.discard(flow_key)

    async def _steer_key(self, flow_key: str, *, value: bool | None) -> Asked:
        body = {"paused_flow_keys": {flow_key: value}}
        asked, _ = await self._ask("PUT", f"/v1/businesses/{KEYED}", body)
        return asked

    async def run_a_timer(self) -> None:
        """For a minute at most; it may be disabled, enabled again, and deleted."""
        self._timers += 1
        begins = int(self._now()) + self._chance.randint(3, 20)
        ends = begins + self._chance.randint(*TIMERS_LAST_SECONDS)
        every = self._chance.choice((1, 2, 5, 10))
        by_cron = self._chance.random() < 0.5
        first = -(-begins // every) * every if by_cron else begins
        new = {
            "name": f"timer-{self._timers}",
            "biz_type": self._chance.choice(("orders", "invoices", "parcels")),
            "start_at": rfc3339(NOON_MS + begins * 1000),
            "end_at": rfc3339(NOON_MS + ends * 1000),
            "misfire": self._chance.choice(("all", "latest", "skip")),
            "overlap": self._chance.choice(("allow", "skip", "buffer_one", "cancel_running")),
            "callback": {"url": "https://receiver.example/ok"},
            **({"cron": f"*/{every} * * * * *"} if by_cron else {"every_seconds": every}),
        }
        if first > ends:
            return
        asked, timer = await self._make_timer(new)
        if not asked.is_granted:
            return
        instants = tuple(range(first, ends + 1, every))
        known = KnownTimer(timer["timer_id"], timer["misfire"], instants, [(asked, True)])
        self._ledger.timers.append(known)
        path = f"/v1/timers/{known.timer_id}"
        for _ in range(self._chance.choice((0, 0, 1, 2, 3))):
            await asyncio.sleep(self._chance.uniform(0, 20))
            is_enabled = self._chance.random() < 0.4
            asked, _ = await self._ask(
                "POST", f"{path}/{'enable' if is_enabled else 'disable'}", None
            )
            known.changes.append((asked, is_enabled))
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._chance.uniform(0, 20))
            asked, _ = await self._ask("DELETE", path, None)
            known.changes.append((asked, False))

    async def _make_timer(self, new: dict[str, Any]) -> tuple[Asked, Any]:
        """By chance with two requests at once by its name, which make one timer."""
        if self._chance.random() < 0.5:
            return await self._ask("POST", "/v1/timers", new)
        definition = {name: new[name] for name in new if name not in ("name", "biz_type")}
        path = f"/v1/timers/by-name/{new['biz_type']}/{new['name']}"
        answers = await asyncio.gather(*(self._ask("PUT", path, definition) for _ in range(2)))
        granted = [answer for answer in answers if answer[0].is_granted]
        self._ledger.named[new["name"]] = {timer["timer_id"] for _, timer in granted}
        return granted[0] if granted else answers[0]
