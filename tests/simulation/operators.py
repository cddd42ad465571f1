"""Those who change many tasks at once by a bulk operation, and what the tasks show of it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from duewheel.rules.tasks.task import Status, Task
from tests.simulation.ledger import Asked, DueAsked, Known
from tests.simulation.receiver import Call

BULKED = "bulked"
SHIFT_SECONDS = 90
TASKS_MAX = 40
TRIES_MAX = 20  # a pause apart; the trouble lasts as long as somebody tries

Ask = Callable[[str, str, Any, Mapping[str, str]], Awaitable[tuple[Asked, Any]]]


@dataclass(frozen=True)
class Bulk:
    """An operation that was granted, and its tasks with their due instants before it."""

    action: str
    operation_id: str
    due_ms: dict[str, int]


@dataclass(frozen=True)
class Ended:
    """As the service tells of it in the end."""

    state: str
    changed: int
    unchanged: int
    refused: Collection[str]


class Operators:
    def __init__(self, chance: Random, ask: Ask, note: Callable[[Asked, Any], Known]) -> None:
        self.bulks: list[Bulk] = []
        self._chance = chance
        self._ask = ask
        self._note = note
        self._numbers = 0

    async def live(self, operations: int, seconds: float) -> None:
        stories = [self._change_many(self._chance.uniform(0, seconds)) for _ in range(operations)]
        await asyncio.gather(*stories)

    async def _change_many(self, after_seconds: float) -> None:
        self._numbers += 1
        number = self._numbers
        await asyncio.sleep(after_seconds)
        new = [self._task(number) for _ in range(self._chance.randint(2, TASKS_MAX))]
        asked, answer = await self._ask("POST", "/v1/tasks/batch", {"tasks": new}, {})
        results = answer["results"] if asked.status == 200 else []
        known = [self._note(asked, one["task"]) for one in results if one["status"] == 201]
        if not known:
            return
        await asyncio.sleep(self._chance.uniform(2, 30))
        due_ms = {one.task_id: one.dues[0].due_ms for one in known}
        ids = {"ids": list(due_ms)}
        by_label = {"filter": {"labels": {"bulk": str(number)}, "status": "pending"}}
        action, more = self._chance.choice(
            (("reschedule", {"shift_seconds": SHIFT_SECONDS}), ("cancel", {}))
        )
        which = self._chance.choice((ids, ids, by_label))
        await self._operate(known, due_ms, number, {"action": action, **more, **which})

    async def _operate(
        self, known: Sequence[Known], due_ms: dict[str, int], number: int, body: dict[str, Any]
    ) -> None:
        """Until it is answered, under one idempotency key."""
        headers = {"idempotency-key": f"bulk-{number}"}
        for tries in range(TRIES_MAX):
            asked, operation = await self._ask(
                "POST", "/v1/operations", {"biz_type": BULKED, **body}, headers
            )
            if tries == 0:
                self._may_be_changed(known, asked.begun_seconds, body["action"])
            assert asked.status in (None, 201, 429), operation
            if asked.is_granted:
                made = Bulk(body["action"], operation["operation_id"], due_ms)
                self.bulks.append(made)
                return
            await asyncio.sleep(self._chance.uniform(2, 8))

    def _may_be_changed(self, known: Sequence[Known], from_seconds: float, action: str) -> None:
        """From then on, at any time."""
        for one in known:
            if action == "cancel":
                one.cancels.append(Asked(from_seconds, None, None))
            else:
                later_ms = one.dues[0].due_ms + SHIFT_SECONDS * 1000
                one.dues.append(DueAsked(from_seconds, None, None, later_ms))

    def _task(self, number: int) -> dict[str, Any]:
        return {
            "biz_type": BULKED,
            "delay_seconds": round(self._chance.uniform(5, 240), 3),
            "payload": {"bulk": number},
            "labels": {"bulk": str(number)},
            "callback": {"url": "https://receiver.example/ok"},
        }


async def told_of(
    ask: Callable[[str, str], Awaitable[tuple[int, Any] | None]], operation_id: str
) -> Ended:
    """Asked when nothing goes wrong any more."""
    path, refused, cursor = f"/v1/operations/{operation_id}", list[str](), ""
    answer = await ask("GET", path)
    assert answer is not None
    shown = answer[1]
    while True:
        page = await ask("GET", f"{path}/refused?limit=100{cursor}")
        assert page is not None
        refused += [one["task_id"] for one in page[1]["refused"]]
        if page[1]["cursor"] is None:
            break
        cursor = f"&cursor={page[1]['cursor']}"
    return Ended(shown["state"], shown["changed"], shown["unchanged"], refused)


def judged_bulk(
    bulk: Bulk, ended: Ended, tasks: Mapping[str, Task], calls: Sequence[Call]
) -> Iterator[str]:
    """Each task is changed once, or listed; and one that was moved or cancelled was not delivered
    before."""
    what = f"{bulk.action} {bulk.operation_id}"
    if ended.state != "done":
        yield f"{what} is {ended.state}"
        return
    counted = ended.changed + ended.unchanged + len(ended.refused)
    if counted > len(bulk.due_ms) or len(set(ended.refused)) < len(ended.refused):
        yield f"{what} counts {counted} of {len(bulk.due_ms)} tasks"
    changed = [one for one in bulk.due_ms if one not in ended.refused and one in tasks]
    done = [one for one in changed if _is_changed(bulk, one, tasks[one])]
    if len(done) != ended.changed:
        yield f"{what} counts {ended.changed} changed tasks, and {len(done)} are"
    for call in calls:
        is_sure = call.is_heard_delivered and not call.by.troubles
        if is_sure and call.task_id in done and call.notifier_ms < _after_ms(bulk, call.task_id):
            yield f"{what} changed {call.task_id}, and it was delivered at {call.began_seconds:.3f}"


def _is_changed(bulk: Bulk, task_id: str, task: Task) -> bool:
    if bulk.action == "cancel":
        return task.status is Status.CANCELLED
    return task.due_at_ms == _after_ms(bulk, task_id)


def _after_ms(bulk: Bulk, task_id: str) -> float:
    """When a changed task may be called at the earliest."""
    if bulk.action == "cancel":
        return float("inf")
    return bulk.due_ms[task_id] + SHIFT_SECONDS * 1000
