"""The page of the wheel: the pointers, the next hour, an audit of the last one."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.console.viewer import Viewer
from tests.console.wheel_at_hand import (
    CROWD,
    REFRESH_MS,
    ahead,
    behind,
    changed,
    fits,
    in_shanghai,
    readout,
    refused,
    row,
    tasks_of_minute,
)
from tests.support.service import Service

UNANSWERED = "Failed to load resource: net::ERR_FAILED"
MARKUP = "<img src=x onerror=alert(1)>"
pytestmark = pytest.mark.usefixtures("crowded_at")  # its instant is the start of every test


def open_places(page: Page) -> Locator:
    return page.get_by_role("region", name="Open places").first


def with_open_places(wheel: dict[str, Any]) -> None:
    """Some of many open places: an old one, and recent ones with a reason that this console does
    not know."""
    now = datetime.fromisoformat(wheel["now"])

    def place(ago_seconds: int, page: str | None, why: str) -> dict[str, Any]:
        since = now - timedelta(seconds=ago_seconds)
        at = since - timedelta(seconds=120)
        second = int(at.timestamp())
        instants = {name: each.isoformat() for name, each in (("at", at), ("since", since))}
        return {**instants, "second": second, "shard": 3, "page": page, "why": why}

    young = [place(90, "2r", MARKUP) for _ in range(11)]
    places = [place(3660, None, "failed"), *young]
    wheel["open_places"] = {"count": 250, "oldest_age_seconds": 3660, "places": places}


def test_the_shown_pointers_follow_the_service(viewer: Viewer, service: Service) -> None:
    viewer.page.clock.install()
    viewer.open()
    now = viewer.fact("Now").locator("time")
    expect(viewer.fact("Sweep pointer")).to_contain_text("lag")
    expect(viewer.fact("Leader")).to_have_text("none at this moment")
    seen = now.get_attribute("title")
    service.advance(5)
    viewer.page.clock.fast_forward(REFRESH_MS)
    expect(now).not_to_have_attribute("title", seen or "")
    expect(viewer.fact("Time pointer")).to_contain_text("lag 0 s")


def test_a_lagging_time_pointer_is_shown_as_behind(viewer: Viewer) -> None:
    changed(viewer.page, "**/v1/wheel", lambda wheel: wheel["time_pointer"].update(lag_seconds=75))
    viewer.open()
    expect(viewer.fact("Time pointer")).to_contain_text("lag 1 min 15 s behind")


def test_without_open_places_the_page_explains_them(viewer: Viewer) -> None:
    viewer.open()
    part = open_places(viewer.page)
    expect(part).to_contain_text("None: the sweep has finished every second up to its pointer.")


def test_open_places_are_listed_with_their_age_and_reason(viewer: Viewer) -> None:
    changed(viewer.page, "**/v1/wheel", with_open_places)
    viewer.open()
    part = open_places(viewer.page)
    expect(part).to_contain_text("250 places behind the sweep pointer")
    expect(part).to_contain_text("The oldest 12 are shown.")
    old, young, *_ = viewer.rows("Open places").all()
    expect(old).to_contain_text("1 h 1 min old")
    expect(old).to_contain_text("A request to a table or a queue failed.")
    expect(young).to_contain_text("2r")
    expect(young).to_contain_text(" · 1 min 30 s")
    expect(young).not_to_contain_text("old")
    expect(young).to_contain_text(MARKUP)
    expect(part.locator("tbody tr:visible")).to_have_count(10)
    part.get_by_text("2 more").click()
    expect(part.locator("tbody tr:visible")).to_have_count(12)
    expect(part).to_contain_text("docs/operations.md")
    assert viewer.page.locator("main img").count() == 0


def test_the_most_crowded_minute_is_shown_first(viewer: Viewer, crowded_at: str) -> None:
    viewer.open()
    expected = f"{in_shanghai(crowded_at)[:5]}: about {CROWD} tasks expected"
    expect(readout(viewer.page, "The next hour")).to_contain_text(expected)
    expect(ahead(viewer.page)).to_have_attribute("aria-valuetext", expected)


def with_a_minute_before(wheel: dict[str, Any]) -> None:
    (crowded,) = wheel["forecast"]["minutes"]
    before = datetime.fromisoformat(crowded["at"]) - timedelta(minutes=20)
    other = {"at": before.isoformat(), "tasks": 639, "seconds": {}}
    wheel["forecast"]["minutes"] = [other, crowded]


def test_a_minute_is_shown_under_the_mouse_and_kept_by_a_click(viewer: Viewer) -> None:
    changed(viewer.page, "**/v1/wheel", with_a_minute_before)
    viewer.open()
    shown = readout(viewer.page, "The next hour")
    expect(shown).to_contain_text("640 tasks expected")
    far_left = {"x": 5, "y": 20}
    ahead(viewer.page).hover(position=far_left)
    expect(shown).to_contain_text("639 tasks expected")
    viewer.page.get_by_role("heading", name="Wheel").hover()
    expect(shown).to_contain_text("640 tasks expected")
    ahead(viewer.page).click(position=far_left)
    viewer.page.get_by_role("heading", name="Wheel").hover()
    expect(shown).to_contain_text("639 tasks expected")


def test_the_keyboard_moves_through_the_minutes_and_opens_their_tasks(
    viewer: Viewer, crowded_at: str
) -> None:
    changed(viewer.page, "**/v1/wheel", with_a_minute_before)
    viewer.open("wheel?biz_type=orders")
    shown = readout(viewer.page, "The next hour")
    expect(shown).to_contain_text(f"{CROWD} tasks expected")
    ahead(viewer.page).focus()
    page = viewer.page
    page.keyboard.press("Home")
    expect(shown).to_contain_text("639 tasks expected")
    page.keyboard.press("ArrowRight")
    expect(shown).to_contain_text(f"{CROWD} tasks expected")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("header a[aria-current]")).to_have_text("Tasks")
    assert page.url.endswith(f"#/tasks?{tasks_of_minute(crowded_at)}")


def test_the_next_hour_is_shown_as_a_table(viewer: Viewer, crowded_at: str) -> None:
    viewer.open("wheel?biz_type=orders")
    viewer.page.get_by_text("As a table").first.click()
    (minute,) = viewer.rows("The next hour").all()
    expect(minute).to_contain_text(f":{crowded_at[17:19]} {CROWD}")
    expect(minute.get_by_role("link").first).to_have_attribute(
        "href", f"#/tasks?{tasks_of_minute(crowded_at)}"
    )


def test_an_hour_without_tasks_is_shown_as_empty(viewer: Viewer) -> None:
    none = {"tasks": 0, "minutes": []}
    changed(viewer.page, "**/v1/wheel", lambda wheel: wheel.update(forecast=none))
    viewer.open("wheel?biz_type=nobody-uses-this")
    expect(
        viewer.page.get_by_text("No minute of the next hour is expected to have 640 tasks or more.")
    ).to_be_visible()
    expect(viewer.page.get_by_text("No task fell due.")).to_be_visible()
    expect(row(viewer, "nobody-uses-this")).to_contain_text("no settings")


def test_the_last_values_are_kept_while_the_service_does_not_answer(
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


def test_a_refresh_keeps_the_focus_and_open_details_of_the_wheel(
    viewer: Viewer, service: Service
) -> None:
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


def test_an_audit_is_made_on_request_only(viewer: Viewer) -> None:
    asked: list[float] = []

    def shortened(route: Route) -> None:
        query = dict(parse_qsl(route.request.url.split("?")[1]))
        asked.extend(datetime.fromisoformat(query[name]).timestamp() for name in ("from", "to"))
        a_minute = datetime.fromtimestamp(asked[1] - 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        url = route.request.url.split("?")[0]
        route.continue_(url=f"{url}?{urlencode({**query, 'from': a_minute})}")

    viewer.page.route("**/v1/audit*", shortened)  # an emulator is slow to read an hour
    viewer.open()
    expect(viewer.fact("Now")).to_be_visible()
    viewer.press("Audit the last hour")
    expect(viewer.page.get_by_text("Nothing found: every task is consistent")).to_be_visible()
    expect(viewer.page.get_by_text("in 60 seconds")).to_be_visible()
    assert asked[1] - asked[0] == 3600


def test_an_audit_follows_its_pages_and_lists_all_findings(viewer: Viewer) -> None:
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


def test_a_refused_audit_is_reported(viewer: Viewer) -> None:
    refused(viewer.page, "**/v1/audit*", 403, "The caller may not do this")
    viewer.open()
    viewer.press("Audit the last hour")
    audit = viewer.page.get_by_role("region", name="Audit")
    expect(audit.get_by_role("alert")).to_contain_text("The caller may not do this")


def test_markup_is_shown_as_text(viewer: Viewer) -> None:
    changed(viewer.page, "**/v1/wheel", lambda wheel: wheel.update(leader=MARKUP))
    breakers = [{"host": MARKUP, "since": None, "until": "2030-01-31T08:00:21Z"}]
    changed(viewer.page, "**/v1/businesses/mail", lambda mail: mail.update(breakers=breakers))
    refused(viewer.page, "**/v1/businesses/orders/stats*", 500, MARKUP)
    viewer.open()
    expect(viewer.fact("Leader")).to_have_text(MARKUP)
    expect(row(viewer, "mail")).to_contain_text(MARKUP)
    expect(row(viewer, "orders")).to_contain_text(MARKUP)
    viewer.open(f"wheel?biz_type={MARKUP}&hours={MARKUP}")
    expect(viewer.page.get_by_role("heading", name=f"The last hour of {MARKUP}")).to_be_visible()
    expect(viewer.page.locator("main img")).to_have_count(0)


def test_the_page_fits_a_phone(viewer: Viewer) -> None:
    page = viewer.page
    changed(page, "**/v1/wheel", with_open_places)
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
