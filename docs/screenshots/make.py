"""Takes the pictures of the console that README.md and docs/console.md show: `make screenshots`."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from docs.screenshots.story import START, Story
from duewheel.rules.instants import ms_from_rfc3339
from local.stack import LocalStack

FOLDER = Path(__file__).parent
DESK: Mapping[str, Any] = {"viewport": {"width": 1200, "height": 760}}
TALL: Mapping[str, Any] = {"viewport": {"width": 1200, "height": 1320}}
PHONE: Mapping[str, Any] = {"viewport": {"width": 390, "height": 780}}
# What is to be seen, once the page has what it shows.
WAITING = "[aria-busy=true]"


def take_all(folder: Path, chromium: str) -> list[Path]:
    with LocalStack(start_ms=ms_from_rfc3339(START), frozen=True) as stack:
        ids = Story(stack.url).tell()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--force-color-profile=srgb"]
            )
            taken = [
                _take(browser, stack.url, folder / f"{name}.png", path.format(**ids), look)
                for name, (path, look) in PICTURES.items()
            ]
            browser.close()
    return taken


PICTURES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "overview": ("overview", TALL),
    "overview-phone": ("overview", {**PHONE, "color_scheme": "dark"}),
    "wheel": ("wheel", TALL),
    "tasks-phone": ("tasks?biz_type=orders&status=pending", PHONE),
    "tasks": ("tasks?biz_type=orders", {**TALL, "color_scheme": "dark"}),
    "task": ("tasks/{task}", DESK),
    "task-phone": ("tasks/{task}", PHONE),
    "timer": ("timers/{timer}/edit", DESK),
    "business": ("businesses/partner", TALL),
}


def _take(browser: Browser, url: str, file: Path, path: str, look: Mapping[str, Any]) -> Path:
    context = browser.new_context(
        base_url=url, timezone_id="Europe/Berlin", locale="en-GB", reduced_motion="reduce", **look
    )
    page = context.new_page()
    page.goto(f"/console#/{path}")
    _wait(page)
    page.screenshot(path=file)
    context.close()
    return file


def _wait(page: Page) -> None:
    page.locator("main h1").wait_for()
    page.wait_for_function(f"() => !document.querySelector('{WAITING}')")
    page.wait_for_load_state("networkidle")


def main() -> int:
    for file in take_all(FOLDER, os.environ["CHROMIUM"]):
        print(file.relative_to(FOLDER.parents[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
