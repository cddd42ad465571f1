"""Answers are kept by the setting of a business, with the write that settles or retries a task."""

import pytest

from duewheel.rules.callbacks.types import KeepAnswers, RetryPolicy
from duewheel.rules.tasks.task import Status, Task
from duewheel.targets.http.connection import Reply
from tests.support.receiver import OK
from tests.support.stories import is_write
from tests.support.world import FAR_MS, World

KEEP = KeepAnswers(headers=("x-request",))


def answered(world: World, *replies: Reply, keep: KeepAnswers | None = KEEP) -> Task:
    """A task whose attempts get these replies."""
    if keep is not None:
        world.configured("orders", keep_answers=keep)
    left = list(replies)
    world.receiver.whole_answer = lambda received: left.pop(0)
    world.receiver.answer = lambda received: OK  # where no answer is wanted
    task = world.created(FAR_MS, retry=RetryPolicy(attempts_max=2, delays_seconds=(200.0,)))
    world.come_up(task)
    return world.read(task)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, Status.DELIVERED), (410, Status.DEAD), (503, Status.PENDING)],
)
def test_the_last_answer_is_kept_however_the_attempt_ended(
    world: World, status: int, expected: Status
) -> None:
    body = "é" * 2_000
    task = answered(world, Reply(status, {"x-request": "17", "date": "today"}, body.encode()))
    assert task.status is expected
    assert task.answer is not None
    assert (task.answer.status_code, task.answer.headers) == (status, {"x-request": "17"})
    assert task.answer.body == "é" * 1_024
    assert not task.answer.is_whole
    assert task.history[-1].answer is None
    assert task.history[-1].note == "é" * 64


def test_the_next_answer_replaces_it(world: World) -> None:
    task = answered(world, Reply(503, {}, b"busy"), Reply(200, {}, b"done"))
    assert task.answer is not None
    assert task.answer.body == "busy"
    world.clock.set_ms(task.next_ms)
    world.come_up(task)
    settled = world.read(task)
    assert settled.status is Status.DELIVERED
    assert settled.answer is not None
    assert (settled.answer.body, settled.answer.is_whole) == ("done", True)


def test_it_costs_no_request_and_without_the_setting_nothing_is_kept(world: World) -> None:
    operations = []
    for keep in (None, KEEP):
        if keep is not None:
            world.configured("orders", keep_answers=keep)
        world.recorder.clear()
        task = answered(world, Reply(200, {}, b"done"), keep=None)
        assert (task.answer is None) is (keep is None)
        operations.append([one.operation for one in world.recorder.calls if is_write(one)])
    assert operations[0] == operations[1]


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_the_status_of_an_empty_answer_is_the_last_error(world: World, body: bytes) -> None:
    assert answered(world, Reply(410, {}, body)).last_error == "status 410"


def test_a_task_that_died_of_empty_answers_has_their_status(world: World) -> None:
    task = answered(world, Reply(500, {}, b""), Reply(500, {}, b""))
    assert (task.status, task.last_error) == (Status.PENDING, "status 500")
    world.clock.set_ms(task.next_ms)
    world.come_up(task)
    dead = world.read(task)
    assert (dead.status, dead.reason) == (Status.DEAD, "attempts exhausted")
    assert dead.last_error == "status 500"
