"""A caller who may create tasks tries to get the headers that the business's admin has set."""

import pytest

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.refusals import InvalidField
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from tests.support.timers import made
from tests.support.world import World

CANARY = "Bearer canary-0123456789"
USUAL = HttpCallback("https://own.example/hook", "POST", (("Authorization", CANARY), ("x-a", "1")))
REFERS = (("authorization", "Bearer {{secret:token}}"),)
TO_A_STRANGER = HttpCallback("https://stranger.example/", headers=REFERS)
THEIRS = HttpCallback("https://stranger.example/hook", "", (("x-b", "2"),))


@pytest.fixture
def called(world: World) -> list[HttpCallback]:
    return world.receiver.callbacks


def call_all(world: World, last: Task) -> None:
    world.dispatch_until(last.next_ms // 1000)
    world.clock.set_ms(last.next_ms + 1_000)
    world.drain()


def test_default_headers_do_not_go_to_a_url_of_a_task(
    world: World, called: list[HttpCallback]
) -> None:
    """This includes a task that was created before the headers were set, and one that was
    changed."""
    world.configured("orders", callback=HttpCallback(USUAL.url))
    before, moved = world.created(callback=THEIRS), world.created(callback=None)
    world.configured("orders", callback=USUAL)
    world.change(moved.task_id, Change(callback=THEIRS))
    for url in (
        "http://own.example/",
        "https://own.example:8443/",
        "https://own.example.a.example",
    ):
        world.created(callback=HttpCallback(url, ""))
    call_all(world, before)
    assert len(called) == 5
    assert CANARY not in str(called)


@pytest.mark.parametrize("listed", [None, ("https://theirs.example",)])
def test_default_headers_go_to_the_origin_of_the_default_callback_and_to_listed_origins(
    world: World, called: list[HttpCallback], listed: tuple[str, ...] | None
) -> None:
    world.configured("orders", callback=USUAL, trusted_origins=listed)
    for url in ("", "https://own.example/other", "https://theirs.example/"):
        task = world.created(callback=HttpCallback(url, ""))
    call_all(world, task)
    assert len(called) == 3
    assert str(called).count(CANARY) == (2 if listed is None else 3)


def test_a_named_secret_does_not_go_to_an_origin_that_is_not_trusted(
    world: World, called: list[HttpCallback]
) -> None:
    trusted = ("https://stranger.example",)
    world.configured("orders", callback=USUAL, secrets={"token": CANARY}, trusted_origins=trusted)
    before = world.created(callback=TO_A_STRANGER)
    plain = world.created()
    world.configured("orders", trusted_origins=None)
    world.clock.advance_ms(5_000)
    for attack in (
        lambda: world.created(callback=TO_A_STRANGER),
        lambda: world.change(plain.task_id, Change(callback=TO_A_STRANGER)),
        lambda: made(world, 60, callback=TO_A_STRANGER),
    ):
        with pytest.raises(InvalidField, match="does not go to this origin"):
            attack()
    call_all(world, before)
    dead = world.read(before)
    assert (dead.status, dead.reason) == (Status.DEAD, "stopped")
    assert str(dead.last_error).startswith("secret-not-filled-in")
    assert CANARY not in str(called)
