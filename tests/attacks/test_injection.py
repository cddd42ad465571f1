"""Strings that would end a line, begin a record or look like a header, wherever a caller can send
one: each log record stays one line of ASCII JSON, and no answer gets another header."""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from duewheel.log import logger
from duewheel.stores.tasks.tasks import TaskStore
from tests.attacks.conftest import APP_TIMER, HOOK, TASK, TIMER, attack, every_call, filled
from tests.support.cases import each_case
from tests.support.clock import ManualClock

FORGED = '{"level":"ERROR","action":"rescued","count":1}'
EVIL = {
    "a line of the log": f"x\n{FORGED}\n",
    "a line of Windows": f"x\r\n{FORGED}",
    "a line of Unicode": f"x\u2028{FORGED}\u2029\u0085",
    "the end of a string": f'"}}\n{FORGED}',
    "a header": "x\r\nset-cookie: a=b\r\n\r\n<script>alert(1)</script>",
    "a terminal": "\x1b[2J\x1b]0;owned\x07\x9b2J",
    "a direction": "\u202egnp.exe\u2066",
    "NUL": "a\0b",
    "half of a surrogate pair": "\ud800x",
    "a format": "%s%n{0.__class__}${jndi:ldap://x}",
}
NOT_IN_A_HEADER = re.compile(r"[^\t\x20-\x7e]")


def raise_again(_: logging.LogRecord) -> None:
    """Called while the error is handled that prevented the write of a record."""
    raise


class Broken(RuntimeError):
    """An error of the service whose message contains the caller's input, like errors of
    libraries."""


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The lines of the log, written to an ASCII stream, after each request."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="strict", write_through=True)
    monkeypatch.setattr(logger.registered_handler, "stream", stream)
    monkeypatch.setattr(logger.registered_handler, "handleError", raise_again)
    # pytest must not capture it too, since it cannot report half of a surrogate pair.
    named = logging.getLogger(logger.service)
    monkeypatch.setattr(named, "callHandlers", logger.registered_handler.handle)
    written: list[str] = []
    yield written
    written += raw.getvalue().decode("ascii").splitlines()
    assert written
    for line in written:
        record = json.loads(line)
        assert record.get("action") != "rescued"
        assert record["message"]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each store method for tasks fails, with the caller's input in the message."""

    def fail(_: object, *given: Any, **named: Any) -> None:
        raise Broken(f"cannot do {given} {named}")

    for name in ("create", "create_many", "get", "create_with_entry", "items_at"):
        monkeypatch.setattr(TaskStore, name, fail)


def evil_requests(text: str) -> Iterator[tuple[Any, ...]]:
    """The text in each segment of each path, in the query, and in each string of the bodies."""
    for method, path in every_call():
        yield method, filled(path, otherwise=text), TASK, f"biz_type={text}&{text}={text}"
    yield "GET", f"/v1/{text}", None
    yield text, "/v1/tasks", None
    for field in ("biz_type", "key", "payload", text):
        yield "POST", "/v1/tasks", {**TASK, field: text}
    for callback in (
        {"url": text},
        {"url": f"https://receiver.example/{text}"},
        {"url": f"https://{text}.example/"},
        {**HOOK, "method": text},
        {**HOOK, "headers": {text: "x"}},
        {**HOOK, "headers": {"x": text}},
        {"type": text},
    ):
        yield "POST", "/v1/tasks", {**TASK, "callback": callback}
        yield "PUT", "/v1/businesses/orders", {"callback": callback}
        told = {"outcomes": [text], "callback": callback}
        yield "POST", "/v1/tasks", {**TASK, "on_outcome": told}
    for field in ("name", "cron", "timezone", "payload"):
        yield "POST", "/v1/timers", {**TIMER, field: text}
    for field in ("app", "name", "cron"):
        yield "POST", "/api/timer/v1/def", {**APP_TIMER, field: text}


@each_case("text", EVIL.values())
def test_no_string_of_a_caller_adds_a_line_or_a_header(
    wired: ManualClock, broken: None, lines: list[str], text: str
) -> None:
    headers = {"user_agent": text, "idempotency_key": text, "x_amzn_trace_id": text}
    for request in evil_requests(text):
        _, answer, given = attack(*request, **headers, if_match=text)
        assert isinstance(answer, dict)
        for name, value in given.items():
            assert name in ("content-type", "location", "etag", "allow", "retry-after")
            assert not NOT_IN_A_HEADER.search(value)


@pytest.mark.parametrize("text", EVIL.values(), ids=EVIL)
def test_a_failure_whose_message_contains_the_callers_input_is_one_record(
    wired: ManualClock, broken: None, lines: list[str], text: str
) -> None:
    if text == EVIL["half of a surrogate pair"]:
        text = r"\ud800x"  # no body can contain it
    status, answer, _ = attack("POST", "/v1/tasks", {**TASK, "payload": text})
    assert (status, answer["type"]) == (500, "urn:duewheel:problem:internal")


@each_case("text", EVIL.values())
def test_a_record_with_any_text_is_one_line_of_ascii(lines: list[str], text: str) -> None:
    logger.warning(text, action=text, reasons={text: [text, text.encode("utf-8", "replace")]})
    try:
        raise Broken(text)
    except Broken:
        logger.exception("failed", action="failed", at={text})
