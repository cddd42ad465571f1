"""`duewheel import` creates the task of each line once, also after interruptions; and `duewheel
export`."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from duewheel import Duewheel
from duewheel.cli.connection import Connection
from duewheel.cli.framework import Setting
from duewheel.cli.root import duewheel
from tests.cli_support import called, done, value
from tests.support import TASK, Script, advance, problem, received


class Dying(httpx.BaseTransport):
    """A transport that simulates the end of this process, after the answer to request `number`."""

    def __init__(self, number: int) -> None:
        self._network = httpx.HTTPTransport()
        self._left = number

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._network.handle_request(request)
        answer.read()
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt
        return answer


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return tmp_path / "tasks.jsonl"


def task_line(biz_type: str, **members: Any) -> str:
    callback = {"url": "https://example.com/hook"}
    return json.dumps(
        {"biz_type": biz_type, "delay_seconds": 864000, "callback": callback, **members}
    )


def write(tasks: Path, biz_type: str, count: int) -> None:
    tasks.write_text("".join(task_line(biz_type, payload=n) + "\n" for n in range(count)))


def payloads(client: Duewheel, biz_type: str) -> list[Any]:
    return sorted(task.payload for task in client.tasks.list(biz_type))


def die(tasks: Path, url: str, number: int) -> None:
    setting = Setting(Connection(url=url, transport=Dying(number)))
    assert CliRunner().invoke(duewheel, ["import", str(tasks)], obj=setting).exit_code == 1


def batch_answer(*results: Any) -> httpx.Response:
    return httpx.Response(200, json={"results": list(results)})


def refusal(name: str, status: int, **members: Any) -> dict[str, Any]:
    return {"status": status, "problem": json.loads(problem(name, status, **members).content)}


MADE = {"status": 201, "task": TASK}


def test_a_payload_reaches_the_callback_as_it_was_written(
    tasks: Path, stack_url: str, biz_type: str
) -> None:
    inbox = f'"callback": {{"url": "{stack_url}/_local/inbox/{biz_type}"}}'
    payload = '{"b":  1.0, "a": 1e5, "ü": "\\u00fc"}'
    line = f'{{"biz_type": "{biz_type}", "delay_seconds": 1, {inbox}, "payload": {payload}}}'
    tasks.write_text(f"\n  {line}\r\n\n", encoding="utf-8")
    assert "1 tasks made, 0 refused" in done("import", str(tasks), "--url", stack_url)
    advance(stack_url, timedelta(seconds=10))
    assert [call["body"] for call in received(stack_url, biz_type)] == [payload]


@pytest.fixture
def _two_tasks_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duewheel.batches.TASKS_MAX", 2)


@pytest.mark.usefixtures("_two_tasks_a_request")
@pytest.mark.parametrize(
    ("number", "is_journal_lost"),
    [
        (1, True),
        (2, False),
        pytest.param(1, False, marks=pytest.mark.exhaustive),
        pytest.param(2, True, marks=pytest.mark.exhaustive),
    ],
)
def test_an_interrupted_import_creates_each_task_once(
    tasks: Path,
    stack_url: str,
    client: Duewheel,
    biz_type: str,
    number: int,
    is_journal_lost: bool,
) -> None:
    write(tasks, biz_type, 5)
    die(tasks, stack_url, number)
    if is_journal_lost:
        tasks.with_name("tasks.jsonl.import").unlink()
    result = value("import", str(tasks), "--url", stack_url)
    assert result == {"made": 5, "refused": []}
    assert payloads(client, biz_type) == list(range(5))


def test_a_finished_import_sends_no_request(tasks: Path) -> None:
    write(tasks, "orders", 2)
    script = Script(batch_answer(MADE, MADE))
    assert value("import", str(tasks), script=script) == value("import", str(tasks), script=script)
    assert len(script.requests) == 1


def test_lines_may_be_added_but_not_changed(tasks: Path) -> None:
    write(tasks, "orders", 2)
    script = Script(batch_answer(MADE, MADE), batch_answer(MADE))
    done("import", str(tasks), script=script)
    tasks.write_text(tasks.read_text() + task_line("orders", payload="late"))
    assert value("import", str(tasks), script=script)["made"] == 3
    assert json.loads(script.requests[1].content)["tasks"][0]["payload"] == "late"

    write(tasks, "others", 3)
    changed = called("import", str(tasks), script=script)
    assert (changed.exit_code, "has changed since" in changed.stderr) == (1, True)
    assert len(script.requests) == 2


@pytest.mark.parametrize("line", ["{", "[]", "NaN", '{"a": NaN}', "{}, {}", "\x00", "[" * 100_000])
def test_a_file_with_an_invalid_line_is_refused_before_a_request_is_sent(
    tasks: Path, line: str
) -> None:
    tasks.write_text(f"{task_line('orders')}\n{line}\n")
    script = Script(batch_answer(MADE))
    result = called("import", str(tasks), script=script)
    assert (result.exit_code, "line 2" in result.stderr) == (1, True)
    assert script.requests == []


def test_refusals_of_the_service_are_reported_by_line(tasks: Path) -> None:
    write(tasks, "orders", 3)
    script = Script(batch_answer(MADE, refusal("invalid-field", 422), MADE))
    result = called("import", str(tasks), script=script)
    assert (result.exit_code, "2 tasks made, 1 refused" in result.stdout) == (1, True)
    assert "invalid-field: Just so." in result.stdout
    again = called("import", str(tasks), "--json", script=script)
    (refused,) = json.loads(again.stdout)["refused"]
    assert (refused["line"], again.exit_code, len(script.requests)) == (2, 1, 1)


def test_tasks_refused_by_a_limit_are_sent_again_after_a_pause(
    tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeat under the same idempotency key stores the tasks that were not stored. Refusals by a
    limit stay the same under that key, so these tasks need another one."""
    waits: list[float] = []
    monkeypatch.setattr("duewheel.cli.importing.time.sleep", waits.append)
    write(tasks, "orders", 3)
    limited = refusal("too-many-creates", 429, retry_after_seconds=7)
    script = Script(
        batch_answer(MADE, refusal("unavailable", 503), limited),
        batch_answer(MADE, MADE, limited),
        batch_answer(MADE),
    )
    assert value("import", str(tasks), script=script) == {"made": 3, "refused": []}
    first, second, third = script.headers("idempotency-key")
    assert first == second != third
    bodies = [json.loads(request.content)["tasks"] for request in script.requests]
    assert [[task["payload"] for task in body] for body in bodies] == [[0, 1, 2], [0, 1, 2], [2]]
    assert waits == [7, 7]


def test_a_request_in_doubt_for_a_day_needs_a_decision(
    tasks: Path, stack_url: str, biz_type: str
) -> None:
    write(tasks, biz_type, 2)
    die(tasks, stack_url, 1)
    journal = tasks.with_name("tasks.jsonl.import")
    text, now = journal.read_text(), datetime.now(UTC)
    (sent,) = (json.loads(line)["sent"] for line in text.splitlines() if "sent" in line)
    journal.write_text(text.replace(sent["at"], (now - timedelta(days=1)).isoformat()))
    asked = called("import", str(tasks), "--url", stack_url)
    assert (asked.exit_code, "Lines 1 to 2" in asked.stderr) == (1, True)

    old = journal.read_text()
    skipped = value("import", str(tasks), "--url", stack_url, "--in-doubt", "skip")
    assert skipped["made"] == 0
    journal.write_text(old)
    assert value("import", str(tasks), "--url", stack_url, "--in-doubt", "send")["made"] == 2


def test_a_request_with_an_incomplete_line_in_the_journal_is_repeated(tasks: Path) -> None:
    write(tasks, "orders", 2)
    script = Script(batch_answer(MADE, MADE))
    done("import", str(tasks), script=script)
    journal = tasks.with_name("tasks.jsonl.import")
    whole = journal.read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    journal.write_bytes(whole[: last + 5])
    assert value("import", str(tasks), script=script)["made"] == 2
    assert journal.read_bytes() == whole
    assert len(set(script.headers("idempotency-key"))) == 1


def test_a_file_that_is_no_journal_is_refused_and_kept(tasks: Path) -> None:
    write(tasks, "orders", 1)
    journal = tasks.with_name("tasks.jsonl.import")
    for text in ("hello\n", '{"sent": {}}\n', '{"made": 1, "refused": 1, "again": 1}\n'):
        journal.write_text(text)
        result = called("import", str(tasks), script=Script(batch_answer(MADE)))
        assert (result.exit_code, "is not what an import has written" in result.stderr) == (1, True)
        assert journal.read_text() == text


def test_lines_of_a_batch_refused_as_a_whole_may_be_changed(tasks: Path) -> None:
    write(tasks, "orders", 2)
    script = Script(problem("malformed-body", 400), batch_answer(MADE, MADE))
    assert called("import", str(tasks), script=script).exit_code == 1
    write(tasks, "others", 2)
    assert value("import", str(tasks), script=script)["made"] == 2


def test_an_import_cannot_continue_on_another_service(tasks: Path) -> None:
    write(tasks, "orders", 1)
    script = Script(batch_answer(MADE))
    done("import", str(tasks), script=script)
    other = called("import", str(tasks), "--url", "http://other.example", script=script)
    assert (other.exit_code, "into http://127.0.0.1:8080" in other.stderr) == (1, True)


def test_exported_tasks_can_be_imported(tasks: Path, stack_url: str, biz_type: str) -> None:
    retry = {"attempts": 2, "delays_seconds": [5]}
    lines = [
        task_line(biz_type, payload={"n": 1}, key="order-17:close", retry=retry),
        task_line(biz_type, expires_after_seconds=60),
    ]
    tasks.write_text("\n".join(lines))
    done("import", str(tasks), "--url", stack_url)
    exported = done("export", biz_type, "--url", stack_url)
    for line in exported.splitlines():
        assert json.loads(line)["biz_type"] == biz_type
    tasks.with_name("exported.jsonl").write_text(exported.replace(biz_type, f"{biz_type}-2"))
    imported = value("import", str(tasks.with_name("exported.jsonl")), "--url", stack_url)
    assert imported == {"made": 2, "refused": []}
    again = done("export", f"{biz_type}-2", "--url", stack_url)
    renamed = again.replace(f"{biz_type}-2", biz_type)
    assert sorted(renamed.splitlines()) == sorted(exported.splitlines()), (
        "sorted, since both have the same due instant"
    )
