"""While SQS refuses, a leader stays. It is killed at every step of a tick and of a hand-over.

The standby waits already. It dispatches what opened meanwhile within the lease, a look and a tick,
by the moved clock. No second is skipped, and a page that is dispatched twice is delivered once.
"""

import json
from collections.abc import Callable

import pytest
from botocore.exceptions import EndpointConnectionError

from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel import leader_election
from duewheel.rules.wheel.leader_election import LEASE_MS, POINTER_WRITE_EVERY_MS
from duewheel.rules.wheel.queue_messages import PageMessage, decode, texts_of_event
from duewheel.stores.wheel.pointers import TIME
from tests.support.bounds import quick_first
from tests.support.recorder import Call
from tests.support.world import World

TICK_MS = 1_000
LOOK_MS = round(leader_election.WATCH_SECONDS * 1000)
STANDBY_TAKES_MS = LEASE_MS + LOOK_MS + TICK_MS
TASKS_A_SECOND = 1
SECONDS = 25

Picks = Callable[[Call], bool]


class Killed(BaseException):
    """The process is gone: nothing catches this, and nothing is cleaned up."""


def is_probe(call: Call) -> bool:
    return call.operation == "Query"


def is_send(call: Call) -> bool:
    return call.operation == "SendMessageBatch"


def is_invoke(call: Call) -> bool:
    return call.operation == "Invoke"


def is_advance(call: Call) -> bool:
    return is_write(call, "#owner = :me") and not is_release(call)


def is_release(call: Call) -> bool:
    return is_write(call, "#owner = :me") and is_write(call, "REMOVE #owner")


def is_claim(call: Call) -> bool:
    return is_write(call, "#epoch = :new_epoch") and not is_write(call, "#owner = :me")


def is_registration(call: Call) -> bool:
    return is_write(call, "SET #place = :me")


def is_write(call: Call, text: str) -> bool:
    if call.operation != "UpdateItem" or "record" not in call.request["Key"]:
        return False
    return text in call.request["UpdateExpression"] + call.request["ConditionExpression"]


class Timeline:
    """Watches all calls: records when each second was sent, lets the others register at a leader's
    first probe, and kills the scheduler at the n-th call that `dies_at` picks. SQS refuses."""

    refuses = True

    def __init__(self, world: World, dies_at: Picks, number: int, moment: str) -> None:
        self.world = world
        self.sent_ms: dict[int, int] = {}
        self.died_ms: int | None = None
        self.others: list[str] = []
        self._dies_at, self._left, self._moment = dies_at, number, moment
        world.recorder.before, world.recorder.after = self._before, self._after

    def _before(self, call: Call) -> None:
        if is_probe(call) and self.others:
            waiting, self.others = self.others, []
            for other in waiting:
                self.register(other)
        self._maybe_die(call, "before")
        if is_send(call) and self.refuses:
            raise EndpointConnectionError(endpoint_url="https://sqs")

    def _after(self, call: Call) -> None:
        texts: list[str] = []
        if is_send(call):
            texts = [entry["MessageBody"] for entry in call.request["Entries"]]
        elif is_invoke(call):
            texts = texts_of_event(json.loads(call.request["Payload"])) or []
        for message in map(decode, texts):
            assert isinstance(message, PageMessage)
            self.sent_ms.setdefault(message.second, self.world.clock.now_ms())
        self._maybe_die(call, "after")

    def _maybe_die(self, call: Call, moment: str) -> None:
        if moment == self._moment and self.died_ms is None and self._dies_at(call):
            self._left -= 1
            if self._left == 0:
                self.died_ms = self.world.clock.now_ms()
                raise Killed

    def register(self, me: str) -> None:
        seen = self.world.pointer()
        step = leader_election.next_step(seen, me, self.world.clock.now_ms())
        try:
            self.world.pointers.register(seen, me, step)
        except Killed:
            assert me == "candidate"

    def lead(self, me: str, until_ms: int) -> None:
        """An invocation of the scheduler, up to its death or until then."""
        try:
            self.world.lead.run(
                me, lambda: 1_000_000 if self.world.clock.now_ms() < until_ms else 0
            )
        except Killed:
            return


def tasks_of_some_seconds(world: World) -> list[Task]:
    tasks = [
        world.created(in_ms=200_000 + second * 1_000 + n)
        for second in range(SECONDS)
        for n in range(TASKS_A_SECOND)
    ]
    world.clock.set_ms(tasks[0].due_ms - 1_000)
    world.pointers.skip_to(TIME, world.origin, tasks[0].due_ms // 1000 - 1)
    return tasks


def assert_nothing_was_skipped_or_late(world: World, line: Timeline, tasks: list[Task]) -> None:
    seconds = sorted({task.home.second for task in tasks})
    assert sorted(line.sent_ms) == seconds
    for second in seconds:
        assert line.sent_ms[second] - second * 1000 <= STANDBY_TAKES_MS
    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


@pytest.mark.parametrize("moment", quick_first(["before", "after"], pytest.mark.exhaustive))
@pytest.mark.parametrize(
    ("dies_at", "number"),
    quick_first(
        [(is_invoke, 5), (is_probe, 190), (is_advance, 1), (is_advance, 2)],
        pytest.mark.exhaustive,
    ),
    ids=["invoke", "probe", "first pointer write", "second pointer write"],
)
def test_the_standby_goes_on_where_the_leader_was_killed(
    world: World, dies_at: Picks, number: int, moment: str
) -> None:
    tasks = tasks_of_some_seconds(world)
    line = Timeline(world, dies_at, number, moment)
    line.others = ["standby"]
    until_ms = tasks[-1].due_ms + TICK_MS
    line.lead("leader", until_ms)
    assert line.died_ms is not None
    stood_at = world.pointer().position
    line.lead("standby", until_ms)

    assert_nothing_was_skipped_or_late(world, line, tasks)
    anew_ms = line.died_ms - stood_at * 1000
    assert anew_ms <= POINTER_WRITE_EVERY_MS + 2 * TICK_MS, "only what was not written yet"


@pytest.mark.parametrize(
    ("dies_at", "moment"),
    quick_first(
        [
            (is_claim, "before"),
            (is_release, "after"),
            (is_registration, "before"),
            (is_registration, "after"),
            (is_release, "before"),
            (is_claim, "after"),
        ],
        pytest.mark.exhaustive,
    ),
    ids=lambda value: value if isinstance(value, str) else value.__name__.removeprefix("is_"),
)
def test_a_scheduler_killed_at_the_hand_over_is_made_up_for(
    world: World, dies_at: Picks, moment: str
) -> None:
    """A candidate comes: leader, standby or candidate dies of it."""
    tasks = tasks_of_some_seconds(world)
    number = 1 if dies_at is is_release else 2  # the standby's claim; the candidate's registration
    line = Timeline(world, dies_at, number, moment)
    line.others = ["standby", "candidate"]
    until_ms = tasks[-1].due_ms + TICK_MS
    for me in ("leader", "standby", "candidate"):
        line.lead(me, until_ms)

    assert line.died_ms is not None
    assert_nothing_was_skipped_or_late(world, line, tasks)


@pytest.mark.parametrize("batch", quick_first([1, 2, 3], pytest.mark.exhaustive))
def test_a_leader_killed_between_the_batches_of_a_stride_leaves_no_gap(
    world: World, batch: int
) -> None:
    tasks = tasks_of_some_seconds(world)
    world.clock.set_ms(tasks[-1].due_ms)
    line = Timeline(world, is_send, batch, "after")
    line.refuses = False
    line.lead("leader", world.clock.now_ms() + 60_000)
    assert line.died_ms is not None
    world.clock.advance_ms(LEASE_MS)
    line.lead("standby", world.clock.now_ms() + TICK_MS)

    assert sorted(line.sent_ms) == sorted({task.home.second for task in tasks})
    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


@pytest.mark.exhaustive
def test_a_leader_killed_after_some_of_a_batchs_messages_leaves_no_gap(world: World) -> None:
    """SQS took three of ten, the rest was never sent: the batch is cut on its way."""
    tasks = tasks_of_some_seconds(world)
    world.clock.set_ms(tasks[-1].due_ms)
    line = Timeline(world, is_send, 1, "after")
    line.refuses = False
    watched = world.recorder.before

    def cut(call: Call) -> None:
        if is_send(call) and line.died_ms is None:
            del call.request["Entries"][3:]
        if watched is not None:
            watched(call)

    world.recorder.before = cut
    line.lead("leader", world.clock.now_ms() + 60_000)
    assert sorted(line.sent_ms) == sorted({task.home.second for task in tasks})[:3]
    world.clock.advance_ms(LEASE_MS)
    line.lead("standby", world.clock.now_ms() + TICK_MS)
    world.drain()

    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
