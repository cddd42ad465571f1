"""axe-core finds nothing to object to on any page, in either theme, at a desk or on a telephone."""

from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize

from local.stack import LocalStack
from tests.console.conftest import DESK
from tests.console.viewer import Viewer
from tests.support.service import Service

TELEPHONE: ViewportSize = {"width": 390, "height": 844}
# All rules but those that axe leaves out as long as they are experimental; this one is wanted.
RULES = {"label-content-name-mismatch": {"enabled": True}}
OPTIONS = {"resultTypes": ["violations"], "rules": RULES}

Theme = Literal["light", "dark"]

PAGES = (
    "overview",
    "wheel",
    "wheel?biz_type=orders&hours=24",
    "tasks",
    "tasks?status=pending",
    "tasks?biz_type=payments&status=dead",
    "tasks?biz_type=mail&key_prefix=k",
    "tasks/new",
    "tasks/{pending}",
    "tasks/{dead}",
    "tasks/{parked}",
    "tasks/nothing",
    "timers",
    "timers/new",
    "timers/{timer}",
    "timers/{timer}/edit",
    "timers/{timer}/runs",
    "timers/nothing",
    "businesses",
    "businesses/payments",
    "businesses/payments/dead",
    "businesses/payments/edit",
    "find",
    "find?q=order",
    "find?q=nothing",
    "operations",
    "no/such/page",
)


@pytest.fixture(scope="module")
def names(stack: LocalStack, crowded_at: str) -> dict[str, str]:
    """The ids in addresses of pages, of tasks and timers in several states."""
    service = Service(stack.url)
    timer = {"biz_type": "mail", "name": "order-report", "cron": "30 8 * * *", "payload": {"a": 1}}
    timer_id = service.call("POST", "/v1/timers", timer)[1]["timer_id"]
    pending = service.call(
        "POST",
        "/v1/tasks",
        {"biz_type": "orders", "due_at": crowded_at, "key": "order-17", "labels": {"team": "a"}},
    )[1]["task_id"]
    parked = service.call("POST", "/v1/tasks", {"biz_type": "mail", "delay_seconds": 1})[1]
    service.advance(5)
    found = service.call("GET", "/v1/tasks?biz_type=payments&status=dead")[1]["tasks"]
    return {
        "timer": timer_id,
        "pending": pending,
        "parked": parked["task_id"],
        "dead": found[0]["task_id"],
    }


@pytest.mark.parametrize(
    ("theme", "size"),
    [("light", DESK), ("dark", DESK), ("light", TELEPHONE), ("dark", TELEPHONE)],
    ids=["light", "dark", "light-telephone", "dark-telephone"],
)
def test_no_page_has_a_finding(
    viewer: Viewer, page: Page, names: dict[str, str], theme: Theme, size: ViewportSize
) -> None:
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    found = {path: findings(viewer, path.format(**names)) for path in PAGES}
    assert {path: some for path, some in found.items() if some} == {}


def test_a_dialog_and_the_suggestions_have_no_finding(
    viewer: Viewer, page: Page, names: dict[str, str]
) -> None:
    opened(viewer, f"tasks/{names['pending']}")
    viewer.press("Reschedule")
    viewer.dialog().wait_for()
    assert checked(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("or")
    page.keyboard.press("ArrowDown")
    page.get_by_role("option").first.wait_for()
    assert checked(page) == []


def test_the_checker_finds_what_is_wrong(viewer: Viewer, page: Page) -> None:
    opened(viewer, "find")
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [rule for rule, _ in checked(page)] == ["button-name"]


def findings(viewer: Viewer, path: str) -> list[tuple[str, list[str]]]:
    opened(viewer, path)
    return checked(viewer.page)


def opened(viewer: Viewer, path: str) -> None:
    viewer.page.goto("about:blank")
    viewer.open(path)
    viewer.page.locator("main h1").first.wait_for()
    viewer.page.wait_for_function(
        "() => [...document.querySelectorAll('[aria-busy]')].every((one) => !one.checkVisibility())"
    )


def checked(page: Page) -> list[tuple[str, list[str]]]:
    """The rules that are broken, each with the elements."""
    answer: dict[str, Any] = Axe().run(page, options=OPTIONS).response
    return [
        (broken["id"], [" ".join(node["target"]) for node in broken["nodes"]])
        for broken in answer["violations"]
    ]
