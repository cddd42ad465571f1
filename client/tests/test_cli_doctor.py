"""The findings of `duewheel doctor`, on scripted answers."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from duewheel.cli.doctor import clock_check
from duewheel.version import __version__
from tests.cli_support import called
from tests.support import Script, gateway, problem

NOW = datetime(2030, 1, 31, 8, 0, tzinfo=UTC)
OLD = "2030-01-31T07:00:00.000Z"
OPEN = {"at": OLD, "second": 1896073200, "shard": 0, "page": "0", "since": OLD, "why": "held"}
POINTER = {"at": "2030-01-31T08:00:00.000Z", "second": 1896076800, "lag_seconds": 0}


def health(**headers: str) -> httpx.Response:
    return httpx.Response(200, json={"status": "ok", "version": __version__}, headers=headers)


def wheel(**members: Any) -> httpx.Response:
    found = {
        "now": "2030-01-31T08:00:00.000Z",
        "buckets": 1,
        "origin": "2030-01-31T08:00:00.000Z",
        "time_pointer": POINTER,
        "sweep_pointer": POINTER,
        **members,
    }
    return httpx.Response(200, json=found)


def open_since(seconds: float) -> dict[str, Any]:
    return {"count": 1, "oldest_age_seconds": seconds, "places": [OPEN]}


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        ([health(), wheel()], 0, "answers in"),
        ([httpx.ConnectError("refused")], 3, "refused"),
        ([gateway(401)], 4, "carries no key or signature"),
        ([health(), problem("not-permitted", 403)], 0, "not to all businesses"),
        ([health(), problem("unavailable", 503)], 1, "unavailable"),
        ([health(), wheel(time_pointer={**POINTER, "lag_seconds": 60})], 1, "60 s behind"),
        ([health(), wheel()], 0, "open places    ok      none"),
        ([health(), wheel(open_places=open_since(60))], 0, "1, the oldest for 60 s"),
        ([health(), wheel(open_places=open_since(3600))], 1, "1, the oldest for 3600 s"),
        ([health(date="Thu, 31 Jan 2019 08:00:00 GMT"), wheel()], 1, "this machine is"),
    ],
)
def test_the_exit_code_is_that_of_the_worst_finding(
    answers: list[httpx.Response | Exception], code: int, said: str
) -> None:
    result = called("doctor", "--url", "https://timers.example.com", script=Script(*answers))
    assert (result.exit_code, said in result.stdout) == (code, True), result.output


@pytest.mark.parametrize(
    ("ahead", "result", "said"),
    [
        (0, "ok", "agrees to the second"),
        (0.9, "ok", "agrees to the second"),
        (3.5, "ok", "this machine is 3 s ahead"),
        (60.5, "wrong", "this machine is 60 s ahead"),
        (-59.5, "wrong", "this machine is 60 s behind"),
    ],
)
def test_the_clocks_are_compared(ahead: float, result: str, said: str) -> None:
    now, date = NOW + timedelta(seconds=ahead), format_datetime(NOW, usegmt=True)
    found = clock_check(now, date, "timers.example.com")
    assert (found.result, found.said) == (result, said)


def test_a_moved_clock_of_a_local_stack_is_no_error() -> None:
    date = format_datetime(NOW, usegmt=True)
    found = clock_check(NOW - timedelta(days=30), date, "127.0.0.1")
    assert (found.result, found.exit_code) == ("attention", 0)
    assert found.said.endswith("the clock of this local stack was moved")
    assert clock_check(NOW, date, "127.0.0.1").result == "ok"


def test_rights_are_checked_without_a_change() -> None:
    refusal, malformed = problem("not-permitted", 403), problem("malformed-body", 400)
    unknown = problem("unknown-business", 404)
    script = Script(health(), unknown, malformed, refusal, wheel())
    result = called("doctor", "--business", "orders", script=script)
    assert "read, write on orders" in result.stdout
    asked = [(request.method, request.url.path, request.content) for request in script.requests]
    assert asked[1:4] == [
        ("GET", "/v1/businesses/orders", b""),
        ("PUT", "/v1/businesses/orders/tasks/doctor", b"?"),
        ("PUT", "/v1/businesses/orders", b"?"),
    ]
    none = called("doctor", "--business", "orders", script=Script(health(), refusal))
    assert (none.exit_code, "none on orders" in none.stdout) == (4, True)


def test_concurrency_is_checked_only_with_aws_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lambda:
        def get_account_settings(self) -> object:
            limits = {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 8}
            return {"AccountLimit": limits}

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-real-secret")
    monkeypatch.setattr("duewheel.cli.connection.aws_client", lambda *_: Lambda())
    url = "https://abc123.execute-api.eu-central-1.amazonaws.com"
    signed = called("doctor", "--url", url, script=Script(health(), wheel()))
    assert "10 in the account, 8 of them unreserved" in signed.stdout
    by_key = called("doctor", "--url", url, "--key", "dw_a", script=Script(health(), wheel()))
    assert "concurrency" not in by_key.stdout
