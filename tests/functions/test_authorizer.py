"""The authorizer: the keys that it admits, its answers, and its records."""

from io import StringIO
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from duewheel.log import logger
from duewheel.rules.access.api_keys import DAY_MS, key_text, secret_text
from duewheel.rules.access.grants import ANYTHING, Grant, Right
from duewheel.rules.access.requests import FIRST_ADMIN, NewApiKey
from duewheel.stores import registry_keys
from duewheel.wiring import api as wiring
from duewheel.wiring import process
from duewheel.workflows.access.api_keys import Issued
from functions.authorizer import app as authorizer
from tests.functions.conftest import Context, event_from
from tests.support.clock import ManualClock

REFUSED = {"isAuthorized": False}
NEW = NewApiKey("a", (Grant(Right.WRITE, "orders-*"), Grant(Right.READ, "*")))
BY = ANYTHING.access


def asked(text: str, scheme: str = "Bearer") -> dict[str, Any]:
    event = event_from("authorizer-request.json")
    event["identitySource"] = [f"{scheme} {text}"]
    event["headers"]["authorization"] = f"{scheme} {text}"
    return authorizer.handler(event, Context())


@pytest.fixture
def issued(wired: ManualClock) -> Issued:
    return wiring.issue_keys().create(NEW, BY)


def stored(issued: Issued) -> dict[str, Any]:
    key = registry_keys.api_key(issued.key.key_id)
    table = process.settings().registry_table
    return boto3.client("dynamodb").get_item(TableName=table, Key=key)["Item"]


def test_a_valid_key_is_admitted_with_its_grants(issued: Issued) -> None:
    context = {
        "key_id": issued.key.key_id,
        "grants": "write:orders-*,read:*",
        "expires_ms": "",
        "version": "1",
    }
    assert asked(issued.text) == {"isAuthorized": True, "context": context}
    assert asked(issued.text, "bearer") == asked(issued.text)


def test_the_answer_depends_on_the_cached_value_alone(issued: Issued) -> None:
    event = event_from("authorizer-request.json")
    event["identitySource"] = [f"Bearer {issued.text}"]
    event["headers"] = {}
    event["rawPath"], event["routeKey"] = "/v1/keys", "ANY /api/{proxy+}"
    assert authorizer.handler(event, Context()) == asked(issued.text)


def test_another_secret_another_id_and_a_wrong_checksum_are_refused(issued: Issued) -> None:
    key_id, secret = issued.text.split("_")[1:3]
    for text in (
        key_text(key_id, secret_text(bytes(32))),
        key_text("0" * 12, secret),
        issued.text[:-1] + ("a" if issued.text[-1] != "a" else "b"),
        "",
    ):
        assert asked(text) == REFUSED


def test_a_wrong_secret_and_an_unknown_id_need_the_same_reads(
    issued: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    client = process.dynamodb()
    client.meta.events.register(
        "before-call.dynamodb.*", lambda model, **_: calls.append(model.name)
    )
    key_id, secret = issued.text.split("_")[1:3]
    asked(key_text(key_id, secret_text(bytes(32))))
    asked(key_text("0" * 12, secret))
    assert calls == ["GetItem", "GetItem"]
    asked(issued.text[:-6] + "000000")
    assert len(calls) == 2, "a key with a wrong checksum causes no read"


def test_a_key_is_refused_from_its_expiry_on(wired: ManualClock) -> None:
    expires_ms = wired.now_ms() + 5_000
    issued = wiring.issue_keys().create(NewApiKey("a", NEW.grants, expires_ms), BY)
    assert asked(issued.text)["context"]["expires_ms"] == str(expires_ms)
    wired.advance_ms(5_000)
    assert asked(issued.text) == REFUSED


def test_the_day_of_the_last_use_is_written_once_a_day(issued: Issued, wired: ManualClock) -> None:
    writes: list[str] = []
    client = process.dynamodb()
    client.meta.events.register("before-call.dynamodb.UpdateItem", lambda **_: writes.append("one"))
    today = wired.now_ms() // DAY_MS
    for _ in range(3):
        asked(issued.text)
    assert stored(issued)["last_used_day"] == {"N": str(today)}
    assert len(writes) == 1
    wired.advance_ms(DAY_MS)
    asked(issued.text)
    assert stored(issued)["last_used_day"] == {"N": str(today + 1)}
    assert len(writes) == 2


def test_a_failed_record_of_the_last_use_is_logged_and_the_key_admitted(
    issued: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[dict[str, Any]] = []
    monkeypatch.setattr(logger, "warning", lambda _, **more: warned.append(more))

    def fail(**_: object) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError"}}, "UpdateItem")

    monkeypatch.setattr(process.dynamodb(), "update_item", fail)
    assert asked(issued.text)["isAuthorized"]
    assert [line["action"] for line in warned] == ["last-use-not-recorded"]


def test_a_damaged_key_is_refused_and_reported(
    issued: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[dict[str, Any]] = []
    monkeypatch.setattr(logger, "error", lambda _, **more: reported.append(more))
    table, client = process.settings().registry_table, boto3.client("dynamodb")
    for damage in ({"grants": {"S": "all:*"}}, {"digest": {"B": b""}}, {"version": {"S": "1"}}):
        client.put_item(TableName=table, Item={**stored(issued), **damage})
        assert asked(issued.text) == REFUSED
    assert [line["action"] for line in reported] == ["unreadable"] * 3


def test_a_failed_read_of_keys_neither_admits_nor_refuses(
    issued: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API Gateway answers 500, and does not cache it."""

    def fail(**_: object) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError"}}, "GetItem")

    monkeypatch.setattr(process.dynamodb(), "get_item", fail)
    with pytest.raises(ClientError):
        asked(issued.text)


def test_neither_a_key_nor_its_hash_is_logged(
    issued: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", written)
    level = logger.log_level
    logger.setLevel("DEBUG")
    try:
        asked(issued.text)
        asked(issued.text[:-1])
    finally:
        logger.setLevel(level)
    for part in (issued.text.split("_")[2], issued.key.digest.hex()):
        assert part not in written.getvalue()


def test_only_the_hash_of_a_secret_is_stored(issued: Issued) -> None:
    assert issued.text.split("_")[2] not in repr(stored(issued))


def test_the_first_admin_key_may_do_everything(wired: ManualClock) -> None:
    issued = wiring.issue_keys().create(FIRST_ADMIN, BY)
    assert asked(issued.text)["context"]["grants"] == "admin:*"
