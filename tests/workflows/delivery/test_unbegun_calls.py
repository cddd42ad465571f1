"""A call that could not begin is no attempt: its task falls due again, within its own bounds."""

import pytest

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.delivery.circuit_breaker import CALLS_MIN, WAITS_MS_MAX
from duewheel.rules.tasks.lifecycle import UNBEGUN_WAIT_MS, postponed_unbegun
from duewheel.rules.tasks.task import Status
from tests.support.receiver import OK
from tests.support.world import World

UNBEGUN = Outcome(Verdict.RETRY, "not begun", was_begun=False)


@pytest.fixture(autouse=True)
def nothing_begins(world: World) -> None:
    world.receiver.answer = lambda received: UNBEGUN


def test_an_unbegun_call_takes_no_attempt_and_its_task_falls_due_seconds_later(
    world: World,
) -> None:
    task = world.fall_due(world.created())
    assert (task.status, task.attempts, task.history) == (Status.PENDING, 0, ())
    assert task.next_ms == world.clock.now_ms() + UNBEGUN_WAIT_MS
    world.receiver.answer = lambda received: OK
    task = world.fall_due(task)
    assert (task.status, task.attempts) == (Status.DELIVERED, 1)


def test_an_unbegun_call_does_not_count_for_the_health_of_the_host(world: World) -> None:
    tasks = world.created_many(world.new(30_000) for _ in range(2 * CALLS_MIN))
    world.fall_due(tasks[0])
    assert world.health_store.read("orders").breakers == ()


def test_a_task_whose_grace_ends_before_its_call_begins_expires(world: World) -> None:
    task = world.fall_due(world.created(expires_after_seconds=2.0))
    assert task.status is Status.PENDING
    assert world.fall_due(task).status is Status.EXPIRED


def test_an_unbegun_call_counts_as_an_attempt_when_the_task_has_been_due_for_a_day(
    world: World,
) -> None:
    task = world.created()
    world.dispatch_until(task.next_ms // 1000)
    world.clock.set_ms(task.next_ms + WAITS_MS_MAX + 1)
    world.drain()
    assert world.read(task).attempts == 1


def test_many_unbegun_calls_are_spread_over_some_seconds_in_their_order(world: World) -> None:
    tasks = world.created_many(world.new(30_000) for _ in range(4))
    instants = [after.next_ms for _, after in postponed_unbegun(tasks, 1_000)]
    assert instants == [1_000 + UNBEGUN_WAIT_MS + UNBEGUN_WAIT_MS * n // 4 for n in range(4)]
