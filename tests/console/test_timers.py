"""The list of a business's timers."""

import re

from playwright.sync_api import Page, expect

from tests.console.timers_at_hand import PHONE, is_within, made
from tests.console.viewer import Viewer
from tests.support.service import Service


def test_timers_are_listed_by_business_and_lead_to_their_pages(
    viewer: Viewer, service: Service
) -> None:
    made(service, "listed", name="close", cron="30 2 * * MON-FRI", timezone="Europe/London")
    made(service, "listed", name="remind", every_seconds=600, enabled=False)
    viewer.open("timers")
    viewer.fill("Business", "listed")
    viewer.press("Show")
    close, remind = viewer.rows("Timers").nth(0), viewer.rows("Timers").nth(1)
    expect(close).to_contain_text("30 2 * * MON-FRI Europe/London")
    expect(close.locator("time")).to_have_count(1)
    expect(remind).to_contain_text("every 10 min")
    expect(remind.locator(".badge")).to_have_text("disabled")
    close.get_by_role("link").click()
    expect(viewer.page.locator("main h1")).to_have_text("close enabled")


def test_timers_are_filtered_by_name_prefix_and_state(viewer: Viewer, service: Service) -> None:
    for name, is_enabled in (("close a", False), ("close b", True), ("close b2", False)):
        made(service, "filtered", name=name, enabled=is_enabled)
    viewer.open("timers?biz_type=filtered")
    expect(viewer.rows("Timers")).to_have_count(3)
    viewer.page.get_by_label("Name begins with").fill("close b")
    viewer.page.get_by_label("State").select_option("disabled")
    viewer.press("Show")
    expect(viewer.rows("Timers")).to_have_count(1)
    expect(viewer.rows("Timers")).to_contain_text("close b2")
    viewer.page.go_back()
    expect(viewer.rows("Timers")).to_have_count(3)


def test_timers_are_filtered_by_a_click_on_a_label(viewer: Viewer, service: Service) -> None:
    made(service, "labelled", name="close", labels={"team": "billing"})
    made(service, "labelled", name="remind")
    viewer.open("timers?biz_type=labelled")
    expect(viewer.rows("Timers")).to_have_count(2)
    viewer.page.get_by_role("link", name="team:billing").click()
    expect(viewer.rows("Timers")).to_have_count(1)
    expect(viewer.page.get_by_label("Labels")).to_have_value("team:billing")


def test_timers_are_paged_forwards_and_backwards(viewer: Viewer, service: Service) -> None:
    for number in range(26):
        made(service, "paged", name=f"timer {number:02}")
    viewer.open("timers?biz_type=paged")
    viewer.page.get_by_role("link", name="Next page").click()
    expect(viewer.rows("Timers")).to_have_count(1)
    expect(viewer.rows("Timers")).to_contain_text("timer 25")
    viewer.page.go_back()
    expect(viewer.rows("Timers")).to_have_count(25)


def test_the_timers_of_all_businesses_are_listed_until_one_is_named(
    viewer: Viewer, service: Service
) -> None:
    for name in ("all-a", "all-b"):
        service.call("PUT", f"/v1/businesses/{name}", {})
        made(service, name, name="close", labels={"of": "all"})
    viewer.open("timers?label=of:all")
    expect(viewer.rows("Timers")).to_have_count(2)
    viewer.page.locator("main").get_by_role("link", name="all-b").click()
    expect(viewer.rows("Timers")).to_have_count(1)
    expect(viewer.field("Business")).to_have_value("all-b")


def test_an_empty_list_of_timers_leads_to_the_form(viewer: Viewer) -> None:
    viewer.open("timers?biz_type=bare")
    expect(viewer.page.locator(".empty")).to_contain_text("bare has no timers.")
    viewer.page.get_by_role("link", name="Make one").click()
    expect(viewer.field("Business")).to_have_value("bare")


def test_a_refused_list_shows_the_reason(viewer: Viewer) -> None:
    viewer.open("timers?biz_type=No+Such")
    expect(viewer.page.locator(".problem")).to_contain_text("biz_type")


def test_the_list_is_kept_while_the_service_fails(
    viewer: Viewer, service: Service, page: Page
) -> None:
    made(service, "failing")
    page.clock.install()
    viewer.open("timers?biz_type=failing")
    expect(viewer.rows("Timers")).to_have_count(1)
    page.route(re.compile("/v1/timers"), lambda route: route.fulfill(status=503, body="{}"))
    page.clock.run_for(6000)
    expect(page.locator(".problem")).to_contain_text("The service cannot answer now")
    expect(viewer.rows("Timers")).to_have_count(1)
    page.unroute_all()
    page.clock.run_for(6000)
    expect(page.locator(".problem")).to_have_count(0)


def test_the_list_fits_a_phone(viewer: Viewer, service: Service, page: Page) -> None:
    made(service, "phone-list", name="a" * 120, cron="0 0 3 ? * MON-FRI")
    page.set_viewport_size(PHONE)
    viewer.open("timers?biz_type=phone-list")
    expect(viewer.rows("Timers")).to_have_count(1)
    assert is_within(page)
