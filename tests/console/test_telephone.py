"""On a telephone: rows in a few lines, forms that are folded, what is owed first."""

import pytest
from playwright.sync_api import expect

from tests.console.tasks_at_hand import batch, created
from tests.console.viewer import Viewer
from tests.support.service import Service

ROW_MAX = 90  # three lines; a card with all its members was 240


@pytest.fixture
def phone(viewer: Viewer) -> Viewer:
    viewer.page.set_viewport_size({"width": 390, "height": 844})
    return viewer


def test_a_task_takes_a_few_lines_without_empty_members(
    phone: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 50)
    phone.open(f"tasks?biz_type={business}")
    rows = phone.rows("Tasks")
    expect(rows).to_have_count(50)
    heights = rows.evaluate_all("all => all.map((row) => row.getBoundingClientRect().height)")
    assert max(heights) <= ROW_MAX
    expect(rows.first.locator("[data-label='Last error']")).to_be_hidden()
    expect(rows.first.locator("[data-label='Due']")).to_be_visible()
    assert phone.has_room()


def test_a_form_that_filters_is_folded_and_opened_by_a_press(
    phone: Viewer, service: Service, business: str
) -> None:
    created(service, business)
    phone.open(f"tasks?biz_type={business}")
    expect(phone.field("Key prefix")).to_be_hidden()
    phone.page.get_by_text("Search", exact=True).first.click()
    expect(phone.field("Key prefix")).to_be_visible()


def test_the_menu_is_one_line_and_leads_to_what_is_owed(phone: Viewer) -> None:
    phone.open("find")
    menu = phone.page.get_by_role("navigation", name="Console").get_by_role("link")
    tops = menu.evaluate_all("all => all.map((link) => link.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    menu.filter(has_text="Tasks").click()
    statuses = phone.page.get_by_role("navigation", name="By status")
    expect(statuses.get_by_role("link", name="Pending")).to_have_attribute("aria-current", "true")
    statuses.get_by_role("link", name="All").click()
    expect(phone.page.get_by_role("heading", name="Tasks")).to_be_visible()
    expect(statuses.get_by_role("link", name="All")).to_have_attribute("aria-current", "true")
    expect(menu.filter(has_text="Tasks")).to_have_attribute("aria-current", "page")
