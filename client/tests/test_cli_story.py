"""The command line on the local stack: sequences of its main commands."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.cli_support import called, done, value, values
from tests.support import advance, received


@pytest.fixture(autouse=True)
def _on_the_stack(stack_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUEWHEEL_URL", stack_url)


def test_commands_for_the_life_of_a_task(stack_url: str, biz_type: str) -> None:
    inbox = f"{stack_url}/_local/inbox/{biz_type}"
    named = f"{biz_type}/order-17:close"
    arguments = ["--callback", inbox, "--payload", '{"order": 17}']
    made = value("task", "create", named, "--due", "in 2 days", *arguments)
    assert value("task", "create", named, "--due", "in 2 days", *arguments) == made
    assert called("task", "create", named, "--due", "in 3 days", *arguments).exit_code == 1
    moved = value("task", "create", named, "--due", "in 3 days", "--replace", *arguments)
    assert moved["task_id"] == made["task_id"]
    assert moved["due_at"] > made["due_at"]

    assert values("task", "list", biz_type) == values("task", "list", f"{biz_type}/order-")
    assert made["task_id"] in done("task", "list", biz_type, "--to", "in 9999 days")
    done("task", "reschedule", named, "--due", "in 2 days")
    done("task", "run", named)
    advance(stack_url, timedelta(seconds=5))

    watched = called("task", "watch", made["task_id"])
    assert (watched.exit_code, "delivered" in watched.stdout) == (0, True)
    assert "delivered" in done("task", "get", made["task_id"])
    assert [json.loads(call["body"]) for call in received(stack_url, biz_type)] == [{"order": 17}]
    too_late = called("task", "cancel", made["task_id"])
    assert (too_late.exit_code, too_late.stdout) == (1, "")


def test_commands_for_the_life_of_a_business(stack_url: str, biz_type: str, tmp_path: Path) -> None:
    (tmp_path / "retry.json").write_text('{"attempts": 1}')
    settings = ["callback=http://127.0.0.1:1/", f"retry@{tmp_path}/retry.json", "retention_days=7"]
    assert value("business", "set", biz_type, *settings)["version"] == 1
    stale = called("business", "set", biz_type, "priority=low", "--if-version", "7")
    assert (stale.exit_code, stale.stdout) == (1, "")
    changed = value(
        "business", "set", biz_type, "priority=low", "retention_days=", "--if-version", "1"
    )
    assert (changed["priority"], changed["retry"]["attempts"]) == ("low", 1)
    assert "retention_days" not in changed["own"]
    assert biz_type in done("business", "list")
    assert "127.0.0.1" in done("business", "get", biz_type)

    assert value("business", "pause", biz_type)["paused"]
    assert not value("business", "resume", biz_type)["paused"]
    made = value("task", "create", biz_type, "--due", "now")
    advance(stack_url, timedelta(seconds=10))
    assert [task["task_id"] for task in values("business", "dead", biz_type)] == [made["task_id"]]
    assert made["task_id"] in done("business", "dead", biz_type, "--since", "1d ago")
    assert done("task", "redrive", made["task_id"])
    advance(stack_url, timedelta(seconds=10))
    which = ("--status", "dead", "--reason", "attempts exhausted")
    assert value("operation", "start", "redrive", biz_type, *which, "--yes")["changed"] == 1
    assert value("business", "stats", biz_type)["total"]["created"] >= 0
    assert "created" in done("business", "stats", biz_type)

    did = [change["did"] for change in values("business", "changes", biz_type)]
    assert did[-1] == "created"
    assert "retention_days" in done("business", "changes", biz_type)
    asked = called("business", "delete", biz_type, stdin="n\n")
    assert asked.exit_code == 1
    assert value("business", "delete", biz_type, "--cancel-pending", "--yes")["too_late"] == []
    assert value("business", "get", biz_type)["version"] == 0


def test_the_overview_shows_what_is_wrong_and_the_last_deaths(
    stack_url: str, biz_type: str, tmp_path: Path
) -> None:
    (tmp_path / "retry.json").write_text('{"attempts": 1}')
    done(
        "business", "set", biz_type, "callback=http://127.0.0.1:1/", f"retry@{tmp_path}/retry.json"
    )
    value("task", "create", biz_type, "--due", "now")
    advance(stack_url, timedelta(minutes=5))
    assert value("business", "pause", biz_type)["paused"]
    pages = values("overview")
    businesses = [one for page in pages for one in page["businesses"]]
    (shown,) = (one for one in businesses if one["biz_type"] == biz_type)
    assert (shown["paused"], shown["hour"]["dead"]) == (True, 1)
    groups = [group for page in pages for group in page["deaths"]["groups"]]
    (of_mine,) = [one for one in groups if biz_type in {of["biz_type"] for of in one["businesses"]}]
    text = done("overview")
    assert "businesses looked at" in text
    # The latest of its group, which other businesses may be in.
    assert of_mine["last_task_id"] in text


def test_commands_show_and_audit_the_wheel(biz_type: str) -> None:
    assert "time pointer" in done("wheel")
    assert value("wheel")["open_places"]["count"] == 0
    assert values("audit", "--from", "1m ago", "--to", "now") == []


def test_the_doctor_makes_all_checks(biz_type: str) -> None:
    checks = {check["check"]: check for check in values("doctor", "--business", biz_type)}
    assert checks["rights"]["said"] == f"read, write, admin on {biz_type}"
    for name in ("service", "reachable", "version", "access", "time pointer", "sweep pointer"):
        assert checks[name]["result"] == "ok", checks[name]
    assert "concurrency" not in checks
    assert called("business", "get", biz_type).exit_code == 1  # the checks have not created it


def test_commands_for_the_life_of_a_timer(stack_url: str, biz_type: str) -> None:
    inbox = f"{stack_url}/_local/inbox/{biz_type}"
    fields = ["cron=0 3 * * *", "timezone=Asia/Shanghai", f"callback={inbox}", "payload=[1.5]"]
    timer = value("timer", "create", biz_type, "nightly close", *fields, "enabled=false")[
        "timer_id"
    ]
    assert "nightly close" in done("timer", "list", biz_type, "--state", "disabled")
    changed = value("timer", "change", timer, "cron=", "every_seconds=3600", "--if-version", "1")
    assert (changed["cron"], changed["every_seconds"], changed["payload"]) == (None, 3600, [1.5])
    assert "is enabled, next 20" in done("timer", "enable", timer)
    assert len(done("timer", "upcoming", timer, "--count", "3").splitlines()) == 3
    ran = value("timer", "run", timer)["task_id"]
    advance(stack_url, timedelta(seconds=10))
    assert [json.loads(call["body"]) for call in received(stack_url, biz_type)] == [[1.5]]
    assert done("task", "watch", ran)
    assert values("timer", "runs", timer, "--status", "dead") == []
    assert "is disabled" in done("timer", "disable", timer)
    assert "3,600" in done("timer", "get", timer)
    assert value("timer", "change", timer, "cron=@daily", "every_seconds=")["cron"] == "@daily"
    did = {change["did"] for change in values("timer", "changes", timer)}
    assert {"created", "changed", "enabled", "disabled"} <= did
    done("timer", "delete", timer, "--yes")
    assert called("timer", "get", timer).exit_code == 1


def test_commands_for_the_life_of_an_api_key() -> None:
    arguments = ["--grant", "write:orders-*", "--grant", "read:*", "--expires", "in 90d"]
    made = called("key", "create", "orders service", *arguments)
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("dw_")
    assert made.stdout.strip() not in made.stderr
    key = made.stdout.split("_")[1]
    assert key in made.stderr
    assert "orders-*" in done("key", "list")
    assert value("key", "get", key)["key"] is None
    assert value("key", "rotate", key, "--overlap", "1h")["key"].startswith(f"dw_{key}_")
    assert done("key", "revoke", key, "--yes")
    assert next(change["did"] for change in values("key", "changes", key)) == "revoked"
    assert called("key", "rotate", key).exit_code == 1
