"""A caller with the write right keeps a signature, to use it long after its access ended. A
signature of the service must be valid for the original call only."""

import base64
import hmac
import json
import re
from datetime import datetime, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from standardwebhooks import webhooks
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.tasks.task import Status, Task
from tests.support.clock import NOON_MS
from tests.support.receiver import Received
from tests.support.world import World

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
LATER = NOON_MS // 1000 + 400 * 86_400
FORGED = '{"pay":1}'
SPLIT = {
    "at its start": f"{LATER}.{FORGED}",
    "further on": f"note 1.2.{LATER}.{FORGED}",
    "with more behind it": f"{LATER}x.{FORGED}",
    "in hexadecimal": f"{LATER:#x}.{FORGED}",
    "with an exponent": f"{LATER // 100}e2.{FORGED}",
}
UNSIGNED = "cannot be signed: a number in the body, before a dot, reads as a later timestamp"

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "receive-and-verify.md"


@pytest.fixture
def signing(world: World) -> World:
    world.configured("orders", signing_secrets=(SECRET,))
    world.clock.advance_ms(5_000)
    return world


def fall_due(world: World, body: str, *, is_raw: bool) -> Task:
    callback = HttpCallback("https://receiver.example/hook", "POST", (), is_raw)
    task = world.created(payload=json.dumps(body), callback=callback)
    world.dispatch_until(task.next_ms // 1000)
    world.drain()
    return world.read(task)


def sent_again(call: Received, body: str) -> object:
    """In 400 days, to a receiver with the public library; the text before the number becomes the
    id."""
    before = call.body.decode().partition(str(LATER))[0] if call.body else ""
    first = f"{call.headers['webhook-id']}.{call.headers['webhook-timestamp']}"
    new_id = f"{first}.{before}".removesuffix(".")
    headers = {**call.headers, "webhook-id": new_id, "webhook-timestamp": str(LATER)}

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(LATER, tz)

    with mock.patch.object(webhooks, "datetime", Later):
        return Webhook(SECRET).verify(body, headers)


@pytest.mark.parametrize("body", SPLIT.values(), ids=SPLIT.keys())
def test_a_body_that_contains_another_call_is_not_signed(signing: World, body: str) -> None:
    task = fall_due(signing, body, is_raw=True)
    assert [sent_again(call, FORGED) for call in signing.receiver.received] == []
    assert (task.status, task.last_error) == (Status.DEAD, UNSIGNED)


def test_the_same_text_as_json_is_signed_and_is_not_another_call(signing: World) -> None:
    """For this reason, a task with a JSON body is never refused because of its texts."""
    for body in SPLIT.values():
        assert fall_due(signing, body, is_raw=False).status is Status.DELIVERED
        call = signing.receiver.received[-1]
        rest = (call.body or b"").decode().partition(f"{LATER}.")[2]
        with pytest.raises((WebhookVerificationError, ValueError)):
            sent_again(call, rest)


def test_a_business_without_signing_secrets_sends_such_a_body(world: World) -> None:
    for body in SPLIT.values():
        assert fall_due(world, body, is_raw=True).status is Status.DELIVERED
        assert world.receiver.received[-1].body == body.encode()


@pytest.fixture(scope="module")
def by_hand() -> SimpleNamespace:
    """The code that the guide shows to receivers."""
    found = re.search(r"```python\n# verify.py\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    exec(found[1], names)
    return SimpleNamespace(**names)


@pytest.mark.parametrize("before", ["", "note 1.2."])
@pytest.mark.parametrize("number", [f"{LATER}", f"+{LATER}", f"{LATER:_}", f"0{LATER}"])
def test_the_code_of_the_guide_accepts_one_reading_only(
    by_hand: SimpleNamespace, before: str, number: str
) -> None:
    first, body = f"AQG5.{NOON_MS // 1000}", f"{before}{number}.{FORGED}".encode()
    digest = hmac.digest(by_hand.SECRET, f"{first}.".encode() + body, "sha256")
    headers = {
        "webhook-id": "AQG5",
        "webhook-timestamp": str(NOON_MS // 1000),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
    assert by_hand.is_genuine(headers, body, now=lambda: NOON_MS // 1000)
    new_id = f"{first}.{before}".removesuffix(".")
    forged = {**headers, "webhook-id": new_id, "webhook-timestamp": number}
    assert not by_hand.is_genuine(forged, FORGED.encode(), now=lambda: LATER)


def test_the_code_of_the_guide_does_not_fail_on_odd_signatures(by_hand: SimpleNamespace) -> None:
    sent = {"webhook-id": "AQG5", "webhook-timestamp": "0", "webhook-signature": "v1,é \ud800"}
    assert not by_hand.is_genuine(sent, b"", now=lambda: 0)
