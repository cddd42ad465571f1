"""The form of a new timer, with a preview of its occurrences."""

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.console.timers_at_hand import PHONE, is_within, made, open_timer
from tests.console.viewer import Viewer
from tests.support.service import Service

AHEAD = "What is ahead"


def timers_of(service: Service, biz_type: str) -> list[dict[str, Any]]:
    return service.call("GET", f"/v1/timers?biz_type={biz_type}")[1]["timers"]


def open_rare_fields(page: Page) -> None:
    page.get_by_text("Bounds, clock changes").click()


def open_filled_form(viewer: Viewer, service: Service, biz_type: str) -> None:
    """The form of a new timer, with the required fields filled."""
    default = {"callback": {"url": f"{service.url}/_local/inbox/{biz_type}"}}
    service.call("PUT", f"/v1/businesses/{biz_type}", default)
    viewer.open(f"timers/new?biz_type={biz_type}")
    viewer.page.get_by_label("Name", exact=True).fill("close")
    viewer.page.get_by_label("interval").fill("86400")


# Creation.


def test_creating_a_timer_opens_its_page(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    viewer.open("timers/new?biz_type=made")
    page.get_by_label("Name", exact=True).fill("close")
    page.get_by_label("Cron expression").fill("30 8 * * MON-FRI")
    page.get_by_label("Time zone").fill("Europe/London")
    page.locator("[name='callback']").select_option("http")
    page.get_by_label("URL", exact=True).fill("https://example.com/hook")
    page.get_by_label("Headers").fill("x-team: billing\nx-part: a: b")
    page.get_by_label("Payload").fill('{"total": 1.0, "n": 12345678901234567890}')
    open_rare_fields(page)
    page.get_by_label("Excluded dates").fill("2030-12-25\n2030-12-26")
    page.locator("[name='retry']").select_option("delays")
    page.get_by_label("Delays (seconds)").fill("30, 60")
    viewer.press("Make the timer")
    expect(page.locator("main h1")).to_have_text("close enabled")
    expect(page.locator("main pre").last).to_have_text('{"total": 1.0, "n": 12345678901234567890}')
    (timer,) = timers_of(service, "made")
    assert timer["cron"] == "30 8 * * MON-FRI"
    assert timer["exclude"] == ["2030-12-25", "2030-12-26"]
    assert timer["retry"] == {"attempts": 3, "delays_seconds": [30, 60]}
    assert timer["callback"]["headers"] == {"x-team": "billing", "x-part": "a: b"}


def test_a_timer_is_made_by_the_keyboard_alone(viewer: Viewer, service: Service) -> None:
    service.call("PUT", "/v1/businesses/typed", {"callback": {"url": "https://example.com"}})
    page = viewer.page
    viewer.open("timers?biz_type=typed")
    page.get_by_role("link", name="New timer").press("Enter")
    viewer.field("Business").press("Tab")
    page.keyboard.type("remind")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("900")
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_have_text("remind enabled")
    (timer,) = timers_of(service, "typed")
    assert timer["every_seconds"] == 900


def test_a_timer_whose_answer_was_lost_is_not_made_twice(viewer: Viewer, service: Service) -> None:
    """So the second click of a double click makes none, however late it comes."""
    open_filled_form(viewer, service, "lost")
    viewer.lose_first_answer("/v1/timers")
    viewer.press("Make the timer")
    expect(viewer.page.get_by_role("alert").first).to_contain_text("took too long")
    viewer.press("Make the timer")
    expect(viewer.page.locator("main h1")).to_have_text("close enabled")
    assert len(timers_of(service, "lost")) == 1


def test_a_double_click_makes_one_timer(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "twice")
    page.get_by_role("button", name="Make the timer").dblclick()
    expect(page.locator("main h1")).to_have_text("close enabled")
    assert len(timers_of(service, "twice")) == 1


def test_a_timer_can_be_made_disabled(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "made-off")
    page.get_by_label("Enabled from now on").uncheck()
    viewer.press("Make the timer")
    expect(page.locator("main h1")).to_have_text("close disabled")


def test_bounds_are_read_in_the_viewers_zone(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "bounded")
    open_rare_fields(page)
    page.get_by_label("Not before").fill("2030-03-30T08:00:00")
    page.get_by_label("Occurrences in all").fill("5")
    viewer.press("Make the timer")
    expect(viewer.fact("Starts")).to_have_text("2030-03-30 08:00:00")
    (timer,) = timers_of(service, "bounded")
    assert timer["start_at"] == "2030-03-30T00:00:00.000Z"
    assert timer["max_runs"] == 5


def test_an_incomplete_bound_is_refused(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "half")
    open_rare_fields(page)
    page.get_by_label("Not before").press("1")
    viewer.press("Make the timer")
    expect(page.locator("[data-field='start_at'] .field-problem")).to_have_text(
        "Give date and time, or neither."
    )
    assert timers_of(service, "half") == []


def test_a_refusal_is_shown_at_the_field_that_it_names(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "refused")
    open_rare_fields(page)
    page.get_by_label("Put off by up to").fill("soon")
    page.get_by_text("Bounds, clock changes").click()
    viewer.press("Make the timer")
    jitter = page.locator("[data-field='jitter_seconds']")
    expect(jitter.locator(".field-problem")).to_contain_text("number")
    expect(jitter.locator("input")).to_be_focused()
    assert timers_of(service, "refused") == []


def test_a_payload_that_is_no_json_is_refused(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "no-json")
    page.get_by_label("Payload").fill('1, "enabled": false')
    viewer.press("Make the timer")
    expect(page.locator("[data-field='payload'] .field-problem")).to_contain_text("is no JSON")
    assert timers_of(service, "no-json") == []


def test_an_aws_target_is_refused_with_the_message_of_the_service(
    viewer: Viewer, service: Service
) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "aws")
    page.locator("[name='callback']").select_option("lambda")
    page.get_by_label("Function").fill("no name")
    viewer.press("Make the timer")
    expect(page.locator("[data-field='callback.function'] .field-problem")).to_be_visible()


def test_the_form_keeps_its_values_while_the_service_fails(
    viewer: Viewer, service: Service, page: Page
) -> None:
    open_filled_form(viewer, service, "down")
    page.route(re.compile("/v1/timers"), lambda route: route.fulfill(status=503, body="{}"))
    viewer.press("Make the timer")
    expect(page.get_by_text("The service cannot answer now").first).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("close")
    expect(page.get_by_role("button", name="Make the timer")).to_be_enabled()


# The preview.


def test_the_preview_follows_the_typed_schedule(viewer: Viewer) -> None:
    page = viewer.page
    viewer.open("timers/new")
    expect(page.locator(".preview")).to_contain_text("Type a schedule")
    page.get_by_label("Cron expression").press_sequentially("30 8 * * *")
    expect(viewer.rows(AHEAD)).to_have_count(10)
    page.get_by_label("Time zone").fill("Europe/London")
    open_rare_fields(page)
    page.get_by_label("Not before").fill("2030-03-30T08:00:00")
    before, after = viewer.rows(AHEAD).nth(0), viewer.rows(AHEAD).nth(1)
    expect(before).to_contain_text("Sat 2030-03-30 08:30:00 +00:00")
    expect(after).to_contain_text("Sun 2030-03-31 08:30:00 +01:00 clocks changed")
    expect(after).to_contain_text("Sun 2030-03-31 15:30:00")


def test_an_invalid_schedule_is_reported_at_its_field(viewer: Viewer) -> None:
    page = viewer.page
    viewer.open("timers/new")
    cron = page.get_by_label("Cron expression")
    cron.press_sequentially("61 8 * * *")
    note = page.locator("[data-field='cron'] .field-problem")
    expect(note).to_contain_text("61")
    expect(cron).to_be_focused()
    cron.fill("1 8 * * *")
    expect(viewer.rows(AHEAD)).to_have_count(10)
    expect(note).to_have_count(0)
    page.get_by_label("Time zone").fill("Mars")
    expect(page.locator("[data-field='timezone'] .field-problem")).to_contain_text("IANA")


def test_time_zones_are_suggested(viewer: Viewer) -> None:
    viewer.open("timers/new")
    expect(viewer.page.locator("#zones option[value='Europe/London']")).to_have_count(1)
    expect(viewer.page.locator("#zones option[value='UTC']")).to_have_count(1)


def test_an_unchanged_interval_keeps_its_start(viewer: Viewer, service: Service) -> None:
    timer = made(service, "anchored", every_seconds=86_400)
    service.advance(10)
    path = f"/v1/timers/{timer['timer_id']}/upcoming?count=1"
    (coming,) = service.call("GET", path)[1]["upcoming"]
    open_timer(viewer, timer, "/edit")
    expect(viewer.rows(AHEAD)).to_have_count(10)
    open_rare_fields(viewer.page)
    viewer.page.get_by_label("Occurrences in all").fill("3")
    expect(viewer.rows(AHEAD)).to_have_count(3)
    expect(viewer.rows(AHEAD).nth(0).locator("time").nth(0)).to_have_attribute("title", coming)
    expect(viewer.page.locator(".preview")).to_contain_text("are not taken off here")


def test_an_xtimer_cron_is_not_previewed_as_a_standard_cron(
    viewer: Viewer, service: Service
) -> None:
    # Six fields: in xTimer the last is the year, elsewhere the first is the second.
    body = {
        "app": "xtimers",
        "name": "close",
        "cron": "0 30 8 * * * *",
        "notifyHTTPParam": {"url": "https://example.com", "method": "POST", "body": "{}"},
    }
    status, answer = service.call("POST", "/api/timer/v1/def", body)
    assert status == 200, answer
    (timer,) = timers_of(service, "xtimers")
    open_timer(viewer, timer)
    expect(viewer.fact("Schedule")).to_contain_text("read as xTimer does")
    open_timer(viewer, timer, "/edit")
    expect(viewer.rows(AHEAD)).to_have_count(10)
    viewer.page.get_by_label("Time zone").fill("Europe/London")
    expect(viewer.page.locator(".preview")).to_contain_text("shows when it is saved")


def test_the_form_fits_a_phone(viewer: Viewer, page: Page) -> None:
    page.set_viewport_size(PHONE)
    viewer.open("timers/new")
    page.get_by_label("Cron expression").fill("30 8 * * *")
    open_rare_fields(page)
    page.locator("[name='retry']").select_option("backoff")
    expect(viewer.rows(AHEAD)).to_have_count(10)
    assert is_within(page)


def test_what_was_said_of_a_schedule_goes_once_it_is_corrected(
    viewer: Viewer, service: Service
) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "corrected")
    page.get_by_label("interval").fill("")
    page.get_by_label("Cron expression").fill("0 0 30 2 *")
    expect(page.locator(".field-problem")).to_have_count(1)
    viewer.press("Make the timer")
    expect(page.get_by_label("Cron expression")).to_be_focused()
    expect(page.locator(".field-problem")).to_have_count(1)
    page.get_by_label("Cron expression").fill("0 0 28 2 *")
    expect(viewer.rows(AHEAD)).to_have_count(10)
    expect(page.locator(".field-problem")).to_have_count(0)
    expect(page.locator("[aria-invalid]")).to_have_count(0)


def test_what_was_said_of_a_field_goes_when_it_is_edited(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    open_filled_form(viewer, service, "edited")
    page.get_by_label("Payload").fill("{")
    viewer.press("Make the timer")
    expect(page.locator("[data-field='payload'] .field-problem")).to_have_count(1)
    page.get_by_label("Payload").fill("{}")
    expect(page.locator(".field-problem")).to_have_count(0)
