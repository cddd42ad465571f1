"""Timers for the tests of the pages that show them, and parts of these pages."""

from typing import Any

from playwright.sync_api import Page

from tests.console.viewer import Viewer
from tests.support.service import Service

MARKUP = "<img src=x onerror=alert(1)>"
PHONE = {"width": 360, "height": 740}


def made(service: Service, biz_type: str, **fields: Any) -> dict[str, Any]:
    usual = {"name": "remind", "callback": {"url": f"{service.url}/_local/inbox/{biz_type}"}}
    schedule = {} if "cron" in fields else {"every_seconds": 86_400}
    new = {"biz_type": biz_type, **usual, **schedule, **fields}
    status, timer = service.call("POST", "/v1/timers", new)
    assert status == 201, timer
    return timer


def open_timer(viewer: Viewer, timer: dict[str, Any], more: str = "") -> None:
    viewer.open(f"timers/{timer['timer_id']}{more}")


def now_of(service: Service, timer: dict[str, Any]) -> dict[str, Any]:
    return service.call("GET", f"/v1/timers/{timer['timer_id']}")[1]


def is_within(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")
