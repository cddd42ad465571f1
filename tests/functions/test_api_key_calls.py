"""API keys over HTTP: create, read, list, rotate, revoke, each within the caller's own rights."""

from typing import Any

import boto3
import pytest

from duewheel.rules.access.api_keys import DAY_MS, KEPT_DAYS
from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.access.requests import FIRST_ADMIN
from duewheel.stores.access.api_key_changes import ApiKeyChanges
from duewheel.stores.access.api_keys import ApiKeyStore
from duewheel.stores.history import change_records
from duewheel.wiring import access as key_wiring
from duewheel.wiring import api as wiring
from duewheel.wiring import process
from functions.api import app as api
from functions.authorizer import app as authorizer
from tests.functions.conftest import Context, event_from, http_event, sent
from tests.support.clock import ManualClock
from tests.support.two_businesses import OPERATOR, Asked, all_that_is_stored, asked

ON_ORDERS = [{"right": "write", "businesses": "orders"}]
ADMIN_OF_ORDERS = "duewheel-admin-orders"


def created(who: str = OPERATOR, **members: Any) -> dict[str, Any]:
    answer = asked(who, "POST", "/v1/keys", {"name": "a", "grants": ON_ORDERS, **members})
    assert answer.status == 201, answer
    key: dict[str, Any] = answer.body
    return key


def problem(answer: Asked) -> tuple[int, str]:
    return answer.status, answer.body["type"].removeprefix("urn:duewheel:problem:")


def admission_of(text: str) -> dict[str, Any]:
    """The authorizer's answer to a key."""
    event = event_from("authorizer-request.json")
    event["identitySource"] = [f"Bearer {text}"]
    return authorizer.handler(event, Context())


def by_key(admission: dict[str, Any], method: str, path: str) -> int:
    """The status of a call with this answer of the authorizer."""
    grants = [{"right": "admin", "businesses": "*"}]
    body = {"name": "successor", "grants": grants} if path == "/v1/keys" else None
    event = http_event(method, path, body)
    event["requestContext"]["authorizer"] = {"lambda": admission["context"]}
    return int(api.handler(event, Context())["statusCode"])


@pytest.fixture
def in_keys_mode(wired: ManualClock, monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    monkeypatch.setenv("AUTH_MODE", "keys")
    process.start_anew(wired)
    return wired


def test_a_key_is_shown_once_and_has_the_granted_rights(wired: ManualClock) -> None:
    answer = asked(
        OPERATOR,
        "POST",
        "/v1/keys",
        {"name": "a", "grants": ON_ORDERS, "expires_at": "2030-06-01T00:00:00Z"},
    )
    made = answer.body
    assert admission_of(made["key"])["context"]["grants"] == "write:orders"
    read = asked(OPERATOR, "GET", f"/v1/keys/{made['key_id']}").body
    expected = {**made, "last_used_on": read["last_used_on"]}
    del expected["key"]
    assert read == expected
    assert read["last_used_on"] == made["created_at"][:10]
    assert read["created_by"].endswith(f"assumed-role/{OPERATOR}")
    (listed,) = asked(OPERATOR, "GET", "/v1/keys").body["keys"]
    assert listed == read
    assert "digest" not in answer.text


def test_an_answer_with_a_key_is_not_cacheable(wired: ManualClock) -> None:
    status, made, headers = sent("POST", "/v1/keys", {"name": "a", "grants": ON_ORDERS})
    assert (status, headers["cache-control"]) == (201, "no-store")
    assert headers["location"] == f"/v1/keys/{made['key_id']}"
    _, rotated, headers = sent("POST", f"/v1/keys/{made['key_id']}/rotate")
    assert headers["cache-control"] == "no-store"
    assert admission_of(rotated["key"])["isAuthorized"]


def test_a_caller_cannot_grant_more_than_its_own_rights(wired: ManualClock) -> None:
    before = all_that_is_stored()
    wanted = ("admin", "orders-eu"), ("read", "*"), ("read", "mail"), ("read", "orders*")
    for right, businesses in wanted:
        grants = [*ON_ORDERS, {"right": right, "businesses": businesses}]
        answer = asked(ADMIN_OF_ORDERS, "POST", "/v1/keys", {"name": "a", "grants": grants})
        assert problem(answer) == (403, "not-permitted")
    for who in ("duewheel-write", "duewheel-read-orders"):
        answer = asked(who, "POST", "/v1/keys", {"name": "a", "grants": ON_ORDERS})
        assert problem(answer) == (403, "not-permitted")
    assert all_that_is_stored() == before
    created(ADMIN_OF_ORDERS, grants=[{"right": "admin", "businesses": "orders"}])


def test_a_key_with_more_rights_than_the_caller_is_answered_as_absent(wired: ManualClock) -> None:
    more = created(grants=[*ON_ORDERS, {"right": "read", "businesses": "mail"}])
    path = f"/v1/keys/{more['key_id']}"
    asked(OPERATOR, "GET", "/v1/keys")  # which stores the key that seals cursors
    before = all_that_is_stored()
    for who in (ADMIN_OF_ORDERS, "duewheel-admin-mail", "duewheel-write"):
        for method, end in (("GET", ""), ("POST", "/rotate"), ("DELETE", "")):
            answer = asked(who, method, path + end)
            assert answer == asked(who, method, f"/v1/keys/{'0' * 12}{end}")
            assert problem(answer) == (404, "unknown-api-key")
        assert asked(who, "GET", "/v1/keys").body == {"keys": [], "cursor": None}
    assert all_that_is_stored() == before


def test_the_list_skips_keys_that_the_caller_may_not_see(wired: ManualClock) -> None:
    mine = {created(name=str(number))["key_id"] for number in range(4)}
    foreign = [{"right": "read", "businesses": "mail"}]
    others = {created(grants=foreign)["key_id"] for _ in range(4)}
    found, cursor = [], ""
    while cursor is not None:
        query = f"?limit=1{cursor and '&cursor='}{cursor}"
        page = asked(ADMIN_OF_ORDERS, "GET", f"/v1/keys{query}").body
        assert page["keys"], "a page and its cursor reveal no hidden keys"
        found += [key["key_id"] for key in page["keys"]]
        cursor = page["cursor"]
    assert found == sorted(mine)
    everything = asked(OPERATOR, "GET", "/v1/keys").body["keys"]
    assert {key["key_id"] for key in everything} == mine | others


def test_a_rotation_keeps_the_id_and_shows_a_new_secret(wired: ManualClock) -> None:
    made = created()
    path = f"/v1/keys/{made['key_id']}/rotate"
    rotated = asked(OPERATOR, "POST", path, {"overlap_seconds": 60}).body
    assert rotated["key_id"] == made["key_id"]
    assert rotated["key"] != made["key"]
    assert rotated["version"] == 2
    assert rotated["previous_until"] is not None
    assert admission_of(made["key"])["isAuthorized"]
    assert admission_of(rotated["key"])["isAuthorized"]
    wired.advance_ms(60_000)
    assert not admission_of(made["key"])["isAuthorized"]
    assert asked(OPERATOR, "GET", f"/v1/keys/{made['key_id']}").body["previous_until"] is None
    assert asked(OPERATOR, "POST", path).status == 200, "the body is optional"


def test_a_revoked_key_is_refused_and_can_be_read_but_not_rotated(wired: ManualClock) -> None:
    made = created()
    path = f"/v1/keys/{made['key_id']}"
    revoked = asked(OPERATOR, "DELETE", path).body
    assert (revoked["state"], revoked["revoked_at"] is None) == ("revoked", False)
    assert not admission_of(made["key"])["isAuthorized"]
    wired.advance_ms(1_000)
    assert asked(OPERATOR, "DELETE", path).body == revoked, "a second revocation has no effect"
    assert asked(OPERATOR, "GET", path).body == revoked
    assert problem(asked(OPERATOR, "POST", f"{path}/rotate")) == (409, "api-key-ended")
    assert not admission_of(made["key"])["isAuthorized"]
    wired.advance_ms(KEPT_DAYS * DAY_MS)
    assert problem(asked(OPERATOR, "GET", path)) == (404, "unknown-api-key")
    assert asked(OPERATOR, "GET", "/v1/keys").body["keys"] == []


def test_an_ended_key_has_a_time_to_live(wired: ManualClock) -> None:
    made = created()
    asked(OPERATOR, "DELETE", f"/v1/keys/{made['key_id']}")
    table = process.settings().registry_table
    items = boto3.client("dynamodb").scan(TableName=table)["Items"]
    (record,) = [item for item in items if item["kind"]["S"] == "api-key"]
    assert int(record["expires_at"]["N"]) * 1000 >= wired.now_ms() + KEPT_DAYS * DAY_MS


def test_the_number_of_keys_is_bounded(wired: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duewheel.workflows.access.api_keys.KEYS_MAX", 2)
    created(), created()
    new = {"name": "a", "grants": ON_ORDERS}
    answer = asked(ADMIN_OF_ORDERS, "POST", "/v1/keys", new)
    assert problem(answer) == (409, "too-many-api-keys")
    assert asked(OPERATOR, "POST", "/v1/keys", new).status == 201, (
        "an admin of all businesses has no bound"
    )


def test_keys_are_counted_over_all_pages_of_the_query(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query page ends after a megabyte of items."""
    for _ in range(3):
        created()
    store, answers = key_wiring.api_keys(), []

    class OneAtATime:
        def query(self, **asked: Any) -> Any:
            answers.append(store.client.query(**{**asked, "Limit": 1}))
            return answers[-1]

    counting = ApiKeyStore(OneAtATime(), store.table)  # type: ignore[arg-type]
    assert counting.is_full(3)
    assert not counting.is_full(4)


def test_the_secret_before_a_rotation_cannot_make_keys(in_keys_mode: ManualClock) -> None:
    """Without overlap the old secret has ended, though API Gateway accepts it for another
    minute."""
    issued = wiring.issue_keys().create(FIRST_ADMIN, ANYTHING.access)
    path, leaked = f"/v1/keys/{issued.key.key_id}", admission_of(issued.text)
    rotated = wiring.issue_keys().rotate(issued.key.key_id, 0, ANYTHING.access)
    before = all_that_is_stored()
    for method, at in (("POST", "/v1/keys"), ("POST", f"{path}/rotate"), ("DELETE", path)):
        assert by_key(leaked, method, at) == 403
    assert all_that_is_stored() == before
    assert by_key(admission_of(rotated.text), "POST", "/v1/keys") == 201


def test_a_revoked_key_cannot_make_keys_while_its_admission_is_cached(
    in_keys_mode: ManualClock,
) -> None:
    """API Gateway caches the authorizer's answer for a minute, but calls on keys check the caller's
    key again."""
    issued = wiring.issue_keys().create(FIRST_ADMIN, ANYTHING.access)
    key_id, admission = issued.key.key_id, admission_of(issued.text)
    assert by_key(admission, "GET", "/v1/wheel") == 200
    assert by_key(admission, "POST", "/v1/keys") == 201
    assert by_key(admission, "POST", f"/v1/keys/{key_id}/rotate") == 200
    wiring.issue_keys().revoke(key_id, ANYTHING.access)
    before = all_that_is_stored()
    assert by_key(admission, "GET", "/v1/wheel") == 200, "until the authorizer is called again"
    for method, path in (
        ("POST", "/v1/keys"),
        ("POST", f"/v1/keys/{key_id}/rotate"),
        ("DELETE", f"/v1/keys/{key_id}"),
    ):
        assert by_key(admission, method, path) == 403
    assert all_that_is_stored() == before


def test_a_key_that_expires_while_its_admission_is_cached_is_refused(
    in_keys_mode: ManualClock,
) -> None:
    admission = {"context": {"key_id": "a", "grants": "admin:*", "expires_ms": "", "version": "1"}}
    now_ms = in_keys_mode.now_ms()
    admission["context"]["expires_ms"] = str(now_ms + 1_000)
    assert by_key(admission, "GET", "/v1/wheel") == 200
    in_keys_mode.advance_ms(1_000)
    assert by_key(admission, "GET", "/v1/wheel") == 403


def test_a_retried_change_accepts_the_write_of_its_first_try(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the first try was carried out, the SDK's retry fails the condition."""
    real = change_records.transact

    def twice(client: Any, actions: list[Any]) -> bool:
        real(client, actions)
        assert not real(client, actions)
        return False

    monkeypatch.setattr(change_records, "transact", twice)
    made = created()
    path = f"/v1/keys/{made['key_id']}"
    rotated = asked(OPERATOR, "POST", f"{path}/rotate").body
    assert rotated["version"] == 2
    assert asked(OPERATOR, "DELETE", path).body["version"] == 3
    assert [one["did"] for one in changes(made)] == ["revoked", "rotated", "created"]


def test_concurrent_changes_are_both_kept(
    wired: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = created()
    path, real = f"/v1/keys/{made['key_id']}", ApiKeyChanges.change
    others = [lambda: asked(OPERATOR, "POST", f"{path}/rotate")]

    def overtaken(store: ApiKeyChanges, *change: Any) -> bool:
        if others:
            others.pop()()
        return real(store, *change)

    monkeypatch.setattr(ApiKeyChanges, "change", overtaken)
    assert asked(OPERATOR, "DELETE", path).body["state"] == "revoked"
    assert asked(OPERATOR, "GET", path).body["version"] == 3
    assert [one["version"] for one in changes(made)] == [3, 2, 1]


def changes(made: Any) -> Any:
    return asked(OPERATOR, "GET", f"/v1/keys/{made['key_id']}/changes").body["changes"]


def test_changes_of_a_key_are_recorded_without_its_secrets(wired: ManualClock) -> None:
    made = created()
    path = f"/v1/keys/{made['key_id']}"
    rotated = asked(OPERATOR, "POST", f"{path}/rotate").body
    kept = asked(OPERATOR, "GET", f"{path}/changes")
    for text in (made["key"], rotated["key"]):
        assert text.split("_")[2] not in kept.text
    who = f"arn:aws:sts::123456789012:assumed-role/{OPERATOR}"
    recorded = [(one["did"], one["by"]) for one in changes(made)]
    assert recorded == [("rotated", who), ("created", who)]
    assert changes(made)[1]["fields"] == [
        {"field": "name", "from": None, "to": "a"},
        {"field": "grants", "from": None, "to": "write:orders"},
    ]
