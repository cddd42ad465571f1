"""The console in a headless Chromium, on a local stack whose clock the test moves.

A test fails on every error that the browser reports: a failed script, a missing file, or a refusal
by the content security policy.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from local.stack import LocalStack
from tests.console.viewer import Viewer
from tests.console.wheel_at_hand import CROWD
from tests.support.service import Service

_numbers = count(1)

HERE = Path(__file__).parent

DESK = {"width": 1280, "height": 900}
CHROMIUM = os.environ["CHROMIUM"]
# A browser reports every answer that is no success; the console shows the failure itself.
ANSWERED = "Failed to load resource: the server responded with a status of"
PATIENCE_MS = 15_000  # for clicks and expectations

expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """pytest calls this hook with the tests of all folders."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(frozen=True) as stack:
        yield stack


@pytest.fixture
def service(stack: LocalStack) -> Service:
    return Service(stack.url)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def zone() -> str:
    """The time zone of the viewer."""
    return "Asia/Shanghai"


class KeptContexts:
    """Browser contexts that the tests of a module share, one for each zone, unless a test has
    changed its context. The first page of a new context costs Chromium more than a second of CPU
    time, a further page half of that while another one is open. The console itself keeps state for
    one page only."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url
        self._anchors: dict[str, Page] = {}

    def of(self, zone: str) -> BrowserContext:
        if zone not in self._anchors:
            context = self._browser.new_context(
                base_url=self._url, viewport=DESK, timezone_id=zone, locale="en-GB"
            )
            context.set_default_timeout(PATIENCE_MS)
            self._anchors[zone] = context.new_page()
        return self._anchors[zone].context

    def give_back(self, zone: str) -> None:
        anchor = self._anchors[zone]
        for page in anchor.context.pages:
            if page != anchor:
                page.close()
        has_its_clock = anchor.evaluate("setTimeout.toString().includes('[native code]')")
        if not has_its_clock or anchor.context.cookies():
            anchor.context.close()
            del self._anchors[zone]

    def close(self) -> None:
        for anchor in self._anchors.values():
            anchor.context.close()


@pytest.fixture(scope="module")
def kept_contexts(browser: Browser, stack: LocalStack) -> Iterator[KeptContexts]:
    kept = KeptContexts(browser, stack.url)
    yield kept
    kept.close()


@pytest.fixture
def context(kept_contexts: KeptContexts, zone: str) -> Iterator[BrowserContext]:
    yield kept_contexts.of(zone)
    kept_contexts.give_back(zone)


@pytest.fixture
def complaints() -> list[str]:
    """The errors that the browser reports. A test that expects one removes it from this list."""
    return []


@pytest.fixture
def page(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    page = context.new_page()

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(ANSWERED):
            complaints.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    page.unroute_all(behavior="ignoreErrors")  # a refresh may be under way
    assert complaints == []


@pytest.fixture
def still(page: Page) -> Page:
    """The page with a frozen clock, which the test moves."""
    page.clock.install(time="2026-01-01T00:00:00Z")
    page.clock.pause_at("2026-01-01T00:00:01Z")
    return page


@pytest.fixture
def business() -> str:
    """A business that no other test of this process uses."""
    return f"shop-{next(_numbers)}"


@pytest.fixture
def viewer(page: Page) -> Viewer:
    return Viewer(page)


@pytest.fixture(scope="module")
def crowded_at(stack: LocalStack) -> str:
    """The instant of a crowded second ahead, after three businesses have had tasks of each
    outcome."""
    service = Service(stack.url)
    ladder = {"attempts": 2, "delays_seconds": [5]}
    for name in ("mail", "orders", "payments"):
        settings = {"callback": {"url": f"{stack.url}/_local/inbox/{name}"}, "retry": ladder}
        assert service.call("PUT", f"/v1/businesses/{name}", settings)[0] == 201
    service.call("PUT", "/v1/businesses/mail", {"calls_per_second": 50})
    service.call("PUT", "/_local/received/payments", {"status": 503})
    soon = [{"biz_type": "orders", "delay_seconds": 10} for _ in range(5)]
    failing = [{"biz_type": "payments", "delay_seconds": 10} for _ in range(3)]
    service.call("POST", "/v1/tasks/batch", {"tasks": soon + failing})
    service.advance(30)
    service.call("POST", "/v1/businesses/mail/pause")
    second = service.now_ms() // 1000 + 1800
    due_at = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    half = [{"biz_type": "orders", "due_at": due_at} for _ in range(CROWD // 2)]
    for _ in range(2):
        assert service.call("POST", "/v1/tasks/batch", {"tasks": half})[0] == 200
    return due_at
