"""A local stack with API keys, from its first admin key to a revoked one."""

from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from duewheel.rules.instants import rfc3339
from infra.operate import audit
from local.stack import LocalStack
from tests.support.service import Service

FORBIDDEN, UNAUTHORIZED = (403, {"message": "Forbidden"}), (401, {"message": "Unauthorized"})


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(frozen=True, asks_for_keys=True) as running:
        yield running


@pytest.fixture
def admin(stack: LocalStack) -> Service:
    assert stack.admin_key is not None
    return Service(stack.url, stack.admin_key)


def granted(admin: Service, right: str, businesses: str) -> tuple[str, Service]:
    body = {"name": "a", "grants": [{"right": right, "businesses": businesses}]}
    status, key = admin.call("POST", "/v1/keys", body)
    assert status == 201, key
    return key["key_id"], Service(admin.url, key["key"])


def test_calls_without_a_key_are_refused(admin: Service) -> None:
    for path in ("/v1/health", "/v1/tasks?biz_type=orders", "/api/timer/v1/defs?app=orders"):
        assert Service(admin.url).call("GET", path) == UNAUTHORIZED
        assert Service(admin.url, "nonsense").call("GET", path) == FORBIDDEN
        assert Service(admin.url, f"{admin.key}x").call("GET", path) == FORBIDDEN


def test_without_a_key_only_the_console_is_served(admin: Service) -> None:
    for file in ("", "/main.js"):
        with urlopen(f"{admin.url}/console{file}") as reply:
            assert reply.status == 200
            assert "script-src 'self'" in reply.headers["content-security-policy"]
    assert Service(admin.url).call("POST", "/console")[0] == 404
    assert Service(admin.url).call("GET", "/v1/wheel") == UNAUTHORIZED


def test_a_stack_without_authentication_has_no_admin_key() -> None:
    assert LocalStack().admin_key is None


def test_a_key_has_its_granted_rights_and_its_tasks_are_called(admin: Service) -> None:
    _, orders = granted(admin, "write", "orders")
    _, mail = granted(admin, "admin", "mail")
    task = orders.create("orders", delay_seconds=5)
    assert mail.call("GET", f"/v1/tasks/{task['task_id']}")[0] == 404
    assert mail.call("POST", "/v1/tasks", mail.new_task("orders", delay_seconds=5))[0] == 403
    assert admin.advance(10) == 1
    assert len(admin.received("orders")) == 1
    assert orders.task(task)["status"] == "delivered"


def test_a_revoked_key_is_refused_after_a_minute(admin: Service) -> None:
    key_id, orders = granted(admin, "read", "orders")
    assert orders.call("GET", "/v1/health")[0] == 200
    assert admin.call("DELETE", f"/v1/keys/{key_id}")[0] == 200
    assert orders.call("GET", "/v1/health")[0] == 200, (
        "API Gateway has cached the authorizer's answer"
    )
    admin.advance(60)
    assert orders.call("GET", "/v1/health") == FORBIDDEN


@pytest.mark.stack
def test_the_audit_uses_the_key_of_the_environment(
    admin: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([admin.url]) == 2
    monkeypatch.setenv("DUEWHEEL_KEY", str(admin.key))
    assert audit.main([admin.url]) == 0
    assert str(admin.key) not in "".join(capsys.readouterr())


def test_an_expired_key_is_refused_at_once(admin: Service) -> None:
    expires: Any = {"name": "a", "grants": [{"right": "read", "businesses": "*"}]}
    now_ms = admin.now_ms()
    expires["expires_at"] = rfc3339(now_ms + 5_000)
    short = Service(admin.url, admin.call("POST", "/v1/keys", expires)[1]["key"])
    assert short.call("GET", "/v1/wheel")[0] == 200
    admin.advance(5)
    status, problem = short.call("GET", "/v1/wheel")
    assert (status, problem["type"]) == (403, "urn:duewheel:problem:not-permitted")
