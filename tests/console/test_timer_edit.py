"""The form that changes a timer."""

import json

from playwright.sync_api import Page, expect

from tests.console.timers_at_hand import MARKUP, made, now_of, open_timer
from tests.console.viewer import Viewer
from tests.support.service import Service


def open_rare_fields(page: Page) -> None:
    page.get_by_text("Bounds, clock changes").click()


def test_a_change_sends_only_changed_fields(viewer: Viewer, service: Service, page: Page) -> None:
    timer = made(service, "edited", start_at="2030-01-01T00:00:07Z", payload={"n": 1})
    open_timer(viewer, timer, "/edit")
    page.get_by_label("Name", exact=True).fill("close")
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        viewer.press("Save")
    assert json.loads(sent.value.post_data or "") == {"name": "close"}
    assert sent.value.headers["if-match"] == '"1"'
    expect(page.locator("main h1")).to_have_text("close enabled")
    assert "close is changed." in viewer.message()


def test_a_timer_can_change_from_an_interval_to_cron(viewer: Viewer, service: Service) -> None:
    timer = made(service, "turned")
    open_timer(viewer, timer, "/edit")
    viewer.page.get_by_label("interval").fill("")
    viewer.page.get_by_label("Cron expression").fill("0 3 * * *")
    viewer.press("Save")
    expect(viewer.fact("Schedule")).to_have_text("0 3 * * * UTC")
    assert now_of(service, timer)["every_seconds"] is None


def test_a_setting_can_be_reset_to_that_of_the_business(viewer: Viewer, service: Service) -> None:
    business = {"callback": {"url": "https://example.com"}}
    service.call("PUT", "/v1/businesses/reset", business)
    timer = made(service, "reset", retry={"attempts": 2}, grace_seconds=5, priority="high")
    page = viewer.page
    open_timer(viewer, timer, "/edit")
    page.locator("[name='callback']").select_option("")
    open_rare_fields(page)
    page.locator("[name='retry']").select_option("")
    page.get_by_label("Late is beyond").fill("")
    viewer.choose("Priority", "as the business says")
    viewer.press("Save")
    expect(viewer.fact("Retry")).to_have_text("as the business says")
    expect(viewer.fact("Priority")).to_have_text("as the business says")
    after = now_of(service, timer)
    assert after["priority"] is None
    assert (after["callback"], after["retry"], after["grace_seconds"]) == (None, None, 60)


def test_the_labels_of_a_timer_are_replaced_and_removed(viewer: Viewer, service: Service) -> None:
    timer = made(service, "labels", labels={"team": "billing"})
    for typed, shown, labels in (
        ("team:sales\norder:17", "team:sales", {"team": "sales", "order": "17"}),
        ("", "none", {}),
    ):
        open_timer(viewer, timer, "/edit")
        open_rare_fields(viewer.page)
        viewer.page.get_by_label("Labels").fill(typed)
        viewer.press("Save")
        expect(viewer.fact("Labels")).to_contain_text(shown)
        assert now_of(service, timer)["labels"] == labels


def test_a_payload_can_be_changed_as_text_but_not_removed(viewer: Viewer, service: Service) -> None:
    timer = made(service, "text", payload={"n": 1})
    page = viewer.page
    open_timer(viewer, timer, "/edit")
    page.get_by_label("Payload").fill("")
    viewer.press("Save")
    note = page.locator("[data-field='payload'] .field-problem")
    expect(note).to_contain_text("cannot be taken away")
    page.get_by_label("Payload").fill('{"n": 1e400}')
    viewer.press("Save")
    expect(page.locator("main pre").last).to_have_text('{"n": 1e400}')


def test_an_unchanged_form_sends_no_request(viewer: Viewer, service: Service) -> None:
    timer = made(service, "same", exclude=["2030-12-25"], retry={"attempts": 2})
    open_timer(viewer, timer, "/edit")
    viewer.press("Save")
    expect(viewer.page.get_by_text("Nothing is changed")).to_be_visible()
    assert now_of(service, timer)["version"] == 1


def test_two_editors_do_not_overwrite_each_other(viewer: Viewer, service: Service) -> None:
    timer = made(service, "shared")
    page = viewer.page
    open_timer(viewer, timer, "/edit")
    page.get_by_label("Name", exact=True).fill("mine")
    service.call("PATCH", f"/v1/timers/{timer['timer_id']}", {"name": "theirs"})
    viewer.press("Save")
    expect(page.get_by_text("Somebody else has changed the timer")).to_be_visible()
    assert now_of(service, timer)["name"] == "theirs"
    viewer.press("Load it again, without these changes")
    expect(page.get_by_label("Name", exact=True)).to_have_value("theirs")
    page.get_by_label("Name", exact=True).fill("mine")
    viewer.press("Save")
    expect(page.locator("main h1")).to_have_text("mine enabled")


def test_markup_in_the_form_is_shown_as_text(viewer: Viewer, service: Service) -> None:
    headers = {"x-text": MARKUP}
    callback = {"url": "https://example.com/<img>", "headers": headers}
    timer = made(service, "markup", name=MARKUP, payload=MARKUP, callback=callback)
    open_timer(viewer, timer, "/edit")
    expect(viewer.page.locator("main h1")).to_have_text(f"Change {MARKUP}")
    expect(viewer.page.get_by_label("Headers")).to_have_value(f"x-text: {MARKUP}")
    expect(viewer.page.get_by_label("Payload")).to_have_value(f'"{MARKUP}"')
    viewer.page.get_by_label("Cron expression").fill(MARKUP)
    expect(viewer.page.locator("main .field-problem")).to_have_count(1)
    expect(viewer.page.locator("main img")).to_have_count(0)
