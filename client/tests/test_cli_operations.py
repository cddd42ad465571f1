"""`duewheel operation` on scripted answers: what it sends, asks and prints."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from duewheel._sync.transport import Transport
from tests.cli_support import called, done, value, values
from tests.support import TASK, Script, operation, problem

START = ("operation", "start")
ID = TASK["task_id"]


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transport, "pause", lambda *_: None)


def calls(script: Script) -> list[tuple[str, Any]]:
    return [
        (f"{one.method} {one.url.path}", json.loads(one.content or b"null"))
        for one in script.requests
    ]


def body(**members: Any) -> tuple[str, dict[str, Any]]:
    return "POST /v1/operations", {"biz_type": "orders", **members}


def counted(count: int) -> Iterator[httpx.Response]:
    yield operation(201, operation_id="DRY", state="running", dry_run=True)
    yield operation(operation_id="DRY", dry_run=True, changed=count)


def test_a_filter_is_counted_first_and_the_number_is_in_the_question() -> None:
    script = Script(*counted(1234), operation(201, state="running"), operation(changed=1234))
    arguments = ("cancel", "orders", "--status", "pending", "--key-prefix", "order-")
    result = called(*START, *arguments, script=script, stdin="y\n")
    assert result.exit_code == 0, result.output
    assert "Cancel 1,234 tasks of orders?" in result.stderr
    assert result.stdout == "1,234 tasks cancelled\n"
    selection = {"action": "cancel", "filter": {"status": "pending", "key_prefix": "order-"}}
    assert calls(script) == [
        body(**selection, dry_run=True),
        ("GET /v1/operations/DRY", None),
        body(**selection),
        ("GET /v1/operations/OP1", None),
    ]
    keys = script.headers("idempotency-key")
    assert keys[0] not in (None, keys[2])
    assert keys[2] is not None


def test_a_declined_question_starts_nothing() -> None:
    script = Script(*counted(2))
    result = called(*START, "cancel", "orders", "--all", script=script, stdin="n\n")
    assert result.exit_code == 1
    assert len(script.requests) == 2


def test_where_no_task_matches_nothing_is_asked_and_started() -> None:
    script = Script(*counted(0))
    result = called(*START, "run", "orders", "--flow-key", "customer-7", script=script)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "There is no task of orders to run." in result.stderr
    assert len(script.requests) == 2


def test_a_count_that_fails_starts_nothing() -> None:
    failed = operation(operation_id="DRY", dry_run=True, state="failed", last_problem="Throttled.")
    script = Script(next(counted(0)), failed)
    result = called(*START, "run", "orders", "--all", script=script)
    assert result.exit_code == 1
    assert result.stdout == "Failed: 0 tasks would be cancelled. Throttled.\n"
    assert len(script.requests) == 2


def test_ids_are_counted_without_a_request() -> None:
    script = Script(operation(201, state="running"), operation(changed=2))
    result = called(*START, "cancel", "orders", ID, "AQ2", script=script, stdin="y\n")
    assert result.exit_code == 0, result.output
    assert "Cancel 2 tasks of orders?" in result.stderr
    assert calls(script)[0] == body(action="cancel", ids=[ID, "AQ2"])


def test_ids_are_read_from_stdin_as_words_or_as_lines_of_a_list() -> None:
    script = Script(operation(201, state="running"), operation(changed=3))
    lines = f"A1 A2\n\n{json.dumps(TASK)}\n"
    done(*START, "redrive", "orders", "-", "--yes", script=script, stdin=lines)
    assert calls(script)[0] == body(action="redrive", ids=["A1", "A2", ID])


@pytest.mark.parametrize(
    ("option", "members"),
    [
        (("--later", "1h30m"), {"shift_seconds": 5400}),
        (("--earlier", "90s"), {"shift_seconds": -90}),
        (("--due", "2030-01-31T08:30Z"), {"due_at": "2030-01-31T08:30:00+00:00"}),
    ],
)
def test_a_reschedule_is_to_an_instant_or_by_a_span(
    option: tuple[str, ...], members: dict[str, object]
) -> None:
    script = Script(operation(201, state="running"), operation())
    more = ("--per-second", "50", "--timer", "17", "--label", "team=billing", "--yes")
    done(*START, "reschedule", "orders", *option, *more, script=script)
    selection = {"timer_id": "17", "labels": {"team": "billing"}}
    assert calls(script)[0] == body(action="reschedule", filter=selection, per_second=50, **members)


def test_a_dry_run_says_the_number_and_starts_nothing() -> None:
    script = Script(*counted(12))
    text = done(
        *START, "cancel", "orders", "--all", "--per-second", "1", "--dry-run", script=script
    )
    assert text == "12 tasks would be cancelled\n"
    assert calls(script)[0] == body(action="cancel", filter={}, dry_run=True)
    assert len(script.requests) == 2


def test_its_progress_is_on_stderr_a_line_for_each_change() -> None:
    running = [operation(state="running", changed=count) for count in (0, 0, 500, 500, 900)]
    ended = operation(changed=990, unchanged=8, refused=2)
    script = Script(operation(201, state="running"), *running, ended)
    result = called(*START, "cancel", "orders", "--all", "--yes", script=script)
    assert result.exit_code == 1
    assert result.stdout == "990 tasks cancelled, 8 were so already, 2 refused\n"
    assert result.stderr.splitlines() == [
        "0 tasks cancelled",
        "500 tasks cancelled",
        "900 tasks cancelled",
        "duewheel operation refused OP1 shows why",
    ]


def test_for_programs_only_the_ended_operation_is_printed() -> None:
    script = Script(operation(201, state="running"), operation(state="running"), operation())
    result = called(*START, "cancel", "orders", "--all", "--yes", "--json", script=script)
    assert (json.loads(result.stdout)["state"], result.stderr) == ("done", "")


def test_without_waiting_its_id_is_printed() -> None:
    script = Script(operation(201, state="running"))
    text = done(*START, "cancel", "orders", "--all", "--yes", "--no-wait", script=script)
    assert text == "OP1 is running\n"
    assert len(script.requests) == 1


def test_ctrl_c_leaves_it_running_and_says_how_to_follow_and_stop_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Transport, "pause", interrupt)
    script = Script(operation(201, state="running"), operation(state="running", changed=1))
    result = called(*START, "cancel", "orders", "--all", "--yes", script=script)
    assert result.exit_code == 130
    assert "duewheel operation follow OP1" in result.stderr
    assert "duewheel operation stop OP1" in result.stderr
    assert [call for call, _ in calls(script)] == ["POST /v1/operations", "GET /v1/operations/OP1"]


@pytest.mark.parametrize("stop", [operation(state="stopping"), problem("operation-ended", 409)])
def test_ctrl_c_while_it_counts_ends_the_count(
    stop: httpx.Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Transport, "pause", interrupt)
    script = Script(next(counted(0)), operation(state="running"), stop)
    result = called(*START, "cancel", "orders", "--all", script=script)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, "Aborted!")
    assert calls(script)[-1] == ("POST /v1/operations/DRY/stop", None)
    assert len(script.requests) == 3


def test_follow_ends_with_what_an_operation_came_to() -> None:
    stopped = operation(state="stopped", action="run", changed=1)
    result = called("operation", "follow", "OP1", script=Script(stopped))
    assert (result.exit_code, result.stdout) == (1, "Stopped: 1 task called now\n")


def test_stop_says_how_far_it_has_come() -> None:
    script = Script(operation(state="stopping", changed=1234))
    text = done("operation", "stop", "OP1", script=script)
    assert text == "OP1 is stopping: 1,234 tasks cancelled\n"


def test_an_operation_is_shown_without_what_it_does_not_have() -> None:
    text = done("operation", "get", "OP1", script=Script(operation(filter={"status": "pending"})))
    assert "last_problem" not in text
    assert '{"status": "pending"}' in text
    assert value("operation", "get", "OP1", script=Script(operation()))["operation_id"] == "OP1"


def test_operations_are_listed_of_a_business_or_of_all() -> None:
    found = {"operations": [operation().json()], "cursor": None}
    script = Script(httpx.Response(200, json=found))
    assert "biz type" in done("operation", "list", script=script)
    text = done("operation", "list", "orders", "--state", "running", script=script)
    assert "biz type" not in text
    assert "OP1" in text
    everywhere, running = (request.url.params for request in script.requests)
    assert "biz_type" not in everywhere
    assert (running["biz_type"], running["state"]) == ("orders", "running")


def test_refused_tasks_are_listed_with_the_reason() -> None:
    problem = {"type": "urn:duewheel:problem:too-late", "title": "Too late", "detail": "Going."}
    page = {"refused": [{"task_id": ID, "problem": problem}], "cursor": None}
    script = Script(httpx.Response(200, json=page))
    assert "Too late: Going." in done("operation", "refused", "OP1", script=script)
    assert values("operation", "refused", "OP1", script=script) == page["refused"]


def test_tasks_are_listed_by_the_filters_of_operations() -> None:
    script = Script(httpx.Response(200, json={"tasks": [], "cursor": None}))
    filters = ("--key-prefix", "order-", "--flow-key", "c 7", "--timer", "17", "--status", "dead")
    done("task", "list", "orders", *filters, script=script)
    (request,) = script.requests
    assert dict(request.url.params) == {
        "biz_type": "orders",
        "status": "dead",
        "key_prefix": "order-",
        "flow_key": "c 7",
        "timer_id": "17",
        "order": "asc",
        "limit": "100",
    }
