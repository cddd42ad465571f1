"""Parts of the page of the wheel for its tests, and changes of the service's answers."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from playwright.sync_api import Locator, Page, Route

from tests.console.viewer import Viewer

CROWD = 640  # in batches of 64 and more, which are counted exactly; the forecast tells no less
REFRESH_MS = 2500


def changed(page: Page, pattern: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Apply `change` to the service's answers on their way."""

    def answer(route: Route) -> None:
        reply = route.fetch()
        members = reply.json()
        change(members)
        route.fulfill(response=reply, body=json.dumps(members))

    page.route(pattern, answer)


def refused(page: Page, pattern: str, status: int, title: str) -> None:
    body = {"type": "urn:duewheel:problem:not-permitted", "title": title, "detail": "So it is."}
    page.route(pattern, lambda route: route.fulfill(status=status, json={**body, "status": status}))


def ahead(page: Page) -> Locator:
    return page.get_by_role("slider", name="Tasks expected in the next hour")


def behind(page: Page) -> Locator:
    return page.get_by_role("slider", name="What became of the tasks")


def readout(page: Page, section: str) -> Locator:
    return page.get_by_role("region", name=section, exact=True).locator(".readout")


def row(viewer: Viewer, name: str) -> Locator:
    return viewer.rows("By business").filter(has_text=name)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def in_shanghai(instant: str) -> str:
    """The local time there, eight hours ahead."""
    at = datetime.fromisoformat(instant).timestamp() + 8 * 3600
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def tasks_of_minute(instant: str) -> str:
    first = int(datetime.fromisoformat(instant).timestamp()) // 60 * 60
    bounds = [datetime.fromtimestamp(at, UTC) for at in (first, first + 60)]
    due_from, due_to = (at.strftime("%Y-%m-%dT%H%%3A%M%%3A%S.000Z") for at in bounds)
    return f"biz_type=orders&due_from={due_from}&due_to={due_to}"


def heading_of(hours: int) -> str:
    return f"The last {'hour' if hours == 1 else f'{hours} hours'} of orders"
