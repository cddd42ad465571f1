"""Those who create tasks of flow keys that are called in order, and what the calls show of it."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from duewheel.rules.tasks.flow_order import place_of
from duewheel.rules.tasks.task import Task
from tests.simulation.ledger import Asked, Known, Ledger
from tests.simulation.receiver import Call, ReportedEnd
from tests.support.clock import NOON_MS

ORDERED = "ordered"
KEYS = 3
CREATED_BEFORE_SECONDS = 5.0  # its line is read a second before the call at most, and under faults
CLOCKS_DIFFER_SECONDS = 2.0

Ask = Callable[[str, str, Any], Awaitable[tuple[Asked, Any]]]


class Lines:
    def __init__(
        self,
        chance: Random,
        ask: Ask,
        new: Callable[..., dict[str, Any]],
        note: Callable[[Asked, Any], Known],
    ) -> None:
        self._chance = chance
        self._ask = ask
        self._new = new
        self._note = note

    async def live(self) -> None:
        """Some tasks of one key, one by one or together; some are cancelled, run or redriven."""
        flow_key = f"line-{self._chance.randrange(KEYS)}"
        made: list[Known] = []
        for _ in range(self._chance.randint(1, 3)):
            tasks = [self._task(flow_key) for _ in range(self._chance.randint(1, 4))]
            if len(tasks) == 1:
                asked, answer = await self._ask("POST", "/v1/tasks", tasks[0])
                if asked.is_granted:
                    made.append(self._note(asked, answer))
            else:
                asked, answer = await self._ask("POST", "/v1/tasks/batch", {"tasks": tasks})
                for result in answer["results"] if asked.status == 200 else []:
                    if result["status"] == 201:
                        made.append(self._note(asked, result["task"]))
            await asyncio.sleep(self._chance.uniform(0, 5))
        for known in made:
            await self._steer(known)

    def _task(self, flow_key: str) -> dict[str, Any]:
        in_seconds = self._chance.choice((0, 0, 1, 5, 20)) + self._chance.random()
        return {**self._new(in_seconds), "biz_type": ORDERED, "flow_key": flow_key}

    async def _steer(self, known: Known) -> None:
        path = f"/v1/tasks/{known.task_id}"
        match self._chance.randrange(8):
            case 0:
                asked, _ = await self._ask("DELETE", path, None)
                known.cancels.append(asked)
            case 1:
                await asyncio.sleep(self._chance.uniform(5, 40))
                asked, _ = await self._ask("POST", f"{path}/redrive", None)
                known.redrives.append(asked)
            case _:
                pass


class Received(Protocol):
    calls: list[Call]
    ends: list[ReportedEnd]


def judged_lines(ledger: Ledger, received: Received, tasks: Sequence[Task]) -> Iterator[str]:
    """At most one call of a key is under way, but for those of dead runs and repeats; and none
    is made while an earlier task, which certainly exists, is certainly live."""
    lines: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        if task.biz_type == ORDERED and task.flow_key is not None:
            lines[task.flow_key].append(task)
    of_task: dict[str, list[Call]] = defaultdict(list)
    for call in received.calls:
        of_task[call.task_id].append(call)
    for line in lines.values():
        calls = sorted(_calls(line, of_task), key=lambda call: call.began_seconds)
        yield from _beside(calls, received.ends)
        yield from _out_of_order(ledger, line, of_task)


def _calls(line: Sequence[Task], of_task: Mapping[str, list[Call]]) -> list[Call]:
    return [call for task in line for call in of_task[task.task_id]]


def _beside(calls: Sequence[Call], ends: Sequence[ReportedEnd]) -> Iterator[str]:
    for number, call in enumerate(calls):
        for other in calls[number + 1 :]:
            if other.began_seconds >= call.ended_seconds:
                break
            is_excused = call.by.is_dead or _is_repeat(call, calls) or _is_repeat(other, calls)
            is_excused = is_excused or _is_reported(call, other, ends)
            if other.task_id != call.task_id and not is_excused:
                yield f"{other.task_id} called beside {call.task_id}, {call}, {other}"


def _is_repeat(call: Call, calls: Sequence[Call]) -> bool:
    """By a second message of the queue: another run has delivered the task meanwhile."""
    return any(
        one.task_id == call.task_id
        and one.by.number != call.by.number
        and one.is_heard_delivered
        and one.ended_seconds < call.ended_seconds
        for one in calls
    )


def _is_reported(call: Call, other: Call, ends: Sequence[ReportedEnd]) -> bool:
    """Its receiver said that the work is over before it had answered the call."""
    return any(
        end.task_id == call.task_id
        and end.begun_seconds <= other.began_seconds
        and end.answered_seconds >= call.began_seconds
        for end in ends
    )


def _out_of_order(
    ledger: Ledger, line: Sequence[Task], of_task: Mapping[str, list[Call]]
) -> Iterator[str]:
    for earlier in line:
        known = ledger.tasks.get(earlier.task_id)
        if known is None or known.redrives or earlier.settled_ms is None:
            continue
        created = known.dues[0].answered_seconds
        ended = (earlier.settled_ms - NOON_MS) / 1000 - CLOCKS_DIFFER_SECONDS
        for later in line:
            if created is None or place_of(later) <= place_of(earlier):
                continue
            for call in of_task[later.task_id]:
                if created + CREATED_BEFORE_SECONDS < call.began_seconds < ended:
                    yield f"{later.task_id} called before {earlier.task_id} ended, {call}"
