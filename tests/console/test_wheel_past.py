"""The page of the wheel: outcomes of tasks by minute and by business, and businesses whose calls
are held back."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.viewer import Viewer
from tests.console.wheel_at_hand import ahead, behind, changed, heading_of, readout, refused, row

pytestmark = pytest.mark.usefixtures("crowded_at")  # its instant is the start of every test


def test_outcomes_are_shown_by_minute_in_a_chart_and_in_a_table(viewer: Viewer) -> None:
    viewer.open()
    shown = readout(viewer.page, "The last hour")
    expect(shown).to_contain_text("failed attempt")
    viewer.page.get_by_text("As a table").last.click()
    rows = viewer.rows("What became of the tasks")
    delivered = rows.filter(has_text="5").last
    expect(delivered.locator("[data-label=delivered]")).to_have_text("5")
    expect(delivered.locator("[data-label=dead]")).to_have_text("3")
    behind(viewer.page).focus()
    viewer.page.keyboard.press("Home")
    expect(shown).to_contain_text("nothing")


@pytest.mark.parametrize(("hours", "minutes"), [(1, 1), (6, 5), (24, 15)])
def test_longer_ranges_are_drawn_in_coarser_bins(viewer: Viewer, hours: int, minutes: int) -> None:
    viewer.open(f"wheel?biz_type=orders&hours={hours}")
    last = behind(viewer.page)
    expect(last).to_be_visible()
    points = int(last.get_attribute("aria-valuemax") or 0) + 1
    assert points in (hours * 60 // minutes, hours * 60 // minutes + 1)
    expect(readout(viewer.page, heading_of(hours))).to_contain_text("5 delivered")


def test_lateness_is_shown_with_the_precision_of_its_classes(viewer: Viewer) -> None:
    def late(statistics: dict[str, Any]) -> None:
        counts = {"up_to_10_ms": 90, "up_to_500_ms": 9, "later": 1}
        for minute in statistics["minutes"]:
            minute["lateness"] = {"sum_ms": 0, "max_ms": 900_000, "counts": counts}

    changed(viewer.page, "**/stats?*", late)
    viewer.open("wheel?biz_type=orders")
    for name, expected in (("p50", "up to 10 ms"), ("p90", "up to 10 ms"), ("p99", "up to 500 ms")):
        expect(viewer.fact(name)).to_have_text(expected)
    expect(viewer.fact("Max")).to_have_text("15 min")


def test_businesses_are_listed_with_what_holds_their_calls_back(viewer: Viewer) -> None:
    breaker = {"host": "pay.example.com", "since": "2030-01-31T08:00:00Z"}
    breakers = [{**breaker, "until": "2030-01-31T08:00:21Z"}]
    changed(
        viewer.page,
        "**/v1/businesses/payments",
        lambda business: business.update(breakers=breakers, calls_in_flight=7, lane="slow"),
    )
    viewer.open()
    expect(row(viewer, "mail")).to_contain_text("paused")
    expect(row(viewer, "mail")).to_contain_text("50 calls a second")
    expect(row(viewer, "orders").locator("[data-label=Delivered]")).to_have_text("5")
    spared_row = row(viewer, "payments")
    expect(spared_row).to_contain_text("pay.example.com until 2030-01-31 16:00:21")
    expect(spared_row).to_contain_text("7 calls in flight")
    expect(spared_row).to_contain_text("slow lane")
    dead = spared_row.get_by_role("link", name="3 dead tasks of payments")
    expect(dead).to_have_attribute("href", "#/businesses/payments")
    expect(spared_row.locator("[data-label='Failed attempts']")).to_have_text("6")


def test_a_business_is_chosen_by_the_keyboard_and_left_by_the_history(viewer: Viewer) -> None:
    viewer.open()
    page = viewer.page
    expect(row(viewer, "payments")).to_be_visible()
    page.get_by_label("Business", exact=True).focus()
    page.keyboard.type("orders")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="The last hour of orders")).to_be_visible()
    expect(page.get_by_role("button", name="Show")).to_be_focused()
    expect(viewer.rows("By business")).to_have_count(1)
    expect(page.get_by_label("Business", exact=True)).to_have_value("orders")
    page.go_back()
    expect(row(viewer, "payments")).to_be_visible()


def test_the_address_can_choose_a_longer_range(viewer: Viewer) -> None:
    viewer.open("wheel?biz_type=orders")
    viewer.page.get_by_label("Looking back").select_option("24 hours")
    viewer.press("Show")
    expect(viewer.page).to_have_url(
        viewer.page.url.split("#")[0] + "#/wheel?biz_type=orders&hours=24"
    )
    expect(viewer.page.get_by_role("heading", name="The last 24 hours of orders")).to_be_visible()


def test_many_businesses_are_paged_with_their_number(viewer: Viewer) -> None:
    viewer.page.route(
        "**/v1/businesses?limit=10*",
        lambda route: route.continue_(url=route.request.url.replace("limit=10", "limit=2")),
    )
    viewer.open()
    expect(viewer.page.get_by_text("2 businesses of more")).to_be_visible()
    viewer.page.get_by_role("link", name="Next page").click()
    expect(viewer.rows("By business")).to_have_count(1)
    expect(row(viewer, "payments")).to_be_visible()
    viewer.page.go_back()
    expect(row(viewer, "mail")).to_be_visible()


def test_a_viewer_without_access_to_the_wheel_sees_the_statistics(viewer: Viewer) -> None:
    refused(viewer.page, "**/v1/wheel", 403, "The caller may not do this")
    viewer.open()
    expect(viewer.page.get_by_role("alert")).to_contain_text("The caller may not do this")
    expect(row(viewer, "orders").locator("[data-label=Delivered]")).to_have_text("5")
    expect(behind(viewer.page)).to_be_visible()


def test_the_refusal_of_a_business_replaces_its_statistics(viewer: Viewer) -> None:
    refused(viewer.page, "**/v1/businesses/orders/stats*", 403, "The caller may not do this")
    viewer.open("wheel?biz_type=orders")
    past = viewer.page.get_by_role("region", name="The last hour of orders")
    expect(past.get_by_role("alert")).to_contain_text("The caller may not do this")
    expect(ahead(viewer.page)).to_be_visible()


def test_a_business_without_readable_statistics_leaves_the_others_counted(viewer: Viewer) -> None:
    refused(viewer.page, "**/v1/businesses/mail/stats*", 500, "The service failed unexpectedly")
    viewer.open()
    expect(row(viewer, "mail")).to_contain_text("The service failed unexpectedly: So it is.")
    expect(viewer.page.get_by_text("1 of them could not be counted.")).to_be_visible()
    expect(row(viewer, "orders").locator("[data-label=Delivered]")).to_have_text("5")


def test_an_empty_list_of_businesses_is_reported(viewer: Viewer) -> None:
    no_businesses = {"businesses": [], "cursor": None}
    viewer.page.route("**/v1/businesses?*", lambda route: route.fulfill(json=no_businesses))
    viewer.open()
    expect(viewer.page.get_by_text("No business within reach has settings.")).to_be_visible()
