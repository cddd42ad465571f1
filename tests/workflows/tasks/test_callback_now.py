"""Which address is called, and which was: the effective callback, and the host of each attempt."""

import pytest
from botocore.exceptions import ClientError
from msgspec import UNSET

from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.stores.businesses.cache import KEPT_MS
from tests.support.receiver import BUSY
from tests.support.recorder import Call
from tests.support.world import CALLER, World
from tests.workflows.timers.test_fire import first_of, planned

OWN = HttpCallback("https://own.example/paid", "PUT", (("x-own", "1"),))
USUAL = HttpCallback("https://usual.example/hook", "PATCH", (("authorization", "Bearer one"),))
LATER = RetryPolicy(attempts_max=5, delays_seconds=(60.0,))


def hosts(world: World, task: Task) -> list[str | None]:
    return [attempt.host for attempt in world.read(task).history]


def test_a_business_fills_in_what_a_task_leaves_out(world: World) -> None:
    world.configured("orders", callback=USUAL, trusted_origins=("https://own.example",))
    left_out = world.created(callback=None)
    assert world.callback_now(left_out) == USUAL
    own = world.created(callback=OWN)
    filled = world.callback_now(own)
    assert isinstance(filled, HttpCallback)
    assert (filled.url, filled.method) == (OWN.url, OWN.method)
    assert dict(filled.headers) == {"x-own": "1", "authorization": "Bearer one"}
    world.come_up(left_out)
    assert hosts(world, left_out) == ["usual.example"]


def test_a_run_has_the_callback_of_its_timer_as_that_is_now(world: World) -> None:
    run = first_of(world, planned(world, callback=OWN))
    assert world.callback_now(world.read(run)) == OWN
    world.come_up(run)
    assert hosts(world, run) == ["own.example"]
    assert run.occurrence is not None
    world.change_timer.delete(run.occurrence.timer_id, by=CALLER)
    assert world.callback_now(world.read(run)) is UNSET


def test_an_attempt_keeps_the_host_that_it_called(world: World) -> None:
    world.receiver.answer = lambda _: BUSY
    task = world.created(callback=OWN, retry=LATER)
    world.come_up(task)
    world.change(task.task_id, Change(callback=USUAL))
    assert hosts(world, task) == ["own.example"]
    world.change.run(task.task_id)
    world.drain()
    assert hosts(world, task) == ["own.example", "usual.example"]


def test_an_attempt_without_a_call_has_no_host(world: World) -> None:
    task = world.created(callback=OWN)
    world.configured("orders", allowed_hosts=("usual.example",))
    world.come_up(task)
    assert world.read(task).status is Status.DEAD
    assert hosts(world, task) == [None]


def test_settings_that_cannot_be_read_leave_the_task_readable(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    task = world.read(world.created())
    world.clock.advance_ms(KEPT_MS)

    def refuse(call: Call) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError"}}, call.operation)

    world.recorder.before = refuse
    assert world.callback_now(task) is UNSET
    assert "why-unknown" in {getattr(record, "action", "") for record in caplog.records}
