"""Calls of a business are signed with its secrets, which no answer shows, or they are not made."""

import base64
from typing import Any

import pytest

from duewheel.rules.callbacks.signature import signatures
from duewheel.rules.refusals import Unavailable
from duewheel.rules.tasks.task import Status
from duewheel.stores.businesses.secret_store import NewSecrets, SecretUnavailable
from tests.support.receiver import Received
from tests.support.world import World

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
BODY = b'{"order": 17}'


def text_of(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


def sign_with(world: World, *secrets: bytes) -> None:
    world.configured("orders", signing_secrets=tuple(map(text_of, secrets)))
    world.clock.advance_ms(5_000)


def call_of(world: World, **fields: Any) -> Received:
    task = world.fall_due(world.created(**fields))
    assert task.status is Status.DELIVERED
    return world.receiver.received[-1]


def signed(call: Received, *secrets: bytes, body: bytes = BODY) -> str:
    seconds = int(call.headers["webhook-timestamp"])
    return signatures(secrets, call.headers["webhook-id"], seconds, body)


def test_a_call_has_the_signature_of_its_body(world: World) -> None:
    sign_with(world, NEW)
    call = call_of(world)
    assert call.body == BODY
    assert call.headers["webhook-signature"] == signed(call, NEW)


def test_a_call_without_a_body_is_signed(world: World) -> None:
    sign_with(world, NEW)
    call = call_of(world, payload=None)
    assert call.body is None
    assert call.headers["webhook-signature"] == signed(call, NEW, body=b"")


def test_every_attempt_has_a_signature_of_its_own(world: World) -> None:
    sign_with(world, NEW)
    first = call_of(world)
    world.clock.advance_ms(60_000)
    second = call_of(world)
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


def test_both_secrets_sign_during_a_rotation_and_afterwards_only_the_new_one(world: World) -> None:
    for secrets in ((OLD,), (NEW, OLD), (NEW,)):
        sign_with(world, *secrets)
        call = call_of(world)
        assert call.headers["webhook-signature"] == signed(call, *secrets)
    world.configured("orders", signing_secrets=None)
    world.clock.advance_ms(5_000)
    assert "webhook-signature" not in call_of(world).headers


def test_no_call_is_made_while_secrets_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_with(world, NEW)

    def closed(*_: object) -> bytes:
        raise SecretUnavailable("AWS does not answer")

    task = world.created()
    with monkeypatch.context() as patched:
        patched.setattr(type(world.secret_store), "open", closed)
        task = world.fall_due(task)
    assert (task.status, task.attempts) == (Status.PENDING, 1)
    assert task.last_error == "cannot be signed: the secrets do not open"
    assert world.receiver.received == []

    assert world.fall_due(task).status is Status.DELIVERED
    (call,) = world.receiver.received
    assert call.headers["webhook-signature"] == signed(call, NEW)


def test_settings_do_not_change_when_secrets_cannot_be_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> bytes:
        raise SecretUnavailable("AWS does not answer")

    monkeypatch.setattr(NewSecrets, "add", closed)
    with pytest.raises(Unavailable):
        world.configured("orders", retention_days=3, signing_secrets=(text_of(NEW),))
    assert world.businesses.read_whole("orders").version == 0


def test_wheel_and_registry_contain_no_readable_secret(world: World) -> None:
    sign_with(world, NEW, OLD)
    call_of(world)
    kept = repr([world.emulator.items(t) for t in ("duewheel-Registry", "duewheel-Wheel")])
    for secret in (NEW, OLD):
        for shape in (text_of(secret), text_of(secret)[6:], repr(secret)[2:-1], secret.hex()):
            assert shape not in kept
    assert text_of(NEW)[-4:] in kept.replace("=", "") or text_of(NEW).rstrip("=")[-4:] in kept
