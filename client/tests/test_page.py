"""docs/client.md: its code is run, block by block."""

import asyncio
import base64
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from standardwebhooks import Webhook

from duewheel import Duewheel, errors

PAGE = Path(__file__).parents[2] / "docs/client.md"
MANY, SOME = "range(600)", "range(20)"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OWN_STACK = "with LocalStack()"
SECRET = f"whsec_{base64.b64encode(bytes([2]) * 24).decode()}"


def blocks() -> list[str]:
    text = PAGE.read_text()
    found = BLOCK.findall(text)
    assert {language for language, _ in found} == {"python"}
    assert text.count(MANY) == 1
    return [code.replace(MANY, SOME) for _, code in found]


def run(code: str, names: dict[str, Any]) -> None:
    exec(compile(code, str(PAGE), "exec"), names)


@pytest.fixture(scope="module")
def read_along(stack_url: str) -> Iterator[SimpleNamespace]:
    """The names that the blocks define, and their output. Their tasks are called when another test
    moves the stack's clock."""
    names: dict[str, Any] = {"__name__": "page"}
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(printed):
        patched.setenv("DUEWHEEL_URL", stack_url)
        for code in blocks():
            if OWN_STACK not in code:
                run(code.replace("https://example.com", f"{stack_url}/_local/inbox"), names)
    yield SimpleNamespace(**{name: names[name] for name in names}, printed=printed.getvalue())
    names["client"].close()


def test_every_block_that_needs_a_service_runs(read_along: SimpleNamespace) -> None:
    assert "Health(status='ok'" in read_along.printed
    assert "there was none" in read_along.printed
    assert "['basket-21', 'basket-22']" in read_along.printed


@pytest.mark.stack
def test_the_block_that_starts_a_stack_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = (code for code in blocks() if OWN_STACK in code)
    run(code, {"Duewheel": Duewheel})
    assert capsys.readouterr().out == "ok\n"


def test_the_reminders_of_the_page_are_created(read_along: SimpleNamespace) -> None:
    client: Duewheel = read_along.client
    assert client.tasks.get_by_key("orders", "order-9:remind").payload == {"order": 9}


def test_the_receivers_of_the_page_accept_a_callback_once(read_along: SimpleNamespace) -> None:
    body, now = b'{"order": 17}', datetime.now(UTC)
    headers = {
        "webhook-id": "AQG5",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET).sign("AQG5", now, body.decode()),
        "content-type": "application/json",
    }
    browser = read_along.app.test_client()

    def by_flask(sent: bytes) -> int:
        code: int = browser.post("/orders/close", data=sent, headers=headers).status_code
        return code

    def by_async(sent: bytes) -> int:
        code: int = asyncio.run(read_along.answered(headers, sent))
        return code

    for status in (by_flask, by_async):
        assert [status(body), status(body), status(b"{}")] == [204, 204, 401]
    assert read_along.closed == [17, 17]


def test_the_page_names_existing_exceptions() -> None:
    """Those of its tables, and those for answers of API Gateway."""
    text = PAGE.read_text()
    for name in re.findall(r"`errors\.(\w+)`", text):
        assert hasattr(errors, name)
    for name in ("NotAuthenticated", "Forbidden", "NoSuchPath", "RequestTooLarge"):
        assert f"`{name}`" in text
        assert hasattr(errors, name)
