"""Somebody at the console, who sees and clicks what people see and click."""

from playwright.sync_api import Locator, Page


class Viewer:
    def __init__(self, page: Page) -> None:
        self.page = page

    def open(self, path: str = "") -> None:
        """`tasks?status=dead`; the wheel by itself."""
        self.page.goto(f"/console#/{path}" if path else "/console")

    def heading(self) -> str:
        return self.page.locator("main h1").inner_text()

    def fact(self, name: str) -> Locator:
        """What stands beside a name in a list of facts."""
        return self.page.locator(f"dt:text-is('{name}') + dd")

    def rows(self, table: str) -> Locator:
        return self.page.get_by_role("region", name=table).locator("tbody tr")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def agree(self, verb: str) -> None:
        """In the dialog that asks before something is done."""
        self.page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()

    def field(self, label: str) -> Locator:
        return self.page.get_by_label(label, exact=True)

    def section(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    def has_room(self) -> bool:
        """Whether nothing stands out of the page sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def told(self) -> str:
        """The last outcome that was told."""
        note = self.page.locator("#outcomes .outcome").last
        note.wait_for()
        return note.inner_text()
