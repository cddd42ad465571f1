"""The page of the wheel: the pointers, the next hour, what became of tasks, who is held back."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from local.stack import LocalStack
from tests.console.viewer import Viewer
from tests.support.service import Service

CROWD = 100  # a batch of 64 and more is noted by its exact number
REFRESH_MS = 2500
UNANSWERED = "Failed to load resource: net::ERR_FAILED"
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def crowded_at(stack: LocalStack) -> str:
    """Three businesses with something of everything behind them, and a crowd ahead on a second."""
    service = Service(stack.url)
    ladder = {"attempts": 2, "delays_seconds": [5]}
    for name in ("mail", "orders", "payments"):
        settings = {"callback": {"url": f"{stack.url}/_local/inbox/{name}"}, "retry": ladder}
        assert service.call("PUT", f"/v1/businesses/{name}", settings)[0] == 201
    service.call("PUT", "/v1/businesses/mail", {"lane": "slow", "calls_per_second": 50})
    service.call("PUT", "/_local/received/payments", {"status": 503})
    soon = [{"biz_type": "orders", "delay_seconds": 10} for _ in range(5)]
    failing = [{"biz_type": "payments", "delay_seconds": 10} for _ in range(3)]
    service.call("POST", "/v1/tasks/batch", {"tasks": soon + failing})
    service.advance(30)
    service.call("POST", "/v1/businesses/mail/pause")
    second = service.now_ms() // 1000 + 1800
    due_at = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    crowd = [{"biz_type": "orders", "due_at": due_at} for _ in range(CROWD)]
    assert service.call("POST", "/v1/tasks/batch", {"tasks": crowd})[0] == 200
    return due_at


@pytest.fixture(autouse=True)
def _of_the_story(crowded_at: str) -> None:
    """Every test begins where the story has led."""


def changed(page: Page, pattern: str, change: Callable[[dict[str, Any]], None]) -> None:
    """What the service answers, changed on its way."""

    def answer(route: Route) -> None:
        reply = route.fetch()
        members = reply.json()
        change(members)
        route.fulfill(response=reply, body=json.dumps(members))

    page.route(pattern, answer)


def refused(page: Page, pattern: str, status: int, title: str) -> None:
    body = {"type": "urn:duewheel:problem:not-permitted", "title": title, "detail": "So it is."}
    page.route(pattern, lambda route: route.fulfill(status=status, json={**body, "status": status}))


def ahead(page: Page) -> Locator:
    return page.get_by_role("slider", name="Tasks expected in the next hour")


def behind(page: Page) -> Locator:
    return page.get_by_role("slider", name="What became of the tasks")


def readout(page: Page, section: str) -> Locator:
    return page.get_by_role("region", name=section, exact=True).locator(".readout")


def row(viewer: Viewer, name: str) -> Locator:
    return viewer.rows("By business").filter(has_text=name)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_the_pointers_move_on_with_the_service(viewer: Viewer, service: Service) -> None:
    viewer.page.clock.install()
    viewer.open()
    now = viewer.fact("Now").locator("time")
    expect(viewer.fact("Sweep pointer")).to_contain_text("lag")
    expect(viewer.fact("Profile")).to_have_text("precise")
    expect(viewer.fact("Leader")).to_have_text("nobody")
    seen = now.get_attribute("title")
    service.advance(5)
    viewer.page.clock.fast_forward(REFRESH_MS)
    expect(now).not_to_have_attribute("title", seen or "")
    expect(viewer.fact("Time pointer")).to_contain_text("lag 0 s")


def test_a_time_pointer_that_lags_is_said_to_be_behind(viewer: Viewer) -> None:
    changed(viewer.page, "**/v1/wheel", lambda wheel: wheel["time_pointer"].update(lag_seconds=75))
    viewer.open()
    expect(viewer.fact("Time pointer")).to_contain_text("lag 1 min 15 s behind")


def test_the_most_crowded_second_of_the_next_hour_is_told_at_first(
    viewer: Viewer, crowded_at: str
) -> None:
    viewer.open()
    expect(readout(viewer.page, "The next hour")).to_contain_text(f"{CROWD} tasks expected")
    expect(ahead(viewer.page)).to_have_attribute(
        "aria-valuetext", f"{in_shanghai(crowded_at)}: {CROWD} tasks expected"
    )


def test_a_second_is_told_under_the_mouse_and_kept_by_a_click(viewer: Viewer) -> None:
    def two_more(wheel: dict[str, Any]) -> None:
        at = wheel["forecast"]["minutes"][0]["at"]
        wheel["forecast"]["minutes"] = [{"at": at, "tasks": 9, "seconds": {"0": 7, "59": 2}}]

    changed(viewer.page, "**/v1/wheel", two_more)
    viewer.open()
    told = readout(viewer.page, "The next hour")
    expect(told).to_contain_text("7 tasks expected")
    box = ahead(viewer.page).bounding_box()
    assert box is not None
    far_right = {"x": box["width"] - 5, "y": 20}
    ahead(viewer.page).hover(position=far_right)
    expect(told).to_contain_text("2 tasks expected")
    viewer.page.get_by_role("heading", name="Wheel").hover()
    expect(told).to_contain_text("7 tasks expected")
    ahead(viewer.page).click(position=far_right)
    viewer.page.get_by_role("heading", name="Wheel").hover()
    expect(told).to_contain_text("2 tasks expected")


def test_the_keyboard_goes_through_the_seconds_and_on_to_their_tasks(
    viewer: Viewer, crowded_at: str
) -> None:
    def one_before(wheel: dict[str, Any]) -> None:
        (minute,) = wheel["forecast"]["minutes"]
        second = int(crowded_at[17:19])
        minute["seconds"] = {str(second - 1 if second else 1): 3, **minute["seconds"]}

    changed(viewer.page, "**/v1/wheel", one_before)
    viewer.open("wheel?biz_type=orders")
    told = readout(viewer.page, "The next hour")
    expect(told).to_contain_text(f"{CROWD} tasks expected")
    ahead(viewer.page).focus()
    page = viewer.page
    page.keyboard.press("Home" if crowded_at[17:19] != "00" else "End")
    expect(told).to_contain_text("3 tasks expected")
    page.keyboard.press("ArrowRight" if crowded_at[17:19] != "00" else "ArrowLeft")
    expect(told).to_contain_text(f"{CROWD} tasks expected")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("header a[aria-current]")).to_have_text("Tasks")
    query = page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.split('?')[1]))")
    from_ms = datetime.fromisoformat(query["due_from"]).timestamp() * 1000
    assert query["biz_type"] == "orders"
    assert from_ms == datetime.fromisoformat(crowded_at).timestamp() * 1000
    assert datetime.fromisoformat(query["due_to"]).timestamp() * 1000 == from_ms + 1000


def test_the_next_hour_reads_as_a_table(viewer: Viewer, crowded_at: str) -> None:
    viewer.open("wheel?biz_type=orders")
    viewer.page.get_by_text("As a table").first.click()
    (minute,) = viewer.rows("The next hour").all()
    expect(minute).to_contain_text(f":{crowded_at[17:19]} {CROWD}")
    expect(minute.get_by_role("link").first).to_have_attribute(
        "href", f"#/tasks?{tasks_of_minute(crowded_at)}"
    )


def test_an_hour_without_tasks_is_said_to_be_empty(viewer: Viewer) -> None:
    none = {"tasks": 0, "minutes": []}
    changed(viewer.page, "**/v1/wheel", lambda wheel: wheel.update(forecast=none))
    viewer.open("wheel?biz_type=nobody-uses-this")
    expect(viewer.page.get_by_text("Nothing is known to come up in the next hour.")).to_be_visible()
    expect(viewer.page.get_by_text("No task came up.")).to_be_visible()
    expect(row(viewer, "nobody-uses-this")).to_contain_text("no settings")


def test_what_became_of_tasks_stands_by_minute_in_a_chart_and_in_a_table(viewer: Viewer) -> None:
    viewer.open()
    told = readout(viewer.page, "The last hour")
    expect(told).to_contain_text("failed attempt")
    viewer.page.get_by_text("As a table").last.click()
    rows = viewer.rows("What became of the tasks")
    delivered = rows.filter(has_text="5").last
    expect(delivered.locator("[data-label=delivered]")).to_have_text("5")
    expect(delivered.locator("[data-label=dead]")).to_have_text("3")
    behind(viewer.page).focus()
    viewer.page.keyboard.press("Home")
    expect(told).to_contain_text("nothing")


@pytest.mark.parametrize(("hours", "minutes"), [(1, 1), (6, 5), (24, 15)])
def test_longer_times_are_drawn_in_coarser_bins(viewer: Viewer, hours: int, minutes: int) -> None:
    viewer.open(f"wheel?biz_type=orders&hours={hours}")
    last = behind(viewer.page)
    expect(last).to_be_visible()
    points = int(last.get_attribute("aria-valuemax") or 0) + 1
    assert points in (hours * 60 // minutes, hours * 60 // minutes + 1)
    expect(readout(viewer.page, heading_of(hours))).to_contain_text("5 delivered")


def test_lateness_is_told_as_far_as_classes_tell(viewer: Viewer) -> None:
    def late(statistics: dict[str, Any]) -> None:
        counts = {"up_to_10_ms": 90, "up_to_500_ms": 9, "later": 1}
        for minute in statistics["minutes"]:
            minute["lateness"] = {"sum_ms": 0, "max_ms": 900_000, "counts": counts}

    changed(viewer.page, "**/stats?*", late)
    viewer.open("wheel?biz_type=orders")
    for name, said in (("p50", "up to 10 ms"), ("p90", "up to 10 ms"), ("p99", "up to 500 ms")):
        expect(viewer.fact(name)).to_have_text(said)
    expect(viewer.fact("Max")).to_have_text("15 min")


def test_businesses_stand_side_by_side_with_what_holds_them_back(viewer: Viewer) -> None:
    breaker = {"host": "pay.example.com", "since": "2030-01-31T08:00:00Z"}
    spared = [{**breaker, "until": "2030-01-31T08:00:21Z"}]
    changed(
        viewer.page,
        "**/v1/businesses/payments",
        lambda business: business.update(breakers=spared, calls_in_flight=7),
    )
    viewer.open()
    expect(row(viewer, "mail")).to_contain_text("paused")
    expect(row(viewer, "mail")).to_contain_text("slow lane, by setting")
    expect(row(viewer, "mail")).to_contain_text("50 calls a second")
    expect(row(viewer, "orders").locator("[data-label=Delivered]")).to_have_text("5")
    spared_row = row(viewer, "payments")
    expect(spared_row).to_contain_text("pay.example.com until 2030-01-31 16:00:21")
    expect(spared_row).to_contain_text("7 calls in flight")
    dead = spared_row.get_by_role("link", name="3 dead tasks of payments")
    expect(dead).to_have_attribute("href", "#/businesses/payments")
    expect(spared_row.locator("[data-label='Failed attempts']")).to_have_text("6")


def test_a_business_is_chosen_by_the_keyboard_alone_and_left_by_the_way_back(
    viewer: Viewer,
) -> None:
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


def test_a_longer_time_is_chosen_in_the_address(viewer: Viewer) -> None:
    viewer.open("wheel?biz_type=orders")
    viewer.page.get_by_label("Looking back").select_option("24 hours")
    viewer.press("Show")
    expect(viewer.page).to_have_url(
        viewer.page.url.split("#")[0] + "#/wheel?biz_type=orders&hours=24"
    )
    expect(viewer.page.get_by_role("heading", name="The last 24 hours of orders")).to_be_visible()


def test_many_businesses_are_shown_by_pages_that_say_how_many(viewer: Viewer) -> None:
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


def test_who_may_not_see_the_wheel_sees_the_statistics_all_the_same(viewer: Viewer) -> None:
    refused(viewer.page, "**/v1/wheel", 403, "The caller may not do this")
    viewer.open()
    expect(viewer.page.get_by_role("alert")).to_contain_text("The caller may not do this")
    expect(row(viewer, "orders").locator("[data-label=Delivered]")).to_have_text("5")
    expect(behind(viewer.page)).to_be_visible()


def test_a_business_that_may_not_be_seen_is_refused_in_its_own_place(viewer: Viewer) -> None:
    refused(viewer.page, "**/v1/businesses/orders/stats*", 403, "The caller may not do this")
    viewer.open("wheel?biz_type=orders")
    past = viewer.page.get_by_role("region", name="The last hour of orders")
    expect(past.get_by_role("alert")).to_contain_text("The caller may not do this")
    expect(ahead(viewer.page)).to_be_visible()


def test_a_business_that_cannot_be_counted_leaves_the_others_counted(viewer: Viewer) -> None:
    refused(viewer.page, "**/v1/businesses/mail/stats*", 500, "The service failed unexpectedly")
    viewer.open()
    expect(row(viewer, "mail")).to_contain_text("The service failed unexpectedly: So it is.")
    expect(viewer.page.get_by_text("1 of them could not be counted.")).to_be_visible()
    expect(row(viewer, "orders").locator("[data-label=Delivered]")).to_have_text("5")


def test_where_there_is_no_business_it_is_said(viewer: Viewer) -> None:
    nobody = {"businesses": [], "cursor": None}
    viewer.page.route("**/v1/businesses?*", lambda route: route.fulfill(json=nobody))
    viewer.open()
    expect(viewer.page.get_by_text("No business within reach has settings.")).to_be_visible()


def test_what_was_seen_last_stays_while_the_service_does_not_answer(
    viewer: Viewer, complaints: list[str]
) -> None:
    viewer.page.clock.install()
    viewer.open()
    expect(viewer.fact("Now")).to_be_visible()
    viewer.page.route("**/v1/wheel", lambda route: route.abort())
    viewer.page.clock.fast_forward(REFRESH_MS)
    expect(viewer.page.get_by_role("alert")).to_contain_text("The service does not answer")
    expect(viewer.fact("Last seen")).to_be_visible()
    viewer.page.unroute("**/v1/wheel")
    viewer.page.clock.fast_forward(REFRESH_MS)
    expect(viewer.fact("Now")).to_be_visible()
    expect(viewer.page.locator("main .problem")).to_have_count(0)
    assert set(complaints) == {UNANSWERED}
    complaints.clear()


def test_a_refresh_keeps_the_focus_and_what_is_open(viewer: Viewer, service: Service) -> None:
    page = viewer.page
    page.clock.install()
    viewer.open()
    now = viewer.fact("Now").locator("time")
    seen = now.get_attribute("title")
    page.get_by_text("As a table").first.click()
    ahead(page).focus()
    service.advance(2)
    page.clock.fast_forward(REFRESH_MS)
    expect(now).not_to_have_attribute("title", seen or "")
    expect(ahead(page)).to_be_focused()
    expect(viewer.rows("The next hour")).to_have_count(1)
    expect(viewer.rows("The next hour").first).to_be_visible()


def test_an_audit_is_made_when_it_is_asked_for(viewer: Viewer) -> None:
    asked: list[float] = []

    def shortened(route: Route) -> None:
        query = dict(parse_qsl(route.request.url.split("?")[1]))
        asked.extend(datetime.fromisoformat(query[name]).timestamp() for name in ("from", "to"))
        a_minute = datetime.fromtimestamp(asked[1] - 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        url = route.request.url.split("?")[0]
        route.continue_(url=f"{url}?{urlencode({**query, 'from': a_minute})}")

    viewer.page.route("**/v1/audit*", shortened)  # emulators take their time for an hour
    viewer.open()
    expect(viewer.fact("Now")).to_be_visible()
    viewer.press("Audit the last hour")
    expect(viewer.page.get_by_text("Nothing found: every task is in an honest")).to_be_visible()
    expect(viewer.page.get_by_text("in 60 seconds")).to_be_visible()
    assert asked[1] - asked[0] == 3600


def test_an_audit_goes_on_to_its_end_and_lists_its_findings(viewer: Viewer) -> None:
    finding = {
        "wrong": "passed", "detail": MARKUP, "task_id": "AQG5", "biz_type": "orders",
        "at": MARKUP, "attribute": None,
    }  # fmt: skip
    bounds = {"from": "2030-01-31T08:00:00Z", "to": "2030-01-31T09:00:00Z"}
    page_of = {**bounds, "checked": {"seconds": 1800, "items": 4}, "findings": [finding]}

    def audit(route: Route) -> None:
        is_second = "cursor=more" in route.request.url
        route.fulfill(json={**page_of, "cursor": None if is_second else "more"})

    viewer.page.route("**/v1/audit*", audit)
    viewer.open()
    viewer.press("Audit the last hour")
    expect(viewer.rows("Findings")).to_have_count(2)
    expect(viewer.page.get_by_text("2 found.")).to_be_visible()
    expect(viewer.page.get_by_text("8 items in 3,600 seconds")).to_be_visible()
    expect(viewer.rows("Findings").first).to_contain_text(MARKUP)
    expect(viewer.page.get_by_role("link", name="AQG5").first).to_have_attribute(
        "href", "#/tasks/AQG5"
    )


def test_an_audit_that_is_refused_says_so(viewer: Viewer) -> None:
    refused(viewer.page, "**/v1/audit*", 403, "The caller may not do this")
    viewer.open()
    viewer.press("Audit the last hour")
    audit = viewer.page.get_by_role("region", name="Audit")
    expect(audit.get_by_role("alert")).to_contain_text("The caller may not do this")


def test_markup_is_shown_and_not_run(viewer: Viewer) -> None:
    changed(viewer.page, "**/v1/wheel", lambda wheel: wheel.update(leader=MARKUP, profile=MARKUP))
    breakers = [{"host": MARKUP, "since": None, "until": "2030-01-31T08:00:21Z"}]
    changed(viewer.page, "**/v1/businesses/mail", lambda mail: mail.update(breakers=breakers))
    refused(viewer.page, "**/v1/businesses/orders/stats*", 500, MARKUP)
    viewer.open()
    expect(viewer.fact("Leader")).to_have_text(MARKUP)
    expect(viewer.fact("Profile")).to_have_text(MARKUP)
    expect(row(viewer, "mail")).to_contain_text(MARKUP)
    expect(row(viewer, "orders")).to_contain_text(MARKUP)
    viewer.open(f"wheel?biz_type={MARKUP}&hours={MARKUP}")
    expect(viewer.page.get_by_role("heading", name=f"The last hour of {MARKUP}")).to_be_visible()
    expect(viewer.page.locator("main img")).to_have_count(0)


def test_the_page_fits_a_phone(viewer: Viewer) -> None:
    page = viewer.page
    page.set_viewport_size({"width": 360, "height": 740})
    viewer.open("wheel?biz_type=orders")
    expect(behind(page)).to_be_visible()
    expect(ahead(page)).to_be_visible()
    for fold in page.get_by_text("As a table").all():
        fold.click()
    assert fits(page)
    viewer.open("wheel?hours=24")
    expect(row(viewer, "payments")).to_be_visible()
    assert fits(page)


def in_shanghai(instant: str) -> str:
    """As somebody there reads the clock, eight hours ahead."""
    at = datetime.fromisoformat(instant).timestamp() + 8 * 3600
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def tasks_of_minute(instant: str) -> str:
    first = int(datetime.fromisoformat(instant).timestamp()) // 60 * 60
    bounds = [datetime.fromtimestamp(at, UTC) for at in (first, first + 60)]
    due_from, due_to = (at.strftime("%Y-%m-%dT%H%%3A%M%%3A%S.000Z") for at in bounds)
    return f"biz_type=orders&due_from={due_from}&due_to={due_to}"


def heading_of(hours: int) -> str:
    return f"The last {'hour' if hours == 1 else f'{hours} hours'} of orders"
