"""The cases that contenders run, one after the other, and their results.

Invariant: all tasks of a burst are created before their second begins, or the run ends with an
error.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.request import urlopen

from bench.one_machine.contenders import Call, Contender, Cpu, Created, Running
from bench.one_machine.figures import Arrival, Arrived, arrived
from bench.one_machine.processes import GaveUp

STEADY_PER_SECOND, STEADY_SECONDS, STEADY_AHEAD_MS = 50, 10, 8_000
KILLED_TASKS, KILLED_AT, KILLED_WAIT_MS, CANCELLED = 1_000, 300, 50, 100
CUT_OFF_MS = 3_000  # in less time before its second Duewheel does not cancel a task
WARM_SINGLE, WARM_BATCH = 50, 500
ROOM = (1.3, 2.5)  # times the earlier duration of creating
AHEAD_SECONDS = 13  # a task is near for less than eight
MONTH_MS = 30 * 86_400_000
SETTLE_SECONDS = 2.0  # after the last task: repeated calls are made about then
START_SECONDS = 60.0  # until the first call of a worker that was just started
QUIET_SECONDS = 15.0  # so long after the last call, missing calls are lost
REVIVED_AFTER_SECONDS = 1.0
LOOK_SECONDS = 0.02

Record = dict[str, Any]
_InTime = tuple[int, str, Created, Cpu]  # due instant, case, and the CPU used before


@dataclass
class Measuring:
    """One contender while it runs. `say` shows progress."""

    contender: Contender
    running: Running
    sink_url: str
    say: Callable[[str], None]
    _per_second: dict[bool, float] = field(default_factory=dict)
    _cases: int = 0

    def warm_up(self) -> None:
        """Uses everything once, and measures the speed of creation."""
        for batch in [False, True] if self.contender.has_batches else [False]:
            number = WARM_BATCH if batch else WARM_SINGLE
            case, calls = self._calls([_now_ms() + 3_000] * number)
            seconds = self.running.create(calls, batch=batch).seconds
            self._per_second[batch] = number / seconds
            if not _answered(self._await(case, number, START_SECONDS)):
                raise GaveUp(f"{self.contender.name} does not make its calls")

    def burst(self, number: int, wait_ms: int, *, batch: bool) -> Record:
        """All due at the start of one second, and created before."""
        due_ms, case, created, before = self._created_in_time(number, wait_ms, batch=batch)
        between = self.running.cpu()
        _sleep_until(due_ms)
        got = self._await(case, number, QUIET_SECONDS)
        after = self.running.cpu()
        came = arrived(dict.fromkeys(range(number), due_ms), got)
        return self._record(
            "burst",
            came,
            tasks=number,
            wait_ms=wait_ms,
            batch=batch,
            created_per_second=number / created.seconds,
            delivered_per_second=came.delivered / ((came.last_ms - due_ms) / 1000),
            create_cpu_ms=_per_task(between.since(before), number),
            deliver_cpu_ms=_per_task(after.since(between), number),
        )

    def steady(self, wait_ms: int) -> Record:
        """So many created each second, each due after the same delay."""
        pace_ms, number = 1000 / STEADY_PER_SECOND, STEADY_PER_SECOND * STEADY_SECONDS
        first_ms = _now_ms() + STEADY_AHEAD_MS
        due_ms = {n: first_ms + round(n * pace_ms) for n in range(number)}
        case, calls = self._calls([*due_ms.values()], wait_ms)
        self.running.create(calls, pace_ms=pace_ms)
        _sleep_until(due_ms[number - 1])
        came = arrived(due_ms, self._await(case, number, QUIET_SECONDS))
        return self._record(
            "steady", came, tasks=number, wait_ms=wait_ms, per_second=STEADY_PER_SECOND
        )

    def killed(self) -> Record:
        """`kill -9` of the workers, in mid-burst; some tasks of that second have been cancelled."""
        batch = self.contender.has_batches
        wanted = KILLED_TASKS + CANCELLED
        seconds = KILLED_TASKS / self._per_second[batch] + 2 * CANCELLED / self._per_second[False]
        due_ms = int(time.time() + seconds * ROOM[-1] + 8) * 1000
        case, calls = self._calls([due_ms] * wanted, KILLED_WAIT_MS)
        kept, dropped = calls[:KILLED_TASKS], calls[KILLED_TASKS:]
        cancelled_ids = self.running.create(dropped).ids
        self.running.create(kept, batch=batch)
        cancelled = self.running.cancel(cancelled_ids)
        if _now_ms() >= due_ms - CUT_OFF_MS:
            raise GaveUp(f"{self.contender.name}: the tasks were not cancelled in time")
        while len(self._arrivals(case)) < KILLED_AT:
            time.sleep(LOOK_SECONDS)
        killed_ms = _now_ms()
        self.running.kill()
        self.say("killed")
        time.sleep(REVIVED_AFTER_SECONDS)
        self.running.revive()
        alone = self._await(case, KILLED_TASKS, self.contender.recovers_seconds)
        delivered_alone = len(_answered(_kept(alone)))
        mended = self.running.mend() if delivered_alone < KILLED_TASKS else 0
        got = self._await(case, KILLED_TASKS, QUIET_SECONDS) if mended else alone
        came = arrived(dict.fromkeys(range(KILLED_TASKS), due_ms), _kept(got))
        return self._record(
            "killed",
            came,
            tasks=KILLED_TASKS,
            wait_ms=KILLED_WAIT_MS,
            delivered_alone=delivered_alone,
            left_alone=KILLED_TASKS - delivered_alone,
            mended=mended,
            last_after_kill_seconds=(came.last_ms - killed_ms) / 1000,
            cancelled=CANCELLED,
            cancels_confirmed=cancelled.said_yes,
            cancelled_per_second=CANCELLED / cancelled.seconds,
            cancelled_but_called=len(_answered(got) - {*range(KILLED_TASKS)}),
        )

    def month_ahead(self) -> Record:
        """One task in a month, and a worker that is killed. The case does not wait for the
        month."""
        _, calls = self._calls([_now_ms() + MONTH_MS])
        ids = self.running.create(calls).ids
        self.running.kill()
        self.running.revive()
        return {
            "contender": self.contender.name,
            "case": "month",
            "waiting_after_kill": self.running.waiting(ids),
        }

    def held_longer_than_visible(self, ahead_seconds: int, visibility_seconds: int) -> Record:
        """One task that is due later than the queue keeps it hidden, as a month is with an hour."""
        due_ms = _now_ms() + ahead_seconds * 1000
        case, calls = self._calls([due_ms])
        self.running.create(calls)
        _sleep_until(due_ms)
        self._await(case, 1, QUIET_SECONDS)
        time.sleep(SETTLE_SECONDS)
        return {
            "contender": self.contender.name,
            "case": "held",
            "ahead_seconds": ahead_seconds,
            "visibility_seconds": visibility_seconds,
            "calls": len(self._arrivals(case)),
        }

    def _created_in_time(self, number: int, wait_ms: int, *, batch: bool) -> _InTime:
        """The second is chosen by the earlier speed of creation. No task is near its instant when
        it is created: Duewheel would send each by a message of its own."""
        for room in ROOM:
            seconds = number / self._per_second[batch] * room + AHEAD_SECONDS
            due_ms = int(time.time() + seconds) * 1000
            case, calls = self._calls([due_ms] * number, wait_ms)
            before = self.running.cpu()
            created = self.running.create(calls, batch=batch)
            self._per_second[batch] = number / created.seconds
            if _now_ms() < due_ms:
                return due_ms, case, created, before
            self.say(f"{number:,} tasks were not created before their second; once more")
            self._await(case, number, QUIET_SECONDS)
        raise GaveUp(f"{self.contender.name}: {number} tasks were not created in time")

    def _calls(self, due_ms: Sequence[int], wait_ms: int = 0) -> tuple[str, list[Call]]:
        self._cases += 1
        case = f"{self.contender.name}-{id(self):x}-{self._cases}".replace(" ", "-")
        case = "".join(letter for letter in case if letter.isalnum() or letter == "-")
        query = f"?wait_ms={wait_ms}" if wait_ms else ""
        url = f"{self.sink_url}/{case}"
        return case, [Call(due, f"{url}/{n}{query}") for n, due in enumerate(due_ms)]

    def _await(self, case: str, wanted: int, quiet_seconds: float) -> list[Arrival]:
        """Waits until so many tasks were called, or none for a while; then for repeated calls."""
        came, last_new = 0, time.monotonic()
        while came < wanted and time.monotonic() - last_new < quiet_seconds:
            time.sleep(0.2)
            now_came = len(_answered(self._arrivals(case)) & {*range(wanted)})
            if now_came > came:
                came, last_new = now_came, time.monotonic()
        time.sleep(SETTLE_SECONDS if came == wanted else 0)
        return self._arrivals(case)

    def _arrivals(self, case: str) -> list[Arrival]:
        with urlopen(f"{self.sink_url}/{case}") as answer:
            return [(number, at_ms, answered) for number, at_ms, answered in json.load(answer)]

    def _record(self, case: str, came: Arrived, **more: Any) -> Record:
        record = {"contender": self.contender.name, "case": case, **more, **asdict(came)}
        self.say(_line(record))
        return record


def _answered(arrivals: Sequence[Arrival]) -> set[int]:
    return {number for number, _, answered in arrivals if answered}


def _kept(arrivals: Sequence[Arrival]) -> list[Arrival]:
    return [arrival for arrival in arrivals if arrival[0] < KILLED_TASKS]


def _line(record: Record) -> str:
    return (
        f"{record['case']} of {record['tasks']:,} at {record['wait_ms']} ms: "
        f"{record['delivered']:,} delivered, {record['lost']} lost, {record['repeated']} repeated, "
        f"late {record['p50_ms']:,.0f} / {record['p99_ms']:,.0f} / {record['max_ms']:,.0f} ms"
    )


def _per_task(cpu: Cpu, number: int) -> dict[str, float]:
    return {"own": 1000 * cpu.own / number, "server": 1000 * cpu.server / number}


def _sleep_until(instant_ms: int) -> None:
    time.sleep(max(0.0, instant_ms / 1000 - time.time()))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
