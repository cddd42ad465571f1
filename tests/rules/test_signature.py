"""Callbacks are signed so that the public Standard Webhooks library accepts them."""

import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from duewheel.rules.signature import (
    SECRET_BYTES_MAX,
    SECRET_BYTES_MIN,
    hint_of,
    secret_from,
    signatures,
)

SECRETS = st.binary(min_size=SECRET_BYTES_MIN, max_size=SECRET_BYTES_MAX)
BODY = json.dumps({"order": 17, "text": "größe"}, ensure_ascii=False).encode()


def text_of(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


def headers(secrets: list[bytes], body: bytes, webhook_id: str = "t_1.0") -> dict[str, str]:
    seconds = int(time.time())
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": signatures(secrets, webhook_id, seconds, body),
    }


def test_the_example_of_the_specification_comes_out() -> None:
    secret = secret_from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signatures(
        [secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(SECRETS)
def test_a_receiver_with_the_secret_accepts_the_callback(secret: bytes) -> None:
    assert Webhook(text_of(secret)).verify(BODY, headers([secret], BODY)) == json.loads(BODY)


@given(SECRETS, SECRETS)
def test_while_two_secrets_live_a_receiver_needs_either(old: bytes, new: bytes) -> None:
    sent = headers([new, old], BODY)
    for secret in (old, new):
        assert Webhook(text_of(secret)).verify(BODY, sent) == json.loads(BODY)


@pytest.mark.parametrize("changed", ["webhook-id", "body", "secret"])
def test_a_receiver_refuses_what_was_changed_on_the_way(changed: str) -> None:
    secret = bytes(range(32))
    sent = headers([secret], BODY)
    if changed == "webhook-id":
        sent["webhook-id"] = "t_2.0"
    body = BODY + b" " if changed == "body" else BODY
    known = bytes(32) if changed == "secret" else secret
    with pytest.raises(WebhookVerificationError):
        Webhook(text_of(known)).verify(body, sent)


def test_a_callback_without_a_body_is_signed_as_one_with_an_empty_body() -> None:
    secret = bytes(range(24))
    Webhook(text_of(secret)).verify(b"", headers([secret], b""), json_parse=False)


@given(SECRETS)
def test_secrets_are_read_with_and_without_padding(secret: bytes) -> None:
    assert secret_from(text_of(secret)) == secret_from(text_of(secret).rstrip("=")) == secret


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        text_of(bytes(24)).removeprefix("whsec_"),
        text_of(bytes(SECRET_BYTES_MIN - 1)),
        text_of(bytes(SECRET_BYTES_MAX + 1)),
        "whsec_" + "a" * 33,  # no length that base64 can have
        "whsec_" + "ä" * 32,
        "whsec_" + "a" * 31 + "\n",
        "whsec_" + "-_" * 16,
        "WHSEC_" + "a" * 32,
    ],
)
def test_what_is_no_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="whsec_") as refused:
        secret_from(text)
    assert refused.value.__cause__ is None
    assert len(text) < 10 or text not in str(refused.value)


@given(SECRETS)
def test_what_is_shown_of_a_secret_is_four_characters(secret: bytes) -> None:
    text = text_of(secret)
    shown = hint_of(text).removeprefix("whsec_…")
    assert len(shown) == 4
    assert text.rstrip("=").endswith(shown)
