"""Those who use the service: each does, by chance, one of the things that callers do."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any

from duewheel.rules.instants import ms_from_rfc3339, rfc3339
from duewheel.rules.tasks.lifecycle import REDRIVABLE_AFTER_MS
from duewheel.rules.wheel.timing import SKEW_MS
from tests.simulation.faults import FLAKY_HOST
from tests.simulation.late_minds import LateMinds
from tests.simulation.ledger import AT_ONCE_MS, Asked, DueAsked, Known, Ledger
from tests.simulation.lines import Lines
from tests.simulation.operators import Operators
from tests.simulation.owners import DORMANT, KEYED, KEYS, LIMITED, NARROW, Owners
from tests.simulation.senders import Senders
from tests.simulation.service import NO_HEADERS, Service
from tests.support.clock import NOON_MS

BUSINESSES = ("orders", "invoices", "parcels", LIMITED, NARROW, KEYED)
SHARES = (12, 10, 2, 2, 1, 2)  # of the tasks
IN_SLOW_LANE = "parcels"
TOLERANT = "invoices"
FIRST_SERVED = "orders"  # those of its tasks that have no priority of their own
TOLERANCE_SECONDS = 20  # of its tasks that have none of their own
RECEIVERS = ("ok",) * 28 + ("busy/1", "busy/3", "gone", "never")
HOSTS = ("receiver.example",) * 5 + (FLAKY_HOST,)
RETRY = {"attempts": 6, "delays_seconds": [0, 1, 4, 15, 40]}
BATCH_MAX = 40
CLOCKS_DIFFER_MS = 2 * SKEW_MS
CROWD_EVERY_SECONDS = 30
TASKS_A_LATE_MIND = 20
PRIORITIES = (None, None, "high", "low")  # None: that of the business
TIMEOUTS = (None,) * 5 + (5, 15, 25)  # in seconds; None: that of the business
TOLERANCES = (None,) * 8 + (0, 1, 20, 60)  # in seconds; None: that of the business

Story = Callable[[], Coroutine[Any, Any, None]]


class Clients:
    def __init__(
        self,
        service: Service,
        seed: int,
        tasks: int,
        seconds: float,
        far_seconds: float | None = None,
        *,
        operations: int = 0,
    ) -> None:
        """`far_seconds`: some tasks are due about then, and longer than tasks are kept.
        `operations`: bulk operations, beside all else."""
        self.ledger = Ledger()
        self.begun = 0
        self._chance_of_work = Random(seed)  # beside, likewise
        self._chance_of_timeout = Random(seed)
        self._chance_of_pause = Random(seed)
        self._service = service
        self._chance = Random(seed)
        self._chance_of_priority = Random(seed)  # beside, so that all else stays as it was
        self._chance_of_end = Random(seed)
        self._tasks = tasks
        self._seconds = seconds
        self._far_seconds = far_seconds
        self._numbers = 0
        self._named: dict[str, set[str]] = {}  # by path: tasks that the key has named
        self.owners = Owners(self._chance, self.ledger, self._ask, service.seconds)
        self.lines = Lines(self._chance, self._ask, self._new, self._note)
        self.operators = Operators(Random(seed), self._ask, self._note)
        self._operations = operations
        self.late_minds = LateMinds(Random(seed), self._ask, self._note)
        self.senders = Senders(service, self._chance, lambda: self._new(self._in_seconds()))

    async def live(self) -> None:
        """Until so many tasks are created, at a pace that spreads them over so many seconds."""
        stories: list[asyncio.Task[None]] = []
        many = self._service.spawn(self.operators.live(self._operations, self._seconds))
        late = self._service.spawn(
            self.late_minds.live(self._tasks // TASKS_A_LATE_MIND, self._seconds)
        )
        while self._created() < self._tasks:
            await asyncio.sleep(self._chance.expovariate(self._pace(stories)))
            stories.append(self._service.spawn(self._any_story()()))
        await asyncio.gather(*stories, many, late)

    def _created(self) -> int:
        return len(self.ledger.tasks) + self.senders.messages.certain

    def _pace(self, stories: list[Any]) -> float:
        """Stories a second, so that the tasks are begun in time."""
        per_story = max(1.0, self.begun / max(1, len(stories)))
        return self._tasks / self._seconds / per_story

    def _any_story(self) -> Story:
        stories = (self._batch, self._batch, self._left_alone, self._steered, self._watched)
        stories += (self._repeated, self._revived, self._crowded, self.senders.send_some)
        stories += (
            self._watched_waiting,
            self._once,
            self.owners.pause_one,
            self.owners.run_a_timer,
        )
        stories += (self.owners.pause_a_key, self.lines.live)
        if self._far_seconds is not None:
            stories += (self._far,)
        return self._chance.choice(stories)

    # Stories

    async def _batch(self) -> None:
        count = min(self._chance.randint(2, BATCH_MAX), max(2, self._tasks - self._created()))
        in_seconds = self._in_seconds()
        spread = self._chance.choice((0.0, 0.5, 20.0))
        tasks = [
            self._new(max(0, in_seconds + self._chance.uniform(0, spread))) for _ in range(count)
        ]
        asked, answer = await self._ask("POST", "/v1/tasks/batch", {"tasks": tasks})
        for result in answer["results"] if asked.status == 200 else []:
            if result["status"] == 201:
                self._note(asked, result["task"])

    async def _crowded(self) -> None:
        """For the second that others crowd, too: the next whole half minute, some of it singly."""
        now = self._service.seconds()
        in_seconds = CROWD_EVERY_SECONDS - now % CROWD_EVERY_SECONDS
        count = min(self._chance.randint(2, BATCH_MAX), max(2, self._tasks - self.begun))
        tasks = [self._new(in_seconds + self._chance.random()) for _ in range(count)]
        for task in [tasks.pop() for _ in range(len(tasks) // 4)]:
            asked, answer = await self._ask("POST", "/v1/tasks", task)
            if asked.is_granted:
                self._note(asked, answer)
        asked, answer = await self._ask("POST", "/v1/tasks/batch", {"tasks": tasks})
        for result in answer["results"] if asked.status == 200 else []:
            if result["status"] == 201:
                self._note(asked, result["task"])

    async def _left_alone(self) -> None:
        await self._create(self._in_seconds())

    async def _far(self) -> None:
        """Due when much of what is created now has been deleted; some under a key."""
        assert self._far_seconds is not None
        for _ in range(self._chance.randint(1, 5)):
            task = self._new(self._far_seconds * self._chance.uniform(1, 1.6))
            if self._chance.random() < 0.5:
                task["key"] = f"far-{self._number()}"
                task["biz_type"] = self._chance.choice((DORMANT, "orders"))
                task["delay_seconds"] = round(self._chance.uniform(0, self._far_seconds), 3)
            await self._create_surely(task)

    async def wake_the_dormant(self) -> None:
        """Paused since the beginning, for longer than tasks are kept."""
        assert self._far_seconds is not None
        await asyncio.sleep(max(0.0, 1.2 * self._far_seconds - self._service.seconds()))
        while True:
            asked, _ = await self._ask("POST", f"/v1/businesses/{DORMANT}/resume")
            if asked.is_granted:
                break
            await asyncio.sleep(2)

    async def _steered(self) -> None:
        """Created, and then moved, run or cancelled, some of it too late."""
        known = await self._create(self._chance.uniform(0, 60))
        if known is not None and self._chance_of_pause.random() < 0.5:
            await self._paused(known)
        for _ in range(self._chance.randint(0, 4)):
            await asyncio.sleep(self._chance.uniform(0, 15))
            if known is None:
                return
            path = f"/v1/tasks/{known.task_id}"
            match self._chance.randrange(4):
                case 0:
                    asked, _ = await self._ask("DELETE", path)
                    known.cancels.append(asked)
                case 1:
                    asked, _ = await self._ask("POST", f"{path}/run")
                    known.dues.append(_due(asked, AT_ONCE_MS))
                case _:
                    await self._move(known, path, self._chance.uniform(0, 60))

    async def _paused(self, known: Known) -> None:
        """For a while; sometimes nobody resumes it."""
        until_ms = self._now_ms() + 40_000
        path = f"/v1/tasks/{known.task_id}"
        asked, _ = await self._ask("POST", f"{path}/pause", {"until": rfc3339(until_ms)})
        known.dues.append(_due(asked, until_ms))
        await asyncio.sleep(self._chance_of_pause.uniform(0, 20))
        if self._chance_of_pause.random() < 0.7:
            asked, _ = await self._ask("POST", f"{path}/resume")
            known.dues.append(_due(asked, AT_ONCE_MS))

    async def _watched_waiting(self) -> None:
        """Created, and read until it has ended; its first calls mostly fail."""
        known = await self._create(
            self._chance.uniform(0, 10), self._chance.choice(("busy/3", "ok"))
        )
        for _ in range(12):
            await asyncio.sleep(self._chance.uniform(2, 8))
            if known is not None and not await self._waits(f"/v1/tasks/{known.task_id}"):
                return

    async def _waits(self, path: str) -> bool:
        """A task that is overdue, by any clock, says why it waits. False once it has ended."""
        before_ms = self._now_ms() - CLOCKS_DIFFER_MS
        asked, task = await self._ask("GET", path)
        if not asked.is_granted:
            return True
        if task["status"] != "pending":
            return False
        if "waiting" in task:
            self.ledger.reasons[task["waiting"]["reason"]] += 1
        elif ms_from_rfc3339(task["next_at"]) < before_ms:
            self.ledger.silent.append(path)
        return True

    async def _move(self, known: Known, path: str, in_seconds: float) -> None:
        due_ms = self._now_ms() + round(in_seconds * 1000)
        asked, _ = await self._ask("PATCH", path, {"due_ms": due_ms})
        known.dues.append(_due(asked, due_ms))

    async def _watched(self) -> None:
        """A watchdog under a key, with some beats."""
        path = f"/v1/businesses/orders/tasks/dog-{self._number()}"
        task = self._new(0)
        del task["biz_type"]
        for _ in range(self._chance.randint(1, 5)):
            due_ms = self._now_ms() + self._chance.randint(3_000, 30_000)
            body = {**{k: v for k, v in task.items() if k != "delay_seconds"}, "due_ms": due_ms}
            asked, answer = await self._ask("PUT", path, body)
            if asked.is_granted:
                self._note(asked, answer)
            else:
                self._maybe_moved(path, _due(asked, due_ms))
            await asyncio.sleep(self._chance.uniform(0, 10))

    def _maybe_moved(self, path: str, due: DueAsked) -> None:
        """Which task the key names is not known: every one that it has named may have moved."""
        for task_id in self._named.get(path, ()):
            self.ledger.tasks[task_id].dues.append(due)

    async def _repeated(self) -> None:
        """Created under a key of the caller's, again and again until it is answered."""
        task = {**self._new(self._in_seconds()), "key": f"order-{self._number()}"}
        await self._create_surely(task)

    async def _once(self) -> None:
        """Under an idempotency key, until it is answered and for a while after that."""
        tasks = [self._new(self._in_seconds()) for _ in range(self._chance.randint(1, 5))]
        headers = {"idempotency-key": f"request-{self._number()}"}
        for _ in range(self._chance.randint(4, 8)):
            asked, answer = await self._ask("POST", "/v1/tasks/batch", {"tasks": tasks}, headers)
            results = answer["results"] if asked.status == 200 else []
            for task, result in zip(tasks, results, strict=False):
                is_created = result["status"] == 201
                self.ledger.repeated(
                    task["payload"]["n"], result["task"]["task_id"] if is_created else None
                )
                if is_created:
                    self._note(asked, result["task"])
            await asyncio.sleep(self._chance.uniform(0, 20))

    async def _create_surely(self, task: Any) -> Known | None:
        for _ in range(6):
            asked, answer = await self._ask("POST", "/v1/tasks", task)
            if asked.is_granted:
                return self._note(asked, answer)
            await asyncio.sleep(2)
        return None

    async def _revived(self) -> None:
        """Redriven once it is seen to have ended: dead, since its receiver says stop, cancelled, or
        delivered a while ago."""
        end = self._chance_of_end.choice(("dead", "dead", "cancelled", "delivered"))
        receiver = "gone" if end == "dead" else "ok"
        known = await self._create(self._chance.uniform(0, 20), receiver)
        for _ in range(10):
            await asyncio.sleep(self._chance.uniform(5, 20))
            if known is None:
                return
            path = f"/v1/tasks/{known.task_id}"
            asked, answer = await self._ask("GET", path)
            if not asked.is_granted:
                continue
            if end == "cancelled" and answer["status"] == "pending":
                asked, _ = await self._ask("DELETE", path)
                known.cancels.append(asked)
            elif answer["status"] == end:
                await asyncio.sleep(REDRIVABLE_AFTER_MS / 1000 if end == "delivered" else 0)
                for asked in await self._redrive(f"{path}/redrive"):
                    known.redrives.append(asked)
                    if end != "cancelled":  # that is called at its due instant
                        known.dues.append(_due(asked, AT_ONCE_MS))
                    if end == "delivered":
                        known.called_again.append(asked)
                if end == "delivered":
                    return  # the trouble lasts as long as the stories

    async def _redrive(self, path: str) -> list[Asked]:
        """By chance two callers at once."""
        callers = self._chance_of_end.choice((1, 2))
        self.ledger.redriven_by_two += callers == 2
        asked = await asyncio.gather(*(self._ask("POST", path) for _ in range(callers)))
        return [each for each, _ in asked]

    # What they are made of

    async def _create(self, in_seconds: float, receiver: str | None = None) -> Known | None:
        asked, answer = await self._ask("POST", "/v1/tasks", self._new(in_seconds, receiver))
        return self._note(asked, answer) if asked.is_granted else None

    def _note(self, asked: Asked, task: Any) -> Known:
        known = self.ledger.created(task["task_id"], _due(asked, ms_from_rfc3339(task["due_at"])))
        if task["key"]:
            path = f"/v1/businesses/{task['biz_type']}/tasks/{task['key']}"
            self._named.setdefault(path, set()).add(known.task_id)
        return known

    async def _ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> tuple[Asked, Any]:
        begun = self._service.seconds()
        reply = await self._service.request(method, path, body, headers)
        status, answer = reply or (None, None)
        if status is None or status >= 500:
            self.ledger.refused += 1
            return Asked(begun, None, None), None
        return Asked(begun, self._service.seconds(), status), answer

    def _new(self, in_seconds: float, receiver: str | None = None) -> dict[str, Any]:
        self.begun += 1
        biz_type = self._chance.choices(BUSINESSES, SHARES)[0]
        kind = receiver or self._chance.choice(RECEIVERS)
        is_plain = kind == "ok" and receiver is None and biz_type != NARROW
        if is_plain and self._chance_of_work.random() < 0.1:
            kind = "works"
        tolerance = self._chance.choice(TOLERANCES)
        priority = self._chance_of_priority.choice(PRIORITIES)
        timeout = self._chance_of_timeout.choice(TIMEOUTS)
        flow_key = self._chance.choice((*KEYS, None)) if biz_type == KEYED else None
        return {
            **({} if flow_key is None else {"flow_key": flow_key}),
            **({} if tolerance is None else {"tolerance_seconds": tolerance}),
            **({} if priority is None else {"priority": priority}),
            "biz_type": biz_type,
            "delay_seconds": round(in_seconds, 3),
            "payload": {"n": self.begun},
            "labels": labels_of(self.begun),
            "callback": {
                "url": f"https://{self._chance.choice(HOSTS)}/{kind}",
                **({} if timeout is None else {"timeout_seconds": timeout}),
            },
            "retry": RETRY,
        }

    def _in_seconds(self) -> float:
        return self._chance.choice((0, 1, 5, 10, 30, 60, 90)) + self._chance.random()

    def _now_ms(self) -> int:
        return NOON_MS + round(self._service.seconds() * 1000)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers


def labels_of(number: int) -> dict[str, str]:
    """Of the task with this number in its payload: every third has none."""
    return {"number": str(number), "team": "billing"} if number % 3 else {}


def _due(asked: Asked, due_ms: int) -> DueAsked:
    return DueAsked(asked.begun_seconds, asked.answered_seconds, asked.status, due_ms)
