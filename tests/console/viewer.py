"""A user of the console, who finds the parts of a page by their visible names."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, Route

FAILED = {  # a problem of the service
    "type": "urn:duewheel:problem:internal",
    "title": "The service failed unexpectedly",
    "status": 500,
    "detail": "Look at the log.",
}


class Viewer:
    def __init__(self, page: Page) -> None:
        self.page = page

    def open(self, path: str = "") -> None:
        """Open a page such as `tasks?status=dead`; by default the wheel."""
        self.page.goto(f"/console#/{path or 'wheel'}")

    def heading(self) -> str:
        return self.page.locator("main h1").inner_text()

    def fact(self, name: str) -> Locator:
        """The value beside a name in a list of facts."""
        return self.page.locator(f"dt:text-is('{name}') + dd")

    def rows(self, table: str) -> Locator:
        return self.page.get_by_role("region", name=table).locator("tbody tr")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> None:
        self.button(name).click()

    def agree(self, verb: str) -> None:
        """Press the button of the confirmation dialog."""
        self.page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()

    def field(self, label: str) -> Locator:
        return self.page.get_by_label(label, exact=True)

    def section(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    def has_room(self) -> bool:
        """Whether the page does not scroll sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def message(self) -> str:
        """The text of the last outcome."""
        note = self.page.locator("#outcomes .outcome").last
        note.wait_for()
        return note.inner_text()

    def part(self, title: str) -> Locator:
        """The content below a heading."""
        return self.page.locator(f"section:has(> h2:text-is('{title}'))")

    def fill(self, label: str, value: str) -> None:
        self.page.get_by_label(label, exact=True).fill(value)

    def choose(self, label: str, option: str) -> None:
        self.page.get_by_label(label, exact=True).select_option(label=option)

    def field_problem(self, label: str) -> Locator:
        return self.page.locator(f".field:has(label:text-is('{label}')) .field-problem")

    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    def outcome(self) -> Locator:
        return self.page.locator("#outcomes .outcome").last

    def lose_first_answer(self, path: str) -> None:
        """The first POST of this path is carried out, and its answer is lost."""
        lost: list[Route] = []

        def lose(route: Route) -> None:
            if route.request.method != "POST" or lost:
                return route.fallback()
            lost.append(route)
            route.fetch()
            return route.fulfill(status=504, json={"message": "Endpoint request timed out"})

        self.page.route(lambda url: urlsplit(url).path == path, lose)

    def answer(self, path: str, status: int, body: Mapping[str, object]) -> None:
        """Replace the service's answers to all later requests for a path."""
        self.page.route(
            lambda url: urlsplit(url).path == path,
            lambda route: route.fulfill(status=status, json=body),
        )
