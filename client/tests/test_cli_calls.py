"""The requests, output and exit codes of the command line, on scripted answers."""

import json

import httpx
import pytest

from tests.cli_support import called, done, value, values
from tests.support import OPERATION, TASK, Script, gateway, made, operation, problem

ID = TASK["task_id"]
TIMER = {"timer_id": "17", "biz_type": "orders", "name": "n", "version": 2, "state": "enabled"}


def bodies(script: Script) -> list[object]:
    return [json.loads(request.content or b"null") for request in script.requests]


def test_create_sends_the_task_and_prints_its_id() -> None:
    script = Script(made())
    arguments = ["--due", "in 2h", "--payload", '{"a": [1.0]}', "--callback", "https://x.example/"]
    arguments += ["--flow-key", "customer-7", "--label", "team=billing", "--label", "at=9=1"]
    text = done("task", "create", "orders/order-17:close", *arguments, script=script)
    assert ID in text
    assert bodies(script) == [
        {
            "biz_type": "orders",
            "key": "order-17:close",
            "delay_seconds": 7200,
            "payload": {"a": [1.0]},
            "callback": {"url": "https://x.example/"},
            "flow_key": "customer-7",
            "labels": {"team": "billing", "at": "9=1"},
        }
    ]


def test_create_without_a_key_sends_an_idempotency_key() -> None:
    script = Script(made())
    done("task", "create", "orders", "--due", "now", script=script)
    assert script.headers("idempotency-key") != [None]
    assert bodies(script) == [{"biz_type": "orders", "delay_seconds": 0}]


def test_a_payload_of_null_differs_from_no_payload() -> None:
    script = Script(made())
    done("task", "create", "orders", "--due", "now", "--payload", "null", script=script)
    done("task", "create", "orders", "--due", "now", "--payload", "-", script=script, stdin="[]")
    assert [body["payload"] for body in bodies(script)] == [None, []]  # type: ignore[index]


WAITING = {
    "reason": "open-breaker",
    "expected_at": "2030-01-31T08:30:00.000Z",
    "host": "down.example",
    "until": "2030-01-31T08:29:00.000Z",
}


def test_lists_are_filtered_by_each_label() -> None:
    for kind in ("task", "timer"):
        script = Script(httpx.Response(200, json={f"{kind}s": [], "cursor": None}))
        done(kind, "list", "orders", "--label", "team=a&b: é", "--label", "n=1", script=script)
        (request,) = script.requests
        assert request.url.query.count(b"label=") == 2
        assert request.url.params.get_list("label") == ["team:a&b: é", "n:1"]


def listed(cursor: str | None, tasks: list[object], **reached: str) -> httpx.Response:
    looked_at = {"records": 500, "businesses": 1, **reached}
    return httpx.Response(200, json={"tasks": tasks, "cursor": cursor, "looked_at": looked_at})


def test_a_list_of_several_pages_says_how_many_tasks_it_looked_at() -> None:
    script = Script(listed("1", [TASK], reached="2030-01-31T08:00:00.000Z"), listed(None, []))
    result = called("task", "list", "orders", "--status", "pending", script=script)
    assert ID in result.stdout
    assert result.stderr == "1,000 tasks were looked at.\n"
    assert called("task", "list", "orders", script=Script(listed(None, [TASK]))).stderr == ""


def test_a_list_without_a_business_is_of_all_and_shows_theirs() -> None:
    task = {**TASK, "biz_type": "orders"}
    script = Script(httpx.Response(200, json={"tasks": [task], "cursor": None}))
    text = done("task", "list", script=script)
    (request,) = script.requests
    assert "biz_type" not in request.url.params
    assert "biz type" in text
    assert "orders" in text


def test_get_says_why_a_task_waits() -> None:
    text = done("task", "get", ID, script=Script(made(200, waiting=WAITING)))
    (line,) = [line for line in text.splitlines() if line.startswith("why: ")]
    assert line.startswith("why: its host keeps failing and is not called, host down.example,")
    assert ", next " in line
    shown = value("task", "get", ID, script=Script(made(200, waiting=WAITING)))["waiting"]
    assert WAITING.items() <= shown.items()


@pytest.mark.parametrize(
    ("command", "is_now"), [("run", "is due now"), ("redrive", "is pending again")]
)
def test_a_task_that_is_made_due_says_why_it_is_not_called(command: str, is_now: str) -> None:
    result = called("task", command, ID, script=Script(made(200, waiting=WAITING)))
    assert f"{is_now}, and waits: its host keeps failing and is not called" in result.stdout
    assert "duewheel business probe orders down.example" in result.stderr
    for answer in (made(200), made(200, waiting={"reason": "paused", "expected_at": None})):
        result = called("task", command, ID, script=Script(answer))
        assert ("waits: " in result.stdout) == (b"waiting" in answer.content)
        assert result.stderr == ""


def test_a_probe_names_the_business_and_the_host() -> None:
    script = Script(httpx.Response(200, json={"biz_type": "orders", "version": 0}))
    text = done("business", "probe", "orders", "down.example:8443", script=script)
    assert text == "The next due call of orders tries down.example:8443\n"
    assert script.requests[0].url.path == "/v1/businesses/orders/probe"
    assert bodies(script) == [{"host": "down.example:8443"}]


def test_get_shows_the_reason_of_a_newer_service_as_it_is() -> None:
    answer = made(200, waiting={"reason": "full-moon", "expected_at": None, "phase": 4})
    assert "why: full-moon\n" in done("task", "get", ID, script=Script(answer))


def test_get_shows_the_host_of_each_attempt_and_the_effective_callback() -> None:
    attempt = {"at": "2030-01-31T08:30:00.000Z", "outcome": "retry", "host": "down.example:8443"}
    effective = {"type": "http", "url": "https://usual.example/hook"}
    answer = made(200, history=[attempt], effective_callback=effective)
    text = done("task", "get", ID, script=Script(answer))
    assert "down.example:8443" in text
    assert "https://usual.example/hook" in text


def test_get_of_a_task_that_does_not_wait_says_nothing_of_it() -> None:
    assert "why" not in done("task", "get", ID, script=Script(made(200)))


def ended(status: str) -> httpx.Response:
    return httpx.Response(200, json={**TASK, "status": status})


@pytest.mark.parametrize(
    "arguments",
    [
        ["task", "create", "orders"],
        ["task", "create", "orders", "--due", "friday"],
        ["task", "create", "orders", "--due", "2001-01-01T00:00Z"],
        ["task", "create", "orders", "--due", "2h ago"],
        ["task", "create", "orders", "--due", "now", "--payload", "{'a': 1}"],
        ["task", "create", "orders", "--due", "now", "--payload", "NaN"],
        ["task", "create", "orders", "--due", "now", "--payload", "@/nowhere/at/all"],
        ["task", "create", "orders", "--due", "now", "--replace"],
        ["task", "list", "orders", "--status", "lost"],
        ["task", "list", "orders/order-", "--status", "dead"],
        ["task", "list", "orders/order-", "--label", "team=billing"],
        ["task", "list", "orders/order-", "--flow-key", "customer-7"],
        ["task", "list", "orders", "--label", "team"],
        ["task", "create", "orders", "--due", "now", "--label", "team="],
        ["task", "get", "orders/.."],
        ["--url", "nowhere", "task", "get", ID],
        ["--url", "http://localhost:port", "task", "get", ID],
        ["--key", "dw_é", "task", "get", ID],
        ["task", "forget", ID],
        ["business", "set", "orders", "retention=7"],
        ["business", "set", "orders", "priority=low", "priority=high"],
        ["business", "set", "orders", "priority"],
        ["business", "set", "orders", "retry@/nowhere/at/all"],
        ["business", "set", "orders"],
        ["timer", "create", "orders", "nightly", "crom=0 3 * * *"],
        ["timer", "change", "17", "biz_type=others"],
        ["operation", "start", "cancel", "orders"],
        ["operation", "start", "cancel", "orders", "--all", "--status", "pending"],
        ["operation", "start", "cancel", "orders", ID, "--status", "pending"],
        ["operation", "start", "cancel", "orders", "-"],
        ["operation", "start", "cancel", "orders", "-", "--yes"],
        ["operation", "start", "cancel", "orders", *(["AQ"] * 501)],
        ["operation", "start", "cancel", "orders", ID, "--due", "in 2h"],
        ["operation", "start", "reschedule", "orders", ID],
        ["operation", "start", "reschedule", "orders", ID, "--later", "2h", "--earlier", "1h"],
        ["operation", "start", "reschedule", "orders", ID, "--due", "2h ago"],
        ["operation", "start", "remake", "orders", "--all"],
        ["operation", "list", "--state", "ended"],
        ["key", "create", "service", "--grant", "orders"],
        ["key", "create", "service", "--grant", "own:orders"],
        ["key", "create", "service"],
    ],
)
def test_invalid_arguments_are_refused_before_a_request_is_sent(arguments: list[str]) -> None:
    script = Script(made())
    result = called(*arguments, script=script)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr
    assert script.requests == []


MAKER, OTHER = "key/tyuLCRLtUeQC", "key/wuXgroiHasEL"


def page(name: str, *rows: dict[str, object]) -> httpx.Response:
    return httpx.Response(200, json={name: rows, "cursor": None})


def test_what_a_key_has_begun_is_found_by_its_maker() -> None:
    keys = [
        {"key_id": f"{state}{by[-1]}", "name": "n", "grants": [], "state": state, "created_by": by}
        for state in ("live", "revoked")
        for by in (MAKER, OTHER)
    ]
    operations = [
        {**OPERATION, "operation_id": by[-1], "created_by": by, "state": "running"}
        for by in (MAKER, OTHER)
    ]
    timers = [{**TIMER, "timer_id": number} for number in ("1", "2")]
    change = {"version": 1, "at": "2030-01-31T08:00:00.000Z", "did": "created", "fields": []}
    script = Script(
        page("keys", *keys),
        page("operations", *operations),
        page("timers", *timers),
        page("changes", {**change, "by": OTHER}, {**change, "by": MAKER}),
        page("changes", {**change, "by": OTHER}),
    )
    found = values("key", "begun", "tyuLCRLtUeQC", script=script)
    assert [(one["kind"], one["id"]) for one in found] == [
        ("key", "liveC"),
        ("operation", "C"),
        ("timer", "1"),
    ]
    assert b"state=running" in script.requests[1].url.query


def test_a_revoked_key_is_said_to_leave_what_it_has_begun() -> None:
    key = {"key_id": "tyuLCRLtUeQC", "name": "n", "grants": [], "state": "revoked"}
    script = Script(httpx.Response(200, json=key))
    result = called("key", "revoke", "tyuLCRLtUeQC", "--yes", script=script)
    assert result.stdout == "tyuLCRLtUeQC is revoked\n"
    assert "duewheel key begun tyuLCRLtUeQC" in result.stderr


def test_a_task_is_shown_with_the_caller_that_changed_it_last() -> None:
    assert MAKER in done("task", "get", ID, script=Script(made(200, changed_by=MAKER)))


def asked(*command: str, script: Script) -> str:
    """What it asks; after a no it has changed nothing."""
    result = called(*command, script=script, stdin="n\n")
    assert result.exit_code == 1, result.output
    assert not {one.method for one in script.requests} & {"DELETE", "PUT"}
    assert not [one.url.path for one in script.requests if one.url.path.endswith("/revoke")]
    return result.stderr


def test_the_deletion_of_a_business_asks_with_the_number_of_its_timers_and_tasks() -> None:
    timers = [{**TIMER, "timer_id": number} for number in ("1", "2")]
    dry = {"operation_id": "DRY", "dry_run": True, "changed": 1234}
    script = Script(page("timers", *timers), operation(201, **dry), operation(**dry))
    text = asked("business", "delete", "orders", "--cancel-pending", script=script)
    assert "Delete the settings of orders and 2 timers, and cancel 1,234 tasks?" in text
    counting = {"biz_type": "orders", "action": "cancel", "filter": {}, "dry_run": True}
    assert bodies(script)[1] == counting
    script = Script()
    assert "settings of orders?" in asked("business", "delete", "orders", script=script)
    assert script.requests == []


def test_what_is_counted_before_a_question_takes_ten_requests_at_most() -> None:
    timers = httpx.Response(200, json={"timers": [TIMER] * 100, "cursor": "more"})
    dry = {"operation_id": "DRY", "dry_run": True}
    script = Script(*[timers] * 10, operation(201, **dry), operation(**dry))
    text = asked("business", "delete", "orders", "--cancel-pending", script=script)
    assert "at least 1,000 timers, and cancel 0 tasks" in text


def test_the_deletion_of_a_timer_asks_with_its_name() -> None:
    next_at = "2030-01-31T08:30:00.000Z"
    timer = {**TIMER, "next_at": next_at}
    text = asked("timer", "delete", "17", script=Script(httpx.Response(200, json=timer)))
    assert "n of orders is enabled, next 2030" in text
    assert "Delete 1 timer?" in text


def test_the_revocation_of_a_key_asks_with_the_number_of_what_goes_on() -> None:
    key = {"key_id": "OURS", "name": "shop", "grants": [], "state": "live"}
    keys = [{**key, "created_by": f"key/{by}"} for by in ("OURS", "OTHER")]
    operations = [{**OPERATION, "created_by": f"key/{by}"} for by in ("OURS", "OURS", "OTHER")]
    script = Script(
        httpx.Response(200, json=key), page("keys", *keys), page("operations", *operations)
    )
    text = asked("key", "revoke", "OURS", script=script)
    assert "1 live key and 2 running operations of it go on. Revoke the key shop for good?" in text


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (made(), 0),
        (problem("unknown-task", 404), 1),
        (gateway(404), 1),
        (httpx.Response(200, text="<html>"), 1),
        (httpx.Response(500, json={"message": "x"}), 1),
        (httpx.ConnectError("refused"), 3),
        (httpx.ReadTimeout("lost"), 3),
        (problem("not-permitted", 403), 4),
        (gateway(401), 4),
        (gateway(403), 4),
    ],
)
def test_the_exit_code_shows_the_kind_of_failure(
    answer: httpx.Response | Exception, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duewheel._sync.transport.Transport.pause", lambda *_: None)
    monkeypatch.setattr("duewheel.retrying.UNREACHED_TRIES_MAX", 1)
    monkeypatch.setattr(
        "duewheel._sync.transport.time.monotonic", iter(range(0, 9000, 50)).__next__
    )
    result = called("task", "get", ID, script=Script(answer))
    assert result.exit_code == code
    assert bool(result.stderr) == (code != 0)
    assert bool(result.stdout) == (code == 0)


def test_a_create_with_a_lost_answer_is_reported_as_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duewheel._sync.transport.Transport.pause", lambda *_: None)
    monkeypatch.setattr(
        "duewheel._sync.transport.time.monotonic", iter(range(0, 9000, 50)).__next__
    )
    script = Script(httpx.ReadTimeout("lost"))
    result = called("task", "create", "orders", "--due", "now", script=script)
    assert result.exit_code == 1
    assert "may have been carried out or not" in result.stderr


def test_connection_options_are_accepted_before_and_after_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUEWHEEL_KEY", "dw_environment")
    script = Script(made())
    done("task", "get", ID, script=script)
    done("--key", "dw_before", "task", "get", ID, script=script)
    done("task", "get", ID, "--key", "dw_behind", "--url", "http://other.example", script=script)
    assert script.headers("authorization") == [
        "Bearer dw_environment",
        "Bearer dw_before",
        "Bearer dw_behind",
    ]
    assert [request.url.host for request in script.requests] == [
        "127.0.0.1",
        "127.0.0.1",
        "other.example",
    ]


def test_requests_to_api_gateway_are_signed_unless_there_is_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-real-secret")
    url = "https://abc123.execute-api.eu-central-1.amazonaws.com"
    script = Script(made())
    done("task", "get", ID, "--url", url, script=script)
    done("task", "get", ID, "--url", url, "--key", "dw_a", script=script)
    done("task", "get", ID, script=script)
    signed, by_key, neither = script.headers("authorization")
    assert signed is not None
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert (by_key, neither) == ("Bearer dw_a", None)


def test_missing_credentials_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, f"{tmp_path}/none")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    url = "https://abc123.execute-api.eu-central-1.amazonaws.com"
    result = called("task", "get", ID, "--url", url, script=Script(made()))
    assert (result.exit_code, "no AWS credentials" in result.stderr) == (2, True)
    result = called("task", "get", ID, "--profile", "nobody", script=Script(made()))
    assert (result.exit_code, "nobody" in result.stderr) == (1, True)


def test_the_address_of_a_stack_is_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    class CloudFormation:
        def describe_stacks(self, StackName: str) -> object:
            outputs = [{"OutputKey": "ApiUrl", "OutputValue": f"http://{StackName}.example"}]
            return {"Stacks": [{"Outputs": outputs}]}

    asked = []
    monkeypatch.setattr(
        "duewheel.cli.connection.aws_client", lambda *args: asked.append(args) or CloudFormation()
    )
    monkeypatch.setenv("DUEWHEEL_STACK", "timers")
    script = Script(made())
    done("task", "get", ID, "--key", "dw_a", script=script)
    done("task", "get", ID, "--key", "dw_a", "--url", "http://other.example", script=script)
    monkeypatch.setenv("DUEWHEEL_URL", "http://third.example")
    done("task", "get", ID, "--key", "dw_a", script=script)
    hosts = [request.url.host for request in script.requests]
    assert hosts == ["timers.example", "other.example", "third.example"]
    assert asked == [("cloudformation", None)]


def test_json_has_the_members_of_the_service_and_of_a_newer_one() -> None:
    answer = made(payload={"ü": [1.5, None]}, newer="x", created_at="2030-01-31T08:00:00.000Z")
    read = value("task", "get", ID, script=Script(answer))
    assert {**TASK, "payload": {"ü": [1.5, None]}, "newer": "x"}.items() <= read.items()
    assert read["created_at"] == "2030-01-31T08:00:00.000Z"


def test_control_characters_are_shown_as_escapes() -> None:
    """Receivers write notes and callers write keys, and other users read them in a terminal."""
    nasty = "\x1b[2J\x9b31m[red]x[/red]\r\x07"
    answer = made(last_error=nasty, payload={"a": nasty}, key=nasty)
    page = httpx.Response(200, json={"tasks": [json.loads(answer.content)], "cursor": None})
    refused = problem("too-late", 409, detail=nasty)
    for arguments, script in (
        (["task", "get", ID], Script(answer)),
        (["task", "list", "orders"], Script(page)),
        (["task", "get", ID, "--json"], Script(answer)),
        (["task", "cancel", ID], Script(refused)),
    ):
        output = called(*arguments, script=script).output
        assert not set("\x1b\x9b\r\x07") & set(output)
        assert "[red]x[/red]" in output


def test_a_list_ends_at_its_limit_with_a_note() -> None:
    page = httpx.Response(200, json={"tasks": [TASK] * 3, "cursor": "more"})
    script = Script(page)
    result = called("task", "list", "orders", "--limit", "2", script=script)
    assert result.stdout.count(ID) == 2
    assert "more than these 2" in result.stderr
    assert len(script.requests) == 1
    assert script.requests[0].url.params["limit"] == "3"


def test_an_empty_list_prints_no_lines_for_programs() -> None:
    page = httpx.Response(200, json={"tasks": [], "cursor": None})
    result = called("task", "list", "orders", "--json", script=Script(page))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    result = called("task", "list", "orders", script=Script(page))
    assert (result.exit_code, result.stdout, bool(result.stderr)) == (0, "", True)


def test_watch_prints_changes_and_fails_unless_the_task_was_delivered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duewheel.cli.watching.PAUSE_SECONDS", 0)
    monkeypatch.setattr("duewheel.cli.watching.PAUSE_SECONDS_MAX", 0)
    steps = [made(), made(), made(attempts=1), ended("delivered")]
    delivered = called("task", "watch", ID, script=Script(*steps))
    assert (delivered.exit_code, len(delivered.stdout.splitlines())) == (0, 3)
    dead = called("task", "watch", ID, script=Script(made(), ended("dead")))
    assert (dead.exit_code, len(dead.stdout.splitlines())) == (1, 2)


def test_wheel_shows_the_open_places_of_the_sweep() -> None:
    at = "2030-01-31T08:00:00.000Z"
    pointer = {"at": at, "second": 1896076800, "lag_seconds": 120}
    place = {"at": at, "second": 1896076800, "shard": 3, "page": "2r", "since": at, "why": "held"}
    found = {
        "now": at,
        "buckets": 1,
        "origin": at,
        "time_pointer": pointer,
        "sweep_pointer": pointer,
        "open_places": {"count": 250, "oldest_age_seconds": 1420, "places": [place]},
    }
    text = done("wheel", script=Script(httpx.Response(200, json=found)))
    assert "open places    250, the oldest for 1420 s\n" in text
    *_, header, row = text.splitlines()
    assert header.split() == ["at", "shard", "page", "since", "why"]
    assert (row.split()[2:4], row.split()[-1]) == (["3", "2r"], "held")


def test_a_flow_key_is_paused_and_resumed_alone() -> None:
    script = Script(*[httpx.Response(200, json={"biz_type": "orders", "version": 2})] * 2)
    text = done("business", "pause", "orders", "--flow-key", "eu/7", script=script)
    text += done("business", "resume", "orders", "--flow-key", "eu/7", script=script)
    assert "eu/7 of orders is paused" in text
    assert "eu/7 of orders is resumed" in text
    assert bodies(script) == [
        {"paused_flow_keys": {"eu/7": True}},
        {"paused_flow_keys": {"eu/7": None}},
    ]


def test_a_report_is_sent_with_the_token_and_says_what_follows() -> None:
    until = {"until": "2030-01-31T08:40:00.000Z", "next_at": None}
    script = Script(httpx.Response(200, json={**TASK, **until}))
    token = ("--token", "0.1.x")
    text = done("work", "progress", ID, *token, "--note", "half", "--within", "10m", script=script)
    assert "to be completed by" in text
    done("work", "complete", ID, *token, "--result", "done", script=script)
    done("work", "fail", ID, *token, "--reason", "no", "--no-retry", script=script)
    assert bodies(script) == [
        {"note": "half", "complete_within_seconds": 600},
        {"result": "done"},
        {"reason": "no", "retry": False},
    ]
    assert script.headers("duewheel-completion-token") == ["0.1.x"] * 3


def test_get_says_until_when_the_receiver_works() -> None:
    waiting = {"reason": "running", "until": "2030-01-31T08:40:00.000Z", "expected_at": None}
    text = done("task", "get", ID, script=Script(made(200, waiting=waiting)))
    assert "why: its receiver works on it, to report by " in text


def test_a_task_is_paused_and_resumed() -> None:
    at = "2030-01-31T08:40:00.000Z"
    script = Script(*[made(200, next_at=at)] * 3)
    text = done("task", "pause", ID, "--until", "2030-01-31T08:40Z", script=script)
    assert "is paused until 2030-01-31" in text
    done("task", "pause", ID, script=script)
    assert "is due 2030-01-31" in done("task", "resume", ID, script=script)
    assert [request.url.path for request in script.requests] == [
        f"/v1/tasks/{ID}/pause",
        f"/v1/tasks/{ID}/pause",
        f"/v1/tasks/{ID}/resume",
    ]
    assert bodies(script)[:2] == [{"until": "2030-01-31T08:40:00+00:00"}, {}]


def test_get_says_that_the_task_itself_is_paused() -> None:
    at = "2030-01-31T08:40:00.000Z"
    waiting = {"reason": "paused", "since": at, "until": at, "expected_at": at}
    text = done("task", "get", ID, script=Script(made(200, waiting=waiting)))
    assert "why: it is paused, until 2030-01-31" in text
    business = {"reason": "paused", "expected_at": None}
    text = done("task", "get", ID, script=Script(made(200, waiting=business)))
    assert "why: its business or its flow key is paused" in text


def test_statistics_say_how_late_deliveries_were() -> None:
    names = ("created", "pending", "dead", "expired", "cancelled", "failed_attempts")
    classes = {"up_to_1000_ms": 1, "later": 1, "up_to_10_ms": 98}
    lateness = {"sum_ms": 99, "max_ms": 90_000, "counts": classes}
    counts = {**dict.fromkeys(names, 0), "delivered": 100, "lateness": lateness}
    at = "2030-01-31T08:30:00.000Z"
    instants = dict.fromkeys(("from", "to", "counted_until", "closed_until"), at)
    minutes = [{"at": at, **counts}]
    answer = {"biz_type": "orders", **instants, "total": counts, "minutes": minutes}
    text = done("business", "stats", "orders", script=Script(httpx.Response(200, json=answer)))
    assert "late: p50 ≤ 10 ms, p99 ≤ 1,000 ms, most 90,000 ms" in text
    assert text.count("≤ 1,000 ms") == 2
    quiet = {**answer, "total": {**counts, "delivered": 0}, "minutes": []}
    text = done("business", "stats", "orders", script=Script(httpx.Response(200, json=quiet)))
    assert "late" not in text


def test_dead_tasks_are_listed_with_their_keys() -> None:
    page = {"tasks": [{**TASK, "status": "dead", "key": "order-17:close"}], "cursor": None}
    text = done("business", "dead", "orders", script=Script(httpx.Response(200, json=page)))
    assert "order-17:close" in text
