"""Calls on API keys, on scripted answers."""

import json
from datetime import UTC, date, datetime, timedelta

import httpx
import pytest

from duewheel import Duewheel, Grant, errors
from tests.support import Script, problem

KEY = {
    "key_id": "tyuLCRLtUeQC",
    "name": "orders service",
    "grants": [{"right": "write", "businesses": "orders-*"}],
    "state": "live",
    "version": 1,
    "created_at": "2030-01-31T08:00:00.000Z",
    "created_by": "key:wuXgroiHasEL",
    "expires_at": None,
    "previous_until": None,
    "last_used_on": "2030-01-31",
    "revoked_at": None,
}
TEXT = "dw_tyuLCRLtUeQC_secret_checksum"


def client_of(script: Script) -> Duewheel:
    return Duewheel("http://duewheel.example", transport=script.transport)


def sent(script: Script) -> list[tuple[str, str, object]]:
    return [
        (request.method, request.url.path, json.loads(request.content or b"null"))
        for request in script.requests
    ]


def test_create_sends_the_grants_and_returns_the_key() -> None:
    script = Script(httpx.Response(201, json={**KEY, "key": TEXT}))
    made = client_of(script).keys.create(
        "orders service",
        [Grant(right="write", businesses="orders-*")],
        expires_at=datetime(2031, 1, 1, tzinfo=UTC),
    )
    assert (made.key, made.key_id, made.extra) == (TEXT, "tyuLCRLtUeQC", {})
    assert made.grants == (Grant(right="write", businesses="orders-*"),)
    assert made.last_used_on == date(2030, 1, 31)
    assert sent(script) == [
        (
            "POST",
            "/v1/keys",
            {
                "name": "orders service",
                "grants": [{"right": "write", "businesses": "orders-*"}],
                "expires_at": "2031-01-01T00:00:00+00:00",
            },
        )
    ]


def test_keys_are_read_listed_rotated_and_revoked() -> None:
    page = httpx.Response(200, json={"keys": [KEY], "cursor": "more"})
    end = httpx.Response(200, json={"keys": [], "cursor": None})
    script = Script(page, end, httpx.Response(200, json=KEY))
    keys = client_of(script).keys
    assert [key.name for key in keys.list()] == ["orders service"]
    assert keys.get("tyuLCRLtUeQC").state == "live"
    keys.rotate("tyuLCRLtUeQC")
    keys.rotate("tyuLCRLtUeQC", overlap=timedelta(hours=1))
    assert keys.revoke("tyuLCRLtUeQC").key is None
    assert sent(script)[2:] == [
        ("GET", "/v1/keys/tyuLCRLtUeQC", None),
        ("POST", "/v1/keys/tyuLCRLtUeQC/rotate", {}),
        ("POST", "/v1/keys/tyuLCRLtUeQC/rotate", {"overlap_seconds": 3600}),
        ("DELETE", "/v1/keys/tyuLCRLtUeQC", None),
    ]


def test_a_create_of_a_key_is_not_repeated_after_a_lost_answer() -> None:
    for call in (lambda keys: keys.create("n", []), lambda keys: keys.rotate("k")):
        script = Script(httpx.ReadTimeout("lost"), httpx.Response(200, json=KEY))
        with pytest.raises(errors.OutcomeUnknown):
            call(client_of(script).keys)
        assert len(script.requests) == 1


def test_refusals_of_keys_have_exception_classes() -> None:
    for name, expected in (
        ("unknown-api-key", errors.UnknownApiKey),
        ("api-key-ended", errors.ApiKeyEnded),
        ("not-permitted", errors.NotPermitted),
    ):
        with pytest.raises(expected):
            client_of(Script(problem(name, 403))).keys.get("k")
