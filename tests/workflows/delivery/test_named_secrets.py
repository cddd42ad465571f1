"""Named secrets of a business are filled into headers at the call, and never shown."""

from typing import Any

import pytest

from duewheel.rules.callbacks.types import (
    FilledCallback,
    HttpCallback,
    OnOutcome,
    RetryPolicy,
    Told,
)
from duewheel.rules.refusals import InvalidField, Unavailable
from duewheel.rules.tasks.task import Status
from duewheel.stores.businesses.secret_store import NewSecrets, SecretUnavailable
from tests.support.receiver import GONE, OK
from tests.support.timers import made, occurrences
from tests.support.world import World

CANARY = "canary-0123456789"
OWN = "https://own.example/hook"
TO_OWN = HttpCallback(OWN)
AUTHORIZED = HttpCallback(OWN, headers=(("authorization", "Bearer {{secret:token}}"),))


@pytest.fixture
def called(world: World) -> list[HttpCallback]:
    return world.receiver.callbacks


def store_secrets(world: World, **settings: Any) -> None:
    world.configured("orders", callback=TO_OWN, **settings)
    world.clock.advance_ms(5_000)


def test_a_header_gets_the_secret_that_is_current_at_the_call(
    world: World, called: list[HttpCallback]
) -> None:
    store_secrets(world, secrets={"token": "old", "other": "another"})
    task = world.created(callback=AUTHORIZED)
    store_secrets(world, secrets={"token": CANARY, "other": None})
    assert world.fall_due(task).status is Status.DELIVERED
    assert called[0].headers == (("authorization", f"Bearer {CANARY}"),)
    assert isinstance(called[0], FilledCallback)
    assert called[0].secrets == (CANARY,), "they are searched for in the answer"
    assert [one.name for one in world.businesses.read_whole("orders").own.secrets or ()] == [
        "token"
    ]


def test_only_the_table_of_secrets_holds_one_and_no_message_does(
    world: World, called: list[HttpCallback]
) -> None:
    store_secrets(world, secrets={"token": CANARY})
    world.fall_due(world.created(callback=AUTHORIZED))
    assert CANARY in str(called)
    tables = [world.emulator.items(name) for name in ("duewheel-Registry", "duewheel-Wheel")]
    assert CANARY not in repr(tables)
    sent = [call for call in world.recorder.calls if call.operation != "BatchWriteItem"]
    assert CANARY not in repr([call.request for call in sent])


def test_default_headers_notices_and_timers_may_refer_to_secrets(
    world: World, called: list[HttpCallback]
) -> None:
    elsewhere = HttpCallback("https://ops.example/", headers=(("x-key", "{{secret:token}}"),))
    once, told = RetryPolicy(attempts_max=1), OnOutcome((Told.DEAD,), elsewhere)
    store_secrets(world, secrets={"token": CANARY}, on_outcome=told, retry=once)
    world.configured("orders", callback=AUTHORIZED)
    world.clock.advance_ms(5_000)
    world.receiver.answer = lambda received: GONE
    world.fall_due(world.created(callback=None))
    world.dispatch_until(world.clock.now_ms() // 1000 + 1)
    world.clock.advance_ms(1_000)
    world.drain()
    assert [(call.url, call.headers[0][1]) for call in called] == [
        (OWN, f"Bearer {CANARY}"),
        (elsewhere.url, CANARY),
    ]
    timer = made(world, 60, callback=AUTHORIZED)
    world.clock.advance_ms(1_000)
    world.drain()  # plans the chain
    world.receiver.answer = lambda received: OK
    called.clear()
    world.fall_due(occurrences(world, timer)[0])
    assert called[0].headers == (("authorization", f"Bearer {CANARY}"),)


def test_a_missing_secret_is_refused_and_ends_a_waiting_task(
    world: World, called: list[HttpCallback]
) -> None:
    store_secrets(world, secrets={"token": CANARY})
    task = world.created(callback=AUTHORIZED)
    with pytest.raises(InvalidField, match="token, which is not in secrets"):
        world.configured("orders", secrets=None, callback=AUTHORIZED)
    store_secrets(world, secrets={"token": None})
    with pytest.raises(InvalidField, match="no secret of the business"):
        world.created(callback=AUTHORIZED)
    assert world.fall_due(task).status is Status.DEAD
    assert called == []


def test_no_call_is_made_and_no_settings_are_written_while_the_table_of_secrets_fails(
    world: World, called: list[HttpCallback], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> bytes:
        raise SecretUnavailable("AWS does not answer")

    store_secrets(world, secrets={"token": CANARY})
    task = world.created(callback=AUTHORIZED)
    with monkeypatch.context() as patched:
        patched.setattr(type(world.secret_store), "open", closed)
        patched.setattr(NewSecrets, "add", closed)
        task = world.fall_due(task)
        with pytest.raises(Unavailable):
            world.configured("orders", secrets={"token": "new"})
    assert (task.status, task.attempts, called) == (Status.PENDING, 1, [])
    assert world.fall_due(task).status is Status.DELIVERED
    assert CANARY in str(called)
