"""The changes of a definition: one record for each call, with caller, instant and fields, without
secrets."""

import json
from typing import Any

import boto3
import pytest

from duewheel.rules.history.changes import DELETED_KEPT_SECONDS
from duewheel.wiring import process
from functions.api import app as api
from tests.functions.conftest import Context, http_event
from tests.support.clock import ManualClock

ORDERS = "/v1/businesses/orders"
OWNER = "arn:aws:iam::123456789012:user/owner"
OTHER = "arn:aws:iam::123456789012:user/other"
HOOK = {"url": "https://receiver.example/hook"}
TIMER = {"biz_type": "orders", "name": "close orders", "every_seconds": 60, "callback": HOOK}

CANARY = "canary"
SECRET_HOOK = {
    "url": f"https://receiver.example/{CANARY}?token={CANARY}",
    "headers": {"authorization": f"Bearer {CANARY}", f"x-{CANARY}": "1"},
}
SIGNED_BY = "whsec_" + "Y2FuYXJ5" * 4  # "canary", in base64


def asked(method: str, path: str, body: Any = None, by: str = OWNER, **headers: str) -> Any:
    event = http_event(method, path, body, **headers)
    event["requestContext"]["authorizer"]["iam"]["userArn"] = by
    answer = api.handler(event, Context())
    return answer["statusCode"], json.loads(answer["body"])


def done(method: str, path: str, body: Any = None, by: str = OWNER) -> Any:
    status, answer = asked(method, path, body, by)
    assert status < 300, answer
    return answer


def changes(path: str) -> Any:
    return done("GET", f"{path}/changes")["changes"]


def words(path: str) -> list[tuple[int, str, str]]:
    return [(one["version"], one["did"], one["by"]) for one in reversed(changes(path))]


def made(**members: Any) -> str:
    return f"/v1/timers/{done('POST', '/v1/timers', {**TIMER, **members})['timer_id']}"


def test_each_call_on_a_business_leaves_one_record(wired: ManualClock) -> None:
    done("PUT", ORDERS, {"retention_days": 3})
    done("POST", f"{ORDERS}/pause", by=OTHER)
    done("POST", f"{ORDERS}/resume")
    done("PUT", ORDERS, {"signing_secrets": [SIGNED_BY]}, by=OTHER)
    done("DELETE", ORDERS)
    assert words(ORDERS) == [
        (1, "created", OWNER),
        (2, "paused", OTHER),
        (3, "resumed", OWNER),
        (4, "configured", OTHER),
        (5, "deleted", OWNER),
    ]


def test_each_call_on_a_timer_leaves_one_record(wired: ManualClock) -> None:
    path = made()
    done("POST", f"{path}/disable", by=OTHER)
    done("POST", f"{path}/enable")
    done("PATCH", path, {"every_seconds": 90}, by=OTHER)
    done("POST", f"{path}/run")
    done("DELETE", path)
    assert words(path) == [
        (1, "created", OWNER),
        (2, "disabled", OTHER),
        (3, "enabled", OWNER),
        (4, "changed", OTHER),
        (5, "deleted", OWNER),
    ]


def test_a_record_has_old_and_new_values(wired: ManualClock) -> None:
    done("PUT", ORDERS, {"retention_days": 3, "allowed_hosts": ["*.example"], "callback": HOOK})
    wired.advance_ms(1_500)
    done("PUT", ORDERS, {"retention_days": None, "timeout_seconds": 2.5, "retry": {"attempts": 1}})
    retry = {"attempts": 1, "first_delay_seconds": 3, "factor": 2, "max_delay_seconds": 21_600}
    assert changes(ORDERS) == [
        {
            "version": 2,
            "at": "2027-01-15T08:00:01.500Z",
            "by": OWNER,
            "did": "configured",
            "fields": [
                {"field": "retry", "from": None, "to": retry},
                {"field": "retention_days", "from": 3, "to": None},
                {"field": "timeout_seconds", "from": None, "to": 2.5},
            ],
        },
        {
            "version": 1,
            "at": "2027-01-15T08:00:00.000Z",
            "by": OWNER,
            "did": "created",
            "fields": [
                {"field": "callback"},
                {"field": "retention_days", "from": None, "to": 3},
                {"field": "allowed_hosts", "from": None, "to": ["*.example"]},
            ],
        },
    ]


def test_all_sessions_of_a_role_are_one_caller(wired: ManualClock) -> None:
    role = "arn:aws:sts::123456789012:assumed-role/deploys"
    for session in ("one", "two"):
        done("PUT", ORDERS, {}, by=f"{role}/{session}")
    assert [one["by"] for one in changes(ORDERS)] == [role, role]


def test_records_contain_no_secrets(wired: ManualClock) -> None:
    told = {"outcomes": ["dead"], "callback": SECRET_HOOK}
    secret = {"callback": SECRET_HOOK, "on_outcome": told, "signing_secrets": [SIGNED_BY]}
    done("PUT", ORDERS, secret)
    done("PUT", ORDERS, dict.fromkeys(secret))
    path = made(callback=SECRET_HOOK, payload={"card": CANARY})
    done("PATCH", path, {"callback": HOOK, "payload": None})
    done("DELETE", path)
    assert [one["field"] for one in changes(ORDERS)[0]["fields"]] == [
        "callback",
        "signing_secrets",
        "on_outcome",
    ]
    shown = json.dumps([changes(ORDERS), changes(path)])
    items = boto3.client("dynamodb").scan(TableName=process.settings().registry_table)["Items"]
    kept = str([item for item in items if item["kind"]["S"].startswith("changes#")])
    for text in (shown, kept):
        assert "signing_secrets" in text
        assert CANARY not in text
        assert SIGNED_BY[-8:] not in text


def test_a_refused_call_leaves_no_record(wired: ManualClock) -> None:
    done("PUT", ORDERS, {})
    path = made()
    assert asked("PUT", ORDERS, {"retention_days": 0})[0] == 422
    assert asked("PUT", ORDERS, {}, if_match='"7"')[0] == 412
    assert asked("DELETE", ORDERS)[0] == 409
    assert asked("PATCH", path, {"every_seconds": 0})[0] == 422
    assert asked("POST", f"{path}/disable", if_match='"7"')[0] == 412
    assert (len(changes(ORDERS)), len(changes(path))) == (1, 1)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/v1/businesses/nobody", (404, "unknown-business")),
        ("/v1/businesses/No body", (422, "invalid-field")),
        ("/v1/timers/4503599627370496", (404, "unknown-timer")),
        ("/v1/timers/17", (404, "unknown-timer")),
    ],
)
def test_changes_of_an_unknown_definition_are_refused(
    wired: ManualClock, path: str, problem: tuple[int, str]
) -> None:
    status, answer = asked("GET", f"{path}/changes")
    assert (status, answer["type"].rpartition(":")[2]) == problem


def test_a_business_created_again_shows_its_earlier_changes(wired: ManualClock) -> None:
    done("PUT", ORDERS, {})
    done("POST", f"{ORDERS}/pause")
    done("DELETE", ORDERS)
    wired.advance_ms(60_000)
    done("PUT", ORDERS, {"retention_days": 3}, by=OTHER)
    wired.advance_ms(DELETED_KEPT_SECONDS * 2_000)
    assert words(ORDERS) == [(2, "paused", OWNER), (3, "deleted", OWNER), (1, "created", OTHER)]
