"""The page of a timer: its definition, its runs, its changes, and the actions on it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.console.timers_at_hand import MARKUP, PHONE, is_within, made, now_of, open_timer
from tests.console.viewer import Viewer
from tests.support.service import Service


def test_the_page_shows_the_definition_of_the_timer(viewer: Viewer, service: Service) -> None:
    headers = {"x-team": "billing"}
    timer = made(
        service,
        "said",
        name="close",
        cron="30 8 * * *",
        timezone="Europe/London",
        start_at="2030-03-30T00:00:00Z",
        max_runs=7,
        jitter_seconds=90,
        misfire="all",
        overlap="buffer_one",
        exclude=["2030-12-25"],
        retry={"attempts": 3, "delays_seconds": [30, 60]},
        expires_after_seconds=3600,
        disable_on_stop=True,
        pause_on_failures=3,
        managed_by="orders/timers",
        callback={"url": "https://example.com/hook", "method": "PUT", "headers": headers},
    )
    open_timer(viewer, timer)
    for name, value in {
        "Schedule": "30 8 * * * Europe/London",
        "Starts": "2030-03-30 08:00:00",
        "Occurrences in all": "7",
        "Jitter": "up to 1 min 30 s",
        "Misfires": "all are called, beyond a grace of 1 min",
        "Overlap": "one waits for the end of an earlier run",
        "Excluded dates": "2030-12-25",
        "Retry": "3 attempts in all, after 30 s, 1 min",
        "Expires": "1 h after it is due",
        "A stop disables it": "yes",
        "Failed runs disable it": "3 in a row",
        "Managed by": "orders/timers; its next apply undoes changes made here",
    }.items():
        expect(viewer.fact(name)).to_have_text(value)
    main = viewer.page.locator("main")
    expect(main).to_contain_text("PUT https://example.com/hook\nx-team: billing")
    expect(main.get_by_role("link", name="said")).to_have_attribute("href", "#/businesses/said")


def test_upcoming_occurrences_are_shown_in_both_zones_with_clock_changes(
    viewer: Viewer, service: Service
) -> None:
    timer = made(
        service,
        "ahead",
        cron="30 8 * * *",
        timezone="Europe/London",
        start_at="2030-03-30T00:00:00Z",
    )
    open_timer(viewer, timer)
    before, after, next_day = (viewer.rows("What is ahead").nth(number) for number in range(3))
    expect(before).to_contain_text("Sat 2030-03-30 08:30:00 +00:00")
    expect(before).to_contain_text("Sat 2030-03-30 16:30:00")
    expect(after).to_contain_text("Sun 2030-03-31 08:30:00 +01:00 clocks changed")
    expect(after).to_contain_text("Sun 2030-03-31 15:30:00")
    expect(next_day).not_to_contain_text("clocks changed")


def test_the_payload_of_a_timer_is_shown_unchanged(
    viewer: Viewer, service: Service, page: Page
) -> None:
    timer = made(service, "exact")
    payload = '{"z": 12345678901234567890, "a": [1e400, "\\u007b} \\" ,"], "z": 1.0}'
    page.request.patch(f"/v1/timers/{timer['timer_id']}", data=f'{{"payload": {payload}}}')
    open_timer(viewer, timer)
    expect(viewer.page.locator("main pre").last).to_have_text(payload)


def test_runs_show_their_outcome_and_lead_to_their_tasks(viewer: Viewer, service: Service) -> None:
    timer = made(service, "runs", every_seconds=60, max_runs=2)
    service.call("PUT", "/_local/received/runs", {"status": 410, "times": 1})
    service.advance(121)
    open_timer(viewer, timer)
    expect(viewer.rows("Runs")).to_have_count(2)
    latest, first = viewer.rows("Runs").nth(0), viewer.rows("Runs").nth(1)
    expect(latest).to_contain_text("delivered")
    expect(latest).to_contain_text("0 ms")
    expect(first).to_contain_text("dead stopped")
    counters = viewer.page.locator(".counters")
    expect(counters).to_contain_text(re.compile(r"fired\s*2"))
    expect(counters).to_contain_text(re.compile(r"dead\s*1"))
    first.get_by_role("link").click()
    expect(viewer.page).to_have_url(re.compile("#/tasks/"))


def test_runs_are_paged_and_filtered_by_status(viewer: Viewer, service: Service) -> None:
    timer = made(service, "many", every_seconds=1, max_runs=26)
    service.call("PUT", "/_local/received/many", {"status": 410, "times": 1})
    service.advance(26.5)
    open_timer(viewer, timer)
    viewer.page.get_by_role("link", name="All runs").click()
    expect(viewer.rows("Runs")).to_have_count(25)
    viewer.page.get_by_role("link", name="Next page").click()
    expect(viewer.rows("Runs")).to_have_count(1)
    viewer.page.go_back()
    expect(viewer.rows("Runs")).to_have_count(25)
    viewer.page.get_by_label("Status").select_option("dead")
    viewer.press("Show")
    expect(viewer.rows("Runs")).to_have_count(1)
    expect(viewer.rows("Runs")).to_contain_text("dead")


def test_a_timer_without_runs_is_reported(viewer: Viewer, service: Service) -> None:
    open_timer(viewer, made(service, "fresh"))
    expect(viewer.page.locator(".empty")).to_have_text("It has not run yet.")


def test_changes_show_who_when_and_what(viewer: Viewer, service: Service) -> None:
    timer = made(service, "changed")
    change = {"misfire": "all", "callback": {"url": "https://example.com/other"}}
    service.call("PATCH", f"/v1/timers/{timer['timer_id']}", change)
    open_timer(viewer, timer)
    latest, first = viewer.rows("Changes").nth(0), viewer.rows("Changes").nth(1)
    expect(latest).to_contain_text("local")
    expect(latest).to_contain_text("changed version 2")
    expect(latest).to_contain_text('misfire: "latest" → "all"')
    expect(latest).not_to_contain_text("example.com")
    expect(first).to_contain_text("every_seconds: 86400")
    expect(first.locator("time")).to_have_count(1)


def test_a_timer_is_disabled_and_enabled_after_a_confirmation(
    viewer: Viewer, service: Service
) -> None:
    timer = made(service, "switched")
    open_timer(viewer, timer)
    viewer.press("Disable")
    viewer.agree("Leave it")
    assert now_of(service, timer)["enabled"]
    viewer.press("Disable")
    expect(viewer.page.get_by_role("dialog")).to_contain_text("Nothing of it is called until")
    viewer.agree("Disable")
    assert "remind is disabled." in viewer.message()
    expect(viewer.page.locator("main h1")).to_contain_text("disabled")
    expect(viewer.page.locator("main")).to_contain_text("none of these is called")
    viewer.press("Enable")
    viewer.agree("Enable")
    expect(viewer.page.locator("main h1")).to_contain_text("enabled")
    assert now_of(service, timer)["version"] == 3


def test_a_run_by_hand_is_made_once_and_shown(viewer: Viewer, service: Service) -> None:
    timer = made(service, "by-hand", enabled=False)
    open_timer(viewer, timer)
    viewer.press("Run now")
    viewer.agree("Run now")
    expect(viewer.page.locator("#outcomes").get_by_role("link")).to_have_count(1)
    service.advance(1)
    expect(viewer.rows("Runs")).to_contain_text("by hand")
    assert len(service.received("by-hand")) == 1


def test_a_deleted_timer_keeps_its_changes(viewer: Viewer, service: Service) -> None:
    timer = made(service, "deleted")
    open_timer(viewer, timer)
    viewer.press("Delete")
    viewer.agree("Delete")
    expect(viewer.page.locator(".empty")).to_contain_text("deleted has no timers.")
    open_timer(viewer, timer)
    expect(viewer.page.locator(".empty")).to_contain_text("There is no such timer.")
    expect(viewer.rows("Changes").nth(0)).to_contain_text("deleted version 2")
    expect(viewer.page.get_by_role("heading", name="Runs")).to_be_hidden()


def test_a_timer_changed_by_another_user_is_not_disabled(viewer: Viewer, service: Service) -> None:
    timer = made(service, "raced")
    open_timer(viewer, timer)
    viewer.press("Disable")
    service.call("PATCH", f"/v1/timers/{timer['timer_id']}", {"misfire": "all"})
    viewer.agree("Disable")
    assert "version" in viewer.message()
    assert now_of(service, timer)["enabled"]
    expect(viewer.fact("Misfires")).to_contain_text("all are called")


@pytest.mark.parametrize("more", ["", "/runs", "/edit"])
@pytest.mark.parametrize("timer_id", ["1234567890", "nothing"])
def test_an_unknown_timer_is_reported_once_under_a_heading(
    viewer: Viewer, timer_id: str, more: str
) -> None:
    viewer.open(f"timers/{timer_id}{more}")
    expect(viewer.page.locator("main .empty")).to_contain_text(
        f"There is no such timer.{timer_id} is not the id of a timer."
    )
    expect(viewer.page.get_by_role("heading")).to_have_text(["Timer"])
    expect(viewer.page.get_by_role("alert")).to_have_count(0)


def test_a_failed_part_leaves_the_rest_of_the_page(
    viewer: Viewer, service: Service, page: Page
) -> None:
    timer = made(service, "partly")
    page.route(re.compile("/runs"), lambda route: route.fulfill(status=502, body=""))
    open_timer(viewer, timer)
    expect(page.locator(".problem")).to_contain_text("The service does not answer")
    expect(viewer.rows("Changes")).to_have_count(1)


def test_a_refresh_keeps_focus_and_open_details(
    viewer: Viewer, service: Service, page: Page
) -> None:
    days = [f"2030-12-{day}" for day in range(20, 27)]
    timer = made(service, "kept", every_seconds=60, max_runs=1, exclude=days)
    page.clock.install()
    open_timer(viewer, timer)
    page.get_by_text("7 dates").click()
    page.get_by_role("button", name="Run now").focus()
    service.advance(61)
    page.clock.run_for(6000)
    expect(viewer.rows("Runs")).to_have_count(1)
    expect(page.get_by_role("button", name="Run now")).to_be_focused()
    expect(page.locator("details").get_by_text("2030-12-26")).to_be_visible()


def test_markup_in_a_timer_is_shown_as_text(viewer: Viewer, service: Service) -> None:
    timer = made(
        service,
        "marked",
        name=MARKUP,
        payload={"text": MARKUP},
        callback={"url": "https://example.com/<img>", "headers": {"x-text": MARKUP}},
    )
    viewer.open("timers?biz_type=marked")
    expect(viewer.rows("Timers")).to_contain_text(MARKUP)
    open_timer(viewer, timer)
    expect(viewer.page.locator("main h1")).to_contain_text(MARKUP)
    expect(viewer.page.locator("main pre").nth(0)).to_contain_text(f"x-text: {MARKUP}")
    expect(viewer.page.locator("main pre").nth(1)).to_contain_text(MARKUP)
    expect(viewer.rows("Changes")).to_contain_text(MARKUP)
    viewer.press("Disable")
    expect(viewer.page.get_by_role("dialog")).to_contain_text(MARKUP)
    viewer.agree("Disable")
    assert MARKUP in viewer.message()
    expect(viewer.page.locator("main img, dialog img, #outcomes img")).to_have_count(0)


@pytest.mark.parametrize("more", ["", "/runs", "/edit"])
def test_a_timer_fits_a_phone(viewer: Viewer, service: Service, page: Page, more: str) -> None:
    timer = made(service, "phone", name="a" * 120, cron="0 0 3 ? * MON-FRI", payload="b" * 300)
    service.call("POST", f"/v1/timers/{timer['timer_id']}/run")
    page.set_viewport_size(PHONE)
    open_timer(viewer, timer, more)
    expect(viewer.page.locator("main h1")).to_contain_text("aaa")
    expect(viewer.page.locator("[aria-busy]")).to_have_count(0)
    assert is_within(page)


def test_a_timer_is_disabled_by_the_keyboard_alone(viewer: Viewer, service: Service) -> None:
    timer = made(service, "by-keyboard")
    open_timer(viewer, timer)
    page = viewer.page
    page.get_by_role("link", name="Edit").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Disable").press("Enter")
    assert "remind is disabled." in viewer.message()
    expect(page.get_by_role("button", name="Enable")).to_be_focused()


def test_an_action_on_a_timer_without_permission_is_reported(
    viewer: Viewer, service: Service, page: Page
) -> None:
    timer = made(service, "read-only")
    refusal = {
        "type": "urn:duewheel:problem:not-permitted",
        "title": "Not permitted",
        "status": 403,
        "detail": "This needs write on read-only.",
    }
    page.route(re.compile("/run$"), lambda route: route.fulfill(status=403, json=refusal))
    open_timer(viewer, timer)
    viewer.press("Run now")
    viewer.agree("Run now")
    assert "This needs write on read-only." in viewer.message()
    expect(page.locator("main .problem")).to_have_count(0)
