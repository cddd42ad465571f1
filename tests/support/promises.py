"""The answers that callers got about their tasks, and checks that the service kept them.

A request that was answered with success took effect. An unanswered request, after a death or a
failure of AWS, may or may not have taken effect; of two overlapping requests either may have been
the last. The lateness of calls is not checked here, because all parts share one manual clock; the
soak checks it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from duewheel.rules.callbacks.completion import name_in
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER, AttemptName
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.wiring import process
from duewheel.wiring.long_work import reported_work
from local.control.wheel_contents import ATTRIBUTES
from tests.support.receiver import BUSY, GONE, OK, Received
from tests.support.recorder import Death
from tests.support.world import CALLER, World

KNOWN_MS = KEPT_MS + 5_000  # after that, every run with an outdated cache has ended
RETRY = RetryPolicy(attempts_max=50, delays_seconds=(4.0,))


Unfinished = (Death, ClientError)  # the caller does not know whether the request took effect


@dataclass
class Told:
    """The expected state of one task. `due_ms`: the instants that may be its due instant."""

    task: Task
    due_ms: set[int]
    is_cancelled: bool = False
    may_be_cancelled: bool = False
    answers: int = 0
    cancels: int = 0  # and redrives, that were answered with success
    redrives: int = 0
    calls_before: int = 0  # when it was last answered as pending: one more call must follow
    is_complete: bool = False  # by a report that was answered
    may_be_complete: bool = False


class Promises:
    def __init__(self, world: World) -> None:
        self.world = world
        self.told: dict[str, Told] = {}
        self.outcomes: dict[str, list[Outcome]] = defaultdict(list)
        self.results: list[Task | Refusal] = []  # of the callers' requests
        self.broken: list[str] = []
        self.answer = OK
        self.unfinished = 0
        self.paused_ms: int | None = None  # since when the business is certainly paused
        self.may_be_paused = False
        self.attempts: dict[str, AttemptName] = {}  # the latest that was called, by task id

    # Reports of receivers

    def complete(self, told: Told) -> None:
        def report(home: Address, name: AttemptName) -> None:
            reported_work().complete(home, name, "done")
            told.is_complete = True

        try:
            self._report(told, report)
        except Unfinished:
            told.may_be_complete = True
            raise

    def fail(self, told: Told) -> None:
        self._report(told, lambda home, name: reported_work().fail(home, name, BUSY))

    def progress(self, told: Told) -> None:
        self._report(told, lambda home, name: reported_work().progress(home, name, "half", None))

    def _report(self, told: Told, report: Callable[[Address, AttemptName], object]) -> None:
        """By the token of the latest call."""
        name = self.attempts.get(told.task.task_id)
        if name is None:
            return
        try:
            report(told.task.home, name)
        except Refusal as refusal:
            self.results.append(refusal)

    # Requests of callers

    def create(self, in_ms: int) -> None:
        with self._asked(None, self.world.clock.now_ms() + in_ms) as answered:
            answered(self.world.created(in_ms, retry=RETRY))

    def create_keyed(self, key: str, in_ms: int, digest: str = "created") -> None:
        new = self.world.new(in_ms, retry=RETRY, key=key, digest=digest)
        with self._asked(None, new.due_ms) as answered:
            answered(self.world.created_by_key(new).task)

    def upsert(self, key: str, in_ms: int) -> None:
        new = self.world.new(in_ms, retry=RETRY, key=key, digest="upsert")
        with self._asked(self._last_named(key), new.due_ms) as answered:
            answered(self.world.keyed.upsert(new).task)

    def move(self, told: Told, in_ms: int) -> None:
        due_ms = self.world.clock.now_ms() + in_ms
        with self._asked(told, due_ms) as answered:
            answered(self.world.change(told.task.task_id, Change(due_ms=due_ms)))

    def run(self, told: Told) -> None:
        with self._asked(told, self.world.clock.now_ms()) as answered:
            answered(self.world.change.run(told.task.task_id))

    def pause_task(self, told: Told) -> None:
        """For ten minutes."""
        until_ms = self.world.clock.now_ms() + 600_000
        with self._asked(told, until_ms) as answered:
            answered(self.world.pause_task(told.task.task_id, until_ms, CALLER))

    def resume_task(self, told: Told) -> None:
        with self._asked(told, self.world.clock.now_ms()) as answered:
            answered(self.world.pause_task.resume(told.task.task_id))

    def redrive(self, told: Told) -> None:
        """Until it is answered a cancelled task may be called, or not; a cancel beside it may have
        been before or after it."""
        was_cancelled, cancels, redrives = told.is_cancelled, told.cancels, told.redrives
        told.may_be_cancelled |= was_cancelled
        told.is_cancelled = False
        with self._asked(told, self.world.clock.now_ms()) as answered:
            try:
                redriven = self.world.redrive(told.task.task_id)
            except Refusal:
                told.is_cancelled |= was_cancelled and told.redrives == redrives
                raise
            told.redrives += 1
            told.is_cancelled = False
            answered(redriven)
            told.may_be_cancelled = told.cancels > cancels

    def pause(self) -> None:
        self.may_be_paused, self.paused_ms = True, None
        self._set_paused(paused=True)
        self.paused_ms = self.world.clock.now_ms()

    def resume(self) -> None:
        self.paused_ms = None
        self._set_paused(paused=False)
        self.may_be_paused = False

    def _set_paused(self, *, paused: bool) -> None:
        pause = self.world.configure_business.pause
        try:
            pause("orders", Precondition(), paused=paused, by=CALLER)
        except Refusal as refusal:
            self.results.append(refusal)

    def cancel(self, told: Told) -> None:
        self._cancel(told, lambda: self.world.cancel(told.task.task_id))

    def cancel_key(self, key: str) -> None:
        self._cancel(self._last_named(key), lambda: self.world.keyed.cancel("orders", key))

    def _cancel(self, told: Told | None, cancel: Callable[[], Task]) -> None:
        redrives = {task_id: one.redrives for task_id, one in self.told.items()}
        try:
            cancelled = cancel()
        except Refusal as refusal:
            self.results.append(refusal)
            if told is not None:
                told.may_be_cancelled |= "written" in str(refusal)
        except Unfinished:
            if told is not None:
                told.may_be_cancelled = True
            raise
        else:
            self.results.append(cancelled)
            known = self.told[cancelled.task_id]
            known.cancels += 1
            overlaps = known.redrives > redrives.get(cancelled.task_id, 0)
            known.is_cancelled, known.may_be_cancelled = not overlaps, overlaps

    def _last_named(self, key: str) -> Told | None:
        named = [told for told in self.told.values() if told.task.key == key]
        return named[-1] if named else None

    @contextmanager
    def _asked(self, told: Told | None, due_ms: int) -> Iterator[Callable[[Task], None]]:
        """The new instant may be in force from the first call on, and is in force after the
        answer."""
        answers_before = {task_id: one.answers for task_id, one in self.told.items()}
        calls_before = {task_id: len(outcomes) for task_id, outcomes in self.outcomes.items()}
        was_due_ms = set(told.due_ms) if told is not None else set()

        def answered(task: Task) -> None:
            self.results.append(task)
            known = self.told.setdefault(task.task_id, Told(task, set()))
            # Of two overlapping requests that both succeed, either may have been the last.
            overlaps = known.answers > answers_before.get(task.task_id, 0)
            known.due_ms = {task.next_ms, *(known.due_ms if overlaps else ())}
            known.answers += 1
            known.may_be_cancelled &= overlaps
            known.calls_before = calls_before.get(task.task_id, 0)

        if told is not None:
            told.due_ms.add(due_ms)
        try:
            yield answered
        except Refusal as refusal:
            self.results.append(refusal)
            if told is None or "written" in str(refusal):
                return
            if due_ms not in was_due_ms and told.answers == answers_before[told.task.task_id]:
                told.due_ms.discard(due_ms)

    def called(self, received: Received) -> Outcome:
        outcomes = self.outcomes[received.task_id]
        if (token := received.headers.get(TOKEN_HEADER)) is not None:
            name = name_in(token, received.task_id, process.completion_secret())
            assert name is not None
            self.attempts[received.task_id] = name
        told = self.told.get(received.task_id)
        if told is not None:  # else its create was never answered
            self._judge(told, received.at_ms)
        outcomes.append(self.answer)
        return self.answer

    def _judge(self, told: Told, at_ms: int) -> None:
        if self.paused_ms is not None and at_ms > self.paused_ms + KNOWN_MS:
            self.broken.append(f"{told.task.task_id} was called during a pause")
        if told.is_cancelled:
            self.broken.append(f"{told.task.task_id} was called after it had been cancelled")
        if at_ms < min(told.due_ms):
            self.broken.append(
                f"{told.task.task_id} was called {min(told.due_ms) - at_ms} ms early"
            )

    def check(self) -> None:
        assert self.broken == []
        for task_id, told in self.told.items():
            task, outcomes = self.world.read(told.task), self.outcomes[task_id]
            reasons = 1 + self.unfinished + told.redrives
            assert outcomes.count(OK) <= reasons, "called again without a reason"
            if told.is_cancelled or task.status is Status.CANCELLED:
                assert task.status is Status.CANCELLED
                assert told.is_cancelled or told.may_be_cancelled
                continue
            if told.is_complete or (told.may_be_complete and task.status is Status.DELIVERED):
                assert task.status is Status.DELIVERED, "a reported end was lost"
                continue
            assert len(outcomes) > told.calls_before, "a pending task was not called"
            expected = Status.DEAD if outcomes[-1] is GONE else Status.DELIVERED
            assert task.status is expected
        assert not any(is_pending(item) for item in self.health()), "a task was lost"

    def health(self) -> list[dict[str, Any]]:
        """The keys and relations of the wheel's items, without reading them completely."""
        return self.world.emulator.items(self.world.settings.wheel_table, ATTRIBUTES)


def is_pending(item: dict[str, Any]) -> bool:
    return item.get("status") == {"S": "pending"}
