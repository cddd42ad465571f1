"""The public Standard Webhooks library accepts the signatures of callbacks."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, tzinfo
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import webhooks
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from duewheel.rules.callbacks.signature import (
    SECRET_BYTES_MAX,
    SECRET_BYTES_MIN,
    has_second_reading,
    hint_of,
    secret_from,
    signatures,
)
from tests.support.cases import each_case

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


def test_the_signature_of_the_specifications_example_is_computed() -> None:
    secret = secret_from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signatures(
        [secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(SECRETS)
def test_a_receiver_with_the_secret_accepts_the_callback(secret: bytes) -> None:
    assert Webhook(text_of(secret)).verify(BODY, headers([secret], BODY)) == json.loads(BODY)


@given(SECRETS, SECRETS)
def test_a_receiver_accepts_either_of_two_live_secrets(old: bytes, new: bytes) -> None:
    sent = headers([new, old], BODY)
    for secret in (old, new):
        assert Webhook(text_of(secret)).verify(BODY, sent) == json.loads(BODY)


@each_case("changed", ["webhook-id", "body", "secret"])
def test_a_receiver_refuses_a_callback_that_was_changed(changed: str) -> None:
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


@each_case(
    "text",
    [
        "",
        "whsec_",
        text_of(bytes(24)).removeprefix("whsec_"),
        text_of(bytes(SECRET_BYTES_MIN - 1)),
        text_of(bytes(SECRET_BYTES_MAX + 1)),
        "whsec_" + "a" * 33,  # not a length of base64
        "whsec_" + "ä" * 32,
        "whsec_" + "a" * 31 + "\n",
        "whsec_" + "-_" * 16,
        "WHSEC_" + "a" * 32,
    ],
)
def test_an_invalid_secret_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match="whsec_") as refused:
        secret_from(text)
    assert refused.value.__cause__ is None
    assert len(text) < 10 or text not in str(refused.value)


@given(SECRETS)
def test_four_characters_of_a_secret_are_shown(secret: bytes) -> None:
    text = text_of(secret)
    shown = hint_of(text).removeprefix("whsec_…")
    assert len(shown) == 4
    assert text.rstrip("=").endswith(shown)


NOW = 1_900_000_000
LATER = NOW + 400 * 86_400


@each_case(
    "body",
    [
        f'{LATER}.{{"order": 17}}',
        f'x.{LATER}.{{"order": 17}}',
        f"a\n1.2.3.{LATER}.b",
        f"{NOW - 300}.x",
        f" {LATER} .x",
        f".+{LATER}.x",
        f".00{LATER}.x",
        f".{LATER:_}.x",
        f".0_0{LATER}.x",
        f"{LATER}.",
        f"{LATER}.5",  # a JSON number, read as 5
        f"1.{NOW - 301}.{LATER}.x",
        f'{{"a": ".{LATER}.{{}}"}} x',
        f"{LATER}x.{{}}",
        f"{LATER} EUR. Paid.",
        f"note.{LATER}x.y.{{}}",
        f"\xa0{LATER}\x85.x",
        "20e8.x",
        "a.2E+9.x",
        "1.95e9.x",
        "0.00195e12.x",
        "1.1950000000e0.x",
        "19500000000e-1.x",
        f"{LATER:#x}.x",
        f"a.0X{LATER:X}.x",
        f"+0x{LATER:_x} .x",
    ],
)
def test_a_body_with_a_later_instant_between_dots_has_a_second_reading(body: str) -> None:
    assert has_second_reading(body.encode(), NOW)


@each_case(
    "body",
    [
        "",
        '{"order": 17}',
        "10.0.0.1 and 1.2.3, 17.5",
        f"{NOW - 301}.{{}}",
        f"backup.{NOW - 86_400}.tar",
        f"{LATER}",
        f"x{LATER}.y",
        f"{LATER},5",
        f"-{LATER}.x",
        f"{10 * LATER}.x",
        f"{10 * LATER:#x}.x",
        "1e9.x",
        "1.95e8.x",
        "20e80.x",
        "2e99999.x",
        f"a {LATER}x.y",
        f"a.{LATER}x",
        "0x.x",
        "0xg.x",
        "___.x",
        "0" * 100_000 + ".x",
        "9" * 100_000 + ".x",
        "0." * 50_000,
        "0x" + "f" * 100_000 + ".x",
        "." * 100_000 + " " * 100_000 + ".x",
        f'{{"file": "invoice.{LATER}.pdf"}}',
        f'"x.{LATER}.[1]"',
        f'[{LATER}.5, {"7" * 5_000}, ".{LATER}."]',
    ],
)
def test_other_bodies_have_one_reading(body: str) -> None:
    assert not has_second_reading(body.encode(), NOW)


def test_a_document_nested_too_deeply_to_read_has_a_second_reading() -> None:
    body = "[" * 100_000 + f'".{LATER}."' + "]" * 100_000
    assert has_second_reading(body.encode(), NOW)


TRICKY = st.text(alphabet='."\\[]{},: 1x', max_size=12)
DOCUMENTS = st.recursive(
    TRICKY | st.floats(0, 100) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TRICKY, inner, max_size=3),
    max_leaves=6,
).filter(lambda document: isinstance(document, str | list | dict))


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@given(DOCUMENTS)
def test_the_rest_of_a_json_document_after_a_dot_is_not_json(document: object) -> None:
    """For this reason such a body is signed, whatever numbers its texts contain."""
    text = json.dumps(document)
    rests = [text[at + 1 :] for at, character in enumerate(text) if character == "."]
    for rest in rests:
        assert not is_json(rest)


@contextmanager
def clock_at(timestamp: str) -> Iterator[None]:
    """The library's clock shows this instant, or the current one if it is invalid."""
    shown = int(timestamp) if timestamp.isdecimal() and len(timestamp) < 12 else NOW

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(shown, tz)

    with mock.patch.object(webhooks, "datetime", Clock):
        yield


def readings(headers: dict[str, str], body: bytes) -> list[tuple[dict[str, str], bytes]]:
    """Each split of the signed text into id, timestamp and body, all of them with dots."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    parts = signed.decode().split(".")
    found = []
    for at in range(1, len(parts) - 1):
        split = {"webhook-id": ".".join(parts[:at]), "webhook-timestamp": parts[at]}
        found.append(({**headers, **split}, ".".join(parts[at + 1 :]).encode()))
    return found


@given(
    st.lists(
        st.sampled_from([".", "{}", '"', "[", "]", "x", "+", "0", "_", " "])
        | st.integers(NOW - 10, LATER).map(str),
        max_size=8,
    ).map("".join)
)
def test_a_signature_is_valid_for_one_reading_only(body: str) -> None:
    """According to the public library, now and at each later instant that the body contains."""
    secret = bytes(range(32))
    if has_second_reading(body.encode(), NOW):
        return
    sent = {
        "webhook-id": "AQG5_-",
        "webhook-timestamp": str(NOW),
        "webhook-signature": signatures([secret], "AQG5_-", NOW, body.encode()),
    }
    believed = []
    for headers, rest in readings(sent, body.encode()):
        with clock_at(headers["webhook-timestamp"]), suppress(WebhookVerificationError):
            Webhook(text_of(secret)).verify(rest, headers, json_parse=False)
            believed.append((headers, rest))
    if is_json(body):  # a receiver accepts JSON only
        believed = [(headers, rest) for headers, rest in believed if is_json(rest.decode())]
    assert all(each == (sent, body.encode()) for each in believed)
