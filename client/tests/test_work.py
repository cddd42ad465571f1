"""Reports on work that goes on after a callback."""

import asyncio
import json

import httpx
import pytest

from duewheel import AsyncDuewheel, Duewheel, StopTask
from duewheel.errors import NotRunning
from tests.support import Script, problem

STATE = {"task_id": "AQ", "status": "delivered", "until": None, "next_at": None}
DONE = httpx.Response(200, json=STATE)


def reported(script: Script) -> list[tuple[str, object]]:
    return [
        (request.url.path.rpartition("/")[2], json.loads(request.content or b"null"))
        for request in script.requests
    ]


def client_of(script: Script) -> Duewheel:
    return Duewheel("http://service", transport=script.transport)


def test_the_end_of_the_block_is_reported_with_its_result_by_the_token() -> None:
    script = Script(DONE)
    with client_of(script).work("AQ", "T1") as work:
        work.progress("half", within=60)
        work.result = "120 pages"
    assert reported(script) == [
        ("progress", {"note": "half", "complete_within_seconds": 60}),
        ("complete", {"result": "120 pages"}),
    ]
    assert script.headers("duewheel-completion-token") == ["T1", "T1"]


def test_an_exception_is_a_failed_attempt_and_passes_on() -> None:
    script = Script(DONE)
    with pytest.raises(OSError, match="out of paper"), client_of(script).work("AQ", "T1"):
        raise OSError("out of paper")
    assert reported(script) == [("fail", {"reason": "OSError: out of paper"})]


def test_an_exception_whose_text_is_not_unicode_is_reported_too() -> None:
    script = Script(DONE)
    with pytest.raises(OSError, match="not found"), client_of(script).work("AQ", "T1"):
        raise OSError("caf\udce9 not found")
    assert reported(script) == [("fail", {"reason": "OSError: caf\\udce9 not found"})]


def test_a_stop_ends_the_task() -> None:
    script = Script(DONE)
    with pytest.raises(StopTask), client_of(script).work("AQ", "T1"):
        raise StopTask("no such report")
    assert reported(script) == [("fail", {"reason": "no such report", "retry": False})]


def test_what_the_block_has_reported_is_not_reported_again() -> None:
    script = Script(DONE)
    with client_of(script).work("AQ", "T1") as work:
        work.fail("later", retry_after=30)
    assert reported(script) == [("fail", {"reason": "later", "retry_after_seconds": 30})]


def test_work_whose_attempt_is_over_reports_nothing_more() -> None:
    script = Script(problem("not-running", 409))
    with pytest.raises(NotRunning), client_of(script).work("AQ", "T1") as work:
        work.progress()
    assert reported(script) == [("progress", {})]


def test_a_report_whose_answer_is_lost_is_sent_again() -> None:
    script = Script(httpx.ReadError("lost"), DONE)
    assert client_of(script).work("AQ", "T1").complete().status == "delivered"
    assert len(script.requests) == 2


def test_the_same_without_threads() -> None:
    script = Script(DONE)

    async def run() -> None:
        async with (
            AsyncDuewheel("http://service", transport=script.transport) as client,
            client.work("AQ", "T1") as work,
        ):
            work.result = "done"

    asyncio.run(run())
    assert reported(script) == [("complete", {"result": "done"})]
