"""The list of businesses, and the page of one: state, pause, resume, statistics, changes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from local.stack import LocalStack
from tests.console.viewer import FAILED, Viewer
from tests.support.service import Service

MARKUP = "<img src=x onerror=alert(1)>"
START_MS = 1_896_076_800_000  # 2030-01-31 08:00
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    """A stack whose clock is far from the browser's."""
    with LocalStack(frozen=True, start_ms=START_MS) as stack:
        yield stack


def configured(service: Service, name: str, **settings: object) -> None:
    status, answer = service.call("PUT", f"/v1/businesses/{name}", settings)
    assert status in (200, 201), answer


def tasks_of(service: Service, name: str, count: int, **more: object) -> list[str]:
    tasks = [service.new_task(name, biz_type=name, delay_seconds=5, **more) for _ in range(count)]
    status, answer = service.call("POST", "/v1/tasks/batch", {"tasks": tasks})
    assert status == 200
    return [result["task"]["task_id"] for result in answer["results"]]


def test_the_empty_list_of_businesses_opens_one_by_its_name(viewer: Viewer) -> None:
    viewer.open("businesses")
    expect(viewer.page.locator(".empty")).to_have_text(
        "No business has settings of its own, or has had tasks, yet."
    )
    viewer.fill("Name of a business", "unlisted")
    viewer.page.keyboard.press("Enter")
    expect(viewer.page.locator("main h1")).to_have_text("unlisted")
    expect(viewer.part("Settings that hold")).to_contain_text("no settings of its own")
    expect(viewer.part("The last 24 hours")).to_contain_text("None of its tasks has fallen due")
    expect(viewer.page.get_by_role("button", name="Delete")).to_have_count(0)
    viewer.page.get_by_role("link", name="Configure it").click()
    expect(viewer.page.get_by_role("form", name="Settings")).to_contain_text("Limits")


def test_the_list_shows_paused_businesses_limits_and_open_breakers(
    viewer: Viewer, service: Service
) -> None:
    service.call("POST", "/v1/businesses/list-paused/pause")
    configured(service, "list-limited", calls_per_second=7)
    configured(service, "list-spared", retry={"attempts": 1})
    service.call("PUT", "/_local/received/list-spared", {"status": 503})
    tasks_of(service, "list-spared", 25)
    service.advance(10)
    viewer.open("businesses")
    rows = viewer.rows("Businesses")
    expect(rows.filter(has_text="list-paused").locator(".badge.paused")).to_be_visible()
    expect(rows.filter(has_text="list-limited")).to_contain_text("main")
    expect(rows.filter(has_text="list-limited")).to_contain_text("7")
    expect(rows.filter(has_text="list-spared")).to_contain_text("1 open 127.0.0.1")
    rows.get_by_role("link", name="list-spared").click()
    spared = viewer.rows("Breakers")
    expect(spared.locator("td").first).to_contain_text("127.0.0.1")
    expect(spared.locator("time")).to_have_count(2)
    viewer.press("Probe now")
    viewer.agree("Probe it")
    assert "The next task of list-spared that is due tries 127.0.0.1" in viewer.message()
    (breaker,) = service.call("GET", "/v1/businesses/list-spared")[1]["breakers"]
    assert breaker["until"] == "2030-01-31T08:00:10.000Z"


def test_the_list_is_paged_forwards_and_backwards(viewer: Viewer, service: Service) -> None:
    for number in range(51):
        configured(service, f"paged-{number:02d}")
    viewer.open("businesses")
    expect(viewer.rows("Businesses")).to_have_count(50)
    viewer.page.get_by_role("link", name="Next page").click()
    expect(viewer.page.get_by_role("link", name="First page")).to_be_visible()
    expect(viewer.page.get_by_role("link", name="paged-50")).to_be_visible()
    viewer.page.go_back()
    expect(viewer.rows("Businesses")).to_have_count(50)


def test_a_failed_list_is_reported_and_a_business_can_be_opened_by_its_name(viewer: Viewer) -> None:
    viewer.answer("/v1/businesses", 500, FAILED)
    viewer.open("businesses")
    expect(viewer.page.get_by_role("alert")).to_contain_text("The service failed unexpectedly")
    expect(viewer.page.get_by_label("Name of a business")).to_be_visible()


def test_an_impossible_name_is_refused_with_the_message_of_the_service(viewer: Viewer) -> None:
    viewer.open("businesses")
    viewer.fill("Name of a business", MARKUP)
    viewer.press("Open")
    expect(viewer.page.get_by_role("alert")).to_contain_text("invalid-field")


def test_a_pause_parks_and_a_resume_calls(viewer: Viewer, service: Service) -> None:
    configured(service, "steered", calls_per_second=20)
    (parked,) = tasks_of(service, "steered", 1)
    viewer.open("businesses/steered")
    viewer.press("Pause")
    expect(viewer.dialog()).to_contain_text("Parked tasks stay pending")
    viewer.agree("Pause")
    expect(viewer.outcome()).to_contain_text("steered is paused.")
    expect(viewer.fact("Its tasks are")).to_contain_text("paused")
    expect(viewer.page.get_by_role("button", name="Resume")).to_be_focused()
    expect(viewer.rows("Changes").first).to_contain_text("paused version 2")
    service.advance(30)
    assert service.received("steered") == []
    viewer.press("Resume")
    expect(viewer.dialog()).to_contain_text("at its 20 calls a second")
    viewer.agree("Resume")
    expect(viewer.fact("Its tasks are")).to_have_text("called when they fall due")
    service.advance(120)
    assert service.task({"task_id": parked})["status"] == "delivered"


def test_a_declined_action_is_not_carried_out(viewer: Viewer, service: Service) -> None:
    configured(service, "left")
    viewer.open("businesses/left")
    viewer.press("Pause")
    viewer.agree("Leave it")
    expect(viewer.button("Pause")).to_be_focused()
    assert service.call("GET", "/v1/businesses/left")[1]["version"] == 1


def test_the_keyboard_alone_pauses_a_business(viewer: Viewer, service: Service) -> None:
    configured(service, "typed")
    viewer.open("businesses/typed")
    pause = viewer.button("Pause")
    expect(pause).to_be_visible()
    for _ in range(30):
        viewer.page.keyboard.press("Tab")
        if pause.evaluate("button => button === document.activeElement"):
            break
    viewer.page.keyboard.press("Enter")
    viewer.page.keyboard.press("Tab")  # from "Leave it"
    viewer.page.keyboard.press("Enter")
    expect(viewer.fact("Its tasks are")).to_contain_text("paused")


def test_a_refused_pause_shows_the_reason(viewer: Viewer, service: Service) -> None:
    configured(service, "refused")
    viewer.answer("/v1/businesses/refused/pause", 500, FAILED)
    viewer.open("businesses/refused")
    viewer.press("Pause")
    viewer.agree("Pause")
    expect(viewer.outcome()).to_contain_text("The service failed unexpectedly: Look at the log.")
    expect(viewer.button("Pause")).to_be_visible()


def test_settings_are_distinguished_from_defaults_and_shown_as_text(
    viewer: Viewer, service: Service
) -> None:
    configured(
        service,
        "told",
        callback={"url": "https://example.com/hook", "headers": {"x-note": MARKUP}},
        retry={"delays_seconds": [5, 90]},
        on_outcome={
            "outcomes": ["dead"],
            "callback": {"url": "https://example.com/dead?a=" + "x" * 200},
        },
        signing_secrets=["whsec_" + "A" * 32],
    )
    viewer.open("businesses/told")
    expect(viewer.fact("Callback")).to_contain_text("http https://example.com/hook own")
    expect(viewer.fact("Callback")).to_contain_text(f"x-note: {MARKUP}")
    expect(viewer.fact("Retries")).to_have_text("3 attempts, waiting 5 s, 1 min 30 s own")
    expect(viewer.fact("Ended tasks are kept")).to_have_text("30 days · service default")
    expect(viewer.fact("Signing secrets")).to_have_text("whsec_…AAAA own")
    changed = viewer.rows("Changes").first
    expect(changed).to_contain_text("local")
    expect(changed).to_contain_text('retry: {"attempts":3,"delays_seconds":[5,90]}')
    expect(viewer.page.locator("main img")).to_have_count(0)


def test_statistics_cover_the_last_day_by_the_clock_of_the_service(
    viewer: Viewer, service: Service
) -> None:
    service.advance((60_000 - service.now_ms() % 60_000) / 1000)  # all of it in one minute
    configured(service, "counted", calls_per_second=2, retry={"attempts": 1})
    tasks_of(service, "counted", 6)
    service.advance(30)
    service.call("PUT", "/_local/received/counted", {"status": 503})
    tasks_of(service, "counted", 2)
    service.advance(240)
    viewer.open("businesses/counted")
    figures = viewer.page.locator(".figures li")
    expect(figures).to_have_text(
        ["8 fell due", "6 delivered", "0 still pending", "2 dead", "0 expired", "0 cancelled",
         "2 failed attempts"]
    )  # fmt: skip
    expect(viewer.rows("Limits").first).to_contain_text(
        "in the busiest minute of the last hour (7 % of the limit)"
    )
    part = viewer.part("The last 24 hours")
    expect(part).to_contain_text("only tasks that are still pending change the figures")
    told = part.locator(".readout").first
    expect(told).to_contain_text("6 delivered, 2 dead, 2 failed attempts")
    expect(told.get_by_role("link", name="tasks due then")).to_be_visible()
    viewer.page.get_by_role("slider", name="What became of the tasks").press("Home")
    expect(told).to_contain_text("nothing")
    viewer.page.locator("summary", has_text="As a table").first.click()
    expect(viewer.rows("What became of the tasks")).to_have_count(1)


def test_failed_statistics_leave_the_rest_of_the_page(viewer: Viewer, service: Service) -> None:
    configured(service, "uncounted")
    viewer.answer("/v1/businesses/uncounted/stats", 500, FAILED)
    viewer.open("businesses/uncounted")
    day = viewer.part("The last 24 hours")
    expect(day.get_by_role("alert")).to_contain_text("The service failed unexpectedly")
    expect(viewer.fact("Its tasks are")).to_be_visible()
    expect(viewer.rows("Changes")).to_have_count(1)


def test_a_refresh_keeps_focus_and_open_details_and_the_last_values(
    viewer: Viewer, service: Service
) -> None:
    configured(service, "refreshed")
    tasks_of(service, "refreshed", 1)
    service.advance(30)
    viewer.page.clock.install()
    viewer.open("businesses/refreshed")
    viewer.page.locator("summary", has_text="As a table").first.click()
    viewer.page.get_by_role("button", name="Delete").focus()
    service.call("POST", "/v1/businesses/refreshed/pause")
    viewer.page.clock.run_for(31_000)
    expect(viewer.fact("Its tasks are")).to_contain_text("paused")
    expect(viewer.rows("Changes")).to_have_count(2)
    expect(viewer.page.get_by_role("button", name="Delete")).to_be_focused()
    expect(viewer.rows("What became of the tasks").first).to_be_visible()
    viewer.answer("/v1/businesses/refreshed", 500, FAILED)
    viewer.page.clock.run_for(6_000)
    expect(viewer.part("State").get_by_role("alert")).to_contain_text("failed unexpectedly")
    expect(viewer.fact("Its tasks are")).to_contain_text("paused")


def test_a_business_that_only_has_tasks_is_listed_and_shown_like_any_other(
    viewer: Viewer, service: Service
) -> None:
    tasks_of(service, "just-tasked", 1)
    service.advance(300)
    viewer.open("businesses")
    row = viewer.rows("Businesses").filter(has_text="just-tasked")
    expect(row).to_contain_text("none of its own")
    expect(row.locator("time")).to_have_count(1)
    row.get_by_role("link", name="just-tasked").click()
    expect(viewer.fact("Breakers")).to_have_text("none open: no host is blocked")
    expect(viewer.fact("Last task")).to_contain_text("in the minute of")
    expect(viewer.fact("The service")).to_contain_text("dispatches on time")
    expect(viewer.part("Settings that hold")).to_contain_text("no settings of its own")
    expect(viewer.page.get_by_role("button", name="Delete")).to_have_count(0)
    viewer.page.get_by_role("link", name="Configure it").click()
    viewer.press("Save")
    expect(viewer.page.get_by_role("button", name="Delete")).to_be_visible()


def test_the_limits_show_how_much_of_each_is_used(viewer: Viewer, service: Service) -> None:
    configured(service, "limited", calls_per_second=0.1)
    tasks_of(service, "limited", 3)
    configured(service, "limited", creates_per_second=0.05)
    service.advance(5)  # the settings hold
    tasks_of(service, "limited", 1)
    service.advance(10)
    viewer.open("businesses/limited")
    rows = viewer.rows("Limits")
    expect(rows.nth(0)).to_contain_text("tasks wait in its line")
    expect(rows.nth(1)).to_contain_text("no limit to be used")
    expect(rows.nth(2)).to_contain_text("1 taken, all are free in")
    expect(viewer.part("The last 24 hours")).not_to_contain_text("not counted")


@pytest.mark.parametrize("path", ["businesses", "businesses/narrow", "businesses/nobody"])
def test_the_pages_fit_a_phone(viewer: Viewer, service: Service, path: str) -> None:
    long = "https://example.com/" + "x" * 300
    service.call("PUT", "/v1/businesses/narrow", {"callback": {"url": long}})
    viewer.page.set_viewport_size(PHONE)
    viewer.open(path)
    expect(viewer.page.locator("[aria-busy]")).to_have_count(0)
    assert viewer.has_room()


def test_a_flow_key_is_paused_and_resumed(viewer: Viewer, service: Service) -> None:
    service.call("PUT", "/v1/businesses/keyed", {"retention_days": 7})
    viewer.open("businesses/keyed")
    viewer.press("Pause a flow key")
    viewer.field("Flow key").fill("customer-7")
    viewer.page.locator("dialog button.primary").click()
    expect(viewer.fact("Paused flow keys").first).to_contain_text("customer-7")
    viewer.press("Resume it")
    viewer.page.locator("dialog button.primary").click()
    expect(viewer.page.get_by_text("customer-7 is resumed.")).to_be_visible()
    assert service.call("GET", "/v1/businesses/keyed")[1]["paused_flow_keys"] == []
