"""The overview: the first page, which is left open. The service's answers are replaced, so that
each trouble is there; one test sees the service's own."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.console.viewer import FAILED, Viewer
from tests.console.wheel_at_hand import fits, refused
from tests.support.service import Service

NOW = datetime(2030, 1, 31, 10, 37, 20, tzinfo=UTC)
MARKUP = "<img src=x onerror=alert(1)>"
WHEEL_EVERY_MS, BUSINESSES_EVERY_MS = 10_000, 20_000
# What docs/console.md says of a page that is looked at: the wheel, and one page of businesses.
REQUESTS_A_MINUTE = 9
UNANSWERED = "Failed to load resource: net::ERR_FAILED"

Answer = dict[str, Any]


def instant(ago_seconds: float = 0) -> str:
    at = NOW - timedelta(seconds=ago_seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def counts(**given: Any) -> Answer:
    names = ("created", "pending", "delivered", "dead", "expired", "cancelled", "failed_attempts")
    lateness = {"sum_ms": 0, "max_ms": 5000, "counts": given.pop("late", {})}
    return {**dict.fromkeys(names, 0), **given, "lateness": lateness}


def business(name: str, **given: Any) -> Answer:
    return {
        "biz_type": name, "paused": False, "paused_flow_keys": 0, "lane": "main",
        "breakers": [], "calls_per_second": None, "calls_in_flight": None,
        "usage": {"calls": None, "calls_in_flight": None}, "hour": counts(),
        "died_since": 0, **given,
    }  # fmt: skip


def death(error: str | None, ago_seconds: float, **of: int) -> Answer:
    return {
        "last_error": error, "reason": "attempts exhausted", "tasks": sum(of.values()),
        "businesses": [{"biz_type": name, "tasks": tasks} for name, tasks in of.items()],
        "last_died_at": instant(ago_seconds), "last_task_id": "AQG5dwAOsAAA517Z-75q6hMOibiw",
    }  # fmt: skip


def overview(**given: Any) -> Answer:
    deaths = {"since": instant(86_400), "businesses": 2, "tasks": 0, "more": False, "groups": []}
    return {
        "now": instant(), "from": instant(3740), "to": instant(140), "minutes": [],
        "businesses": [], "deaths": {**deaths, **given.pop("deaths", {})},
        "operations": [], "looked_at": {"businesses": 2}, "cursor": None, **given,
    }  # fmt: skip


def wheel(**given: Any) -> Answer:
    pointer = {"at": instant(), "second": 1}
    return {
        "now": instant(), "time_pointer": {**pointer, "lag_seconds": 0},
        "sweep_pointer": {**pointer, "lag_seconds": 131}, "leader": None,
        "open_places": {"count": 0, "oldest_age_seconds": None, "places": []},
        "forecast": {"tasks": 0, "minutes": []}, **given,
    }  # fmt: skip


@pytest.fixture
def answers(page: Page) -> dict[str, Answer]:
    """The answers of the service, which a test changes."""
    answers = {"wheel": wheel(), "overview": overview()}
    date = {"date": NOW.strftime("%a, %d %b %Y %H:%M:%S GMT")}

    def answer(route: Route) -> None:
        name = urlsplit(route.request.url).path.rpartition("/")[2]
        route.fulfill(json=answers[name], headers=date)

    for name in answers:
        page.route(f"**/v1/{name}*", answer)
    return answers


@pytest.fixture
def asked(page: Page) -> list[str]:
    """The paths of the requests to the service."""
    asked: list[str] = []
    page.on("request", lambda request: "/v1/" in request.url and asked.append(request.url))
    return asked


def wrong(page: Page) -> Locator:
    return page.get_by_role("region", name="What is wrong")


def troubles(page: Page) -> list[str]:
    return wrong(page).locator("li strong").all_inner_texts()


def figure(page: Page, name: str) -> Locator:
    return page.locator(f".card[data-key='{name}']")


def age(page: Page, of: str) -> Locator:
    return page.locator(f"[data-age='{of}']")


def set_hidden(page: Page, hidden: bool) -> None:
    page.evaluate(
        """(hidden) => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def pass_time(page: Page, milliseconds: int, step: int = 1000) -> None:
    for _ in range(milliseconds // step):
        page.clock.run_for(step)


def until(page: Page, holds: Callable[[], bool]) -> None:
    for _ in range(100):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it never was so")


def test_it_is_the_first_page(viewer: Viewer, answers: dict[str, Answer]) -> None:
    viewer.page.goto("/console")
    assert viewer.heading() == "Overview"
    expect(viewer.page.locator("header a[aria-current]")).to_have_text("Overview")


def test_without_trouble_it_says_so_and_what_it_looked_at(
    viewer: Viewer, answers: dict[str, Answer]
) -> None:
    viewer.open("overview")
    expect(wrong(viewer.page)).to_contain_text(
        re.compile(
            "Nothing is wrong. Looked at: the wheel, 2 known businesses, "
            r"deaths in 2 of them up to now, tasks that fell due before \d\d:\d\d\."
        )
    )
    expect(figure(viewer.page, "Calls")).to_contain_text("on time")


def test_each_trouble_is_named_the_worst_first(viewer: Viewer, answers: dict[str, Answer]) -> None:
    answers["wheel"] = wheel(
        time_pointer={"at": instant(), "second": 1, "lag_seconds": 75},
        sweep_pointer={"at": instant(), "second": 1, "lag_seconds": 900},
        open_places={"count": 3, "oldest_age_seconds": 3660, "places": []},
    )
    breaker = {"host": "a.example", "since": instant(660), "until": instant(-9)}
    held = {"calls": {"free_in_ms": 0, "waiting": 2}, "calls_in_flight": {"used": 1, "waiting": 7}}
    minute = {"at": instant(200), **counts(created=9, delivered=9, late={"up_to_5000_ms": 9})}
    answers["overview"] = overview(
        minutes=[minute],
        businesses=[
            business("down", breakers=[breaker]),
            business("flow", paused_flow_keys=2),
            business("held", usage=held),
            business("idle", paused=True),
            business("slow", lane="slow"),
        ],
        deaths={"groups": [death("status 503", 60, down=3), death("old", 7200, idle=1)]},
    )
    viewer.open("overview")
    expect(wrong(viewer.page).locator("li")).to_have_count(10)
    assert troubles(viewer.page) == [
        "Calls are 1 min 15 s late.",
        "The sweep cannot finish old places.",
        "Tasks died of 1 error in the last hour.",
        "1 host is blocked.",
        "The sweep is 15 min behind.",
        "Most calls of the last counted minute were late.",
        "1 business is paused.",
        "1 business has paused flow keys.",
        "1 business is slow.",
        "1 business waits for its limits.",
    ]
    text = wrong(viewer.page)
    for part in ("no scheduler leads", "3 places open, the oldest for 1 h 1 min", "status 503"):
        expect(text).to_contain_text(part)
    expect(text).to_contain_text("a.example of down for 11 min")
    expect(text).to_contain_text("held (7 tasks)")
    expect(text.get_by_role("img", name="Wrong")).to_have_count(4)
    expect(text.get_by_role("link", name="idle")).to_have_attribute("href", "#/businesses/idle")
    assert fits(viewer.page)


def test_of_many_businesses_in_one_trouble_some_are_named(
    viewer: Viewer, answers: dict[str, Answer]
) -> None:
    answers["overview"] = overview(businesses=[business(f"b{n}", paused=True) for n in range(9)])
    viewer.open("overview")
    expect(wrong(viewer.page)).to_contain_text("9 businesses are paused.")
    expect(wrong(viewer.page).get_by_role("link")).to_have_count(6)
    expect(wrong(viewer.page)).to_contain_text("and 3 more")


def test_figures_are_of_the_last_counted_minute_and_hour(
    viewer: Viewer, answers: dict[str, Answer]
) -> None:
    late = {"up_to_10_ms": 98, "up_to_2000_ms": 2}
    minutes = [
        {"at": instant(1400), **counts(created=20, delivered=9, dead=1, pending=10)},
        {"at": instant(200), **counts(created=100, delivered=100, failed_attempts=20, late=late)},
    ]
    permits = {"calls": None, "calls_in_flight": {"used": 3, "waiting": 4}}
    answers["overview"] = overview(
        minutes=minutes,
        businesses=[business("orders", calls_in_flight=3, usage=permits)],
        operations=[{"operation_id": "orders~1"}],
    )
    at = {"at": instant(-600), "tasks": 640, "seconds": {"0": 640}}
    answers["wheel"] = wheel(forecast={"tasks": 640, "minutes": [at]})
    viewer.open("overview")
    page = viewer.page
    expect(figure(page, "Last counted minute")).to_contain_text("100 due")
    expect(figure(page, "Last counted minute")).to_contain_text("2 calls a second")
    expect(figure(page, "Last counted minute")).to_contain_text("p50 ≤ 10 ms, p99 ≤ 2 s late")
    expect(figure(page, "Last hour")).to_contain_text("109 delivered")
    expect(figure(page, "Last hour")).to_contain_text("20 failed attempts, 1 dead")
    expect(figure(page, "At work")).to_contain_text("10 pending")
    expect(figure(page, "At work")).to_contain_text("3 calls in flight, 4 waiting")
    expect(figure(page, "At work").get_by_role("link")).to_have_text("1 operation under way")
    expect(figure(page, "Next hour")).to_contain_text("≈ 640 expected")
    expect(viewer.rows("Businesses in the last hour")).to_contain_text("3 of 3 +4")


def test_the_hours_are_walked_through_by_the_keyboard(
    viewer: Viewer, answers: dict[str, Answer]
) -> None:
    late = {"up_to_1000_ms": 1, "up_to_2000_ms": 2, "later": 1}
    one = {"at": instant(200), **counts(created=5, delivered=4, failed_attempts=1, late=late)}
    answers["overview"] = overview(minutes=[one])
    at = {"at": instant(20), "tasks": 64, "seconds": {"0": 64}}
    answers["wheel"] = wheel(forecast={"tasks": 64, "minutes": [at]})
    viewer.open("overview")
    page = viewer.page
    map_of = page.get_by_role("slider", name="The last hour and the next, by the minute")
    shown = page.get_by_role("region", name="The last hour and the next").locator(".readout")
    expect(shown).to_have_text("2030-01-31 18:34: 5 due, 3 late, 1 failed attempt")
    map_of.focus()
    page.keyboard.press("ArrowRight")
    expect(shown).to_have_text("2030-01-31 18:35: not counted yet")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(shown).to_have_text("2030-01-31 18:37: about 64 expected")
    expect(map_of).to_have_attribute("aria-valuetext", "2030-01-31 18:37: about 64 expected")
    page.keyboard.press("Home")
    expect(shown).to_have_text("2030-01-31 17:37: nothing")


def test_deaths_lead_to_the_dead_tasks_of_their_error(
    viewer: Viewer, answers: dict[str, Answer]
) -> None:
    groups = [death(MARKUP, 60, orders=3, bills=1), death(None, 90, bills=1)]
    answers["overview"] = overview(deaths={"tasks": 5, "more": True, "groups": groups})
    viewer.open("overview")
    expect(viewer.rows("Latest deaths")).to_have_count(2)
    first, second = viewer.rows("Latest deaths").all()
    expect(first).to_contain_text(MARKUP)
    href = first.get_by_role("link", name="orders").get_attribute("href")
    assert href is not None
    assert href.startswith("#/businesses/orders/dead?reason=attempts+exhausted&last_error=%3Cimg")
    expect(second.get_by_role("link", name="bills")).to_have_attribute(
        "href", "#/businesses/bills/dead?reason=attempts+exhausted"
    )
    expect(viewer.page.get_by_text("the latest 5 deaths; there are more")).to_be_visible()
    assert viewer.page.locator("main img[src]").count() == 0


def test_pages_of_businesses_are_shown_as_one_up_to_a_bound(
    viewer: Viewer, answers: dict[str, Answer], asked: list[str]
) -> None:
    answers["overview"] = overview(
        cursor="more",
        businesses=[business("orders", paused=True)],
        deaths={"tasks": 2, "groups": [death("status 503", 60, orders=2)]},
        looked_at={"businesses": 50},
    )
    viewer.open("overview")
    expect(wrong(viewer.page)).to_contain_text("4 businesses are paused.")
    expect(viewer.rows("Latest deaths")).to_have_count(1)
    expect(viewer.rows("Latest deaths")).to_contain_text("8")
    expect(viewer.page.get_by_text("Looked at the first 200 businesses.")).to_be_visible()
    assert sum("/v1/overview" in url for url in asked) == 4


def test_it_says_how_old_its_figures_are_and_when_a_part_failed(
    viewer: Viewer, answers: dict[str, Answer], complaints: list[str]
) -> None:
    page = viewer.page
    page.clock.install()
    viewer.open("overview")
    expect(age(page, "Wheel")).to_contain_text("Wheel read")
    page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
    expect(age(page, "Businesses")).to_contain_text("Businesses read")
    page.unroute_all(behavior="ignoreErrors")
    page.route("**/v1/wheel", lambda route: route.abort())
    answers["overview"] = overview(businesses=[business("late", paused=True)])
    page.route("**/v1/overview*", lambda route: route.fulfill(json=answers["overview"]))
    pass_time(page, 2 * BUSINESSES_EVERY_MS)
    expect(wrong(page)).to_contain_text("1 business is paused.")
    pass_time(page, 3000)
    expect(age(page, "Wheel")).to_contain_text("ago (The service does not answer")
    expect(age(page, "Wheel")).to_have_class("old")
    expect(figure(page, "Calls")).to_contain_text("on time")  # as it was seen last
    assert set(complaints) == {UNANSWERED}
    complaints.clear()


def test_a_part_that_was_never_read_is_not_said_to_be_well(
    viewer: Viewer, answers: dict[str, Answer]
) -> None:
    viewer.answer("/v1/overview", 500, FAILED)
    viewer.open("overview")
    expect(wrong(viewer.page)).to_contain_text(
        "Not known: what holds businesses back, and what died."
    )
    expect(wrong(viewer.page)).not_to_contain_text("Nothing is wrong")
    expect(viewer.page.get_by_role("alert").first).to_contain_text("failed unexpectedly")


def test_a_refused_part_is_said_in_its_place_and_not_asked_for_again(
    viewer: Viewer, answers: dict[str, Answer], asked: list[str]
) -> None:
    page = viewer.page
    page.clock.install()
    refused(page, "**/v1/wheel", 403, "The caller may not do this")
    viewer.open("overview")
    expect(wrong(page)).to_contain_text("Nothing is wrong with the businesses.")
    expect(wrong(page)).to_contain_text("Not known to you: whether calls are on time")
    expect(age(page, "Wheel")).to_have_text("Wheel: not for you to read")
    expect(figure(page, "Calls")).to_contain_text("So it is.")
    pass_time(page, 3 * BUSINESSES_EVERY_MS, WHEEL_EVERY_MS)
    until(page, lambda: sum("/v1/overview" in url for url in asked) > 1)
    assert sum("/v1/wheel" in url for url in asked) == 1


def test_it_makes_few_requests_and_none_while_it_is_hidden(
    viewer: Viewer, answers: dict[str, Answer], asked: list[str]
) -> None:
    page = viewer.page
    page.clock.install()
    viewer.open("overview")
    expect(wrong(page)).to_contain_text("Nothing is wrong.")
    page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
    page.wait_for_timeout(300)
    asked.clear()
    pass_time(page, 60_000)
    page.wait_for_timeout(300)
    assert 0 < len(asked) <= REQUESTS_A_MINUTE
    set_hidden(page, True)
    pass_time(page, BUSINESSES_EVERY_MS)  # what was begun
    page.wait_for_timeout(300)
    asked.clear()
    pass_time(page, 600_000, 10_000)
    page.wait_for_timeout(300)
    assert asked == []
    set_hidden(page, False)
    until(page, lambda: len(asked) == 2)


def test_a_refresh_keeps_nodes_focus_scroll_and_what_is_open(
    viewer: Viewer, answers: dict[str, Answer]
) -> None:
    page = viewer.page
    page.clock.install()
    names = [business(f"b{n:02d}", paused=True, hour=counts(created=9 - n)) for n in range(9)]
    groups = [death("status 503", 60, b01=3)]
    answers["overview"] = overview(businesses=names, deaths={"tasks": 3, "groups": groups})
    viewer.open("overview")
    link = page.get_by_role("region", name="Latest deaths").get_by_role("link", name="b01")
    expect(link).to_be_visible()
    page.get_by_text("As a table").click()
    link.focus()
    page.evaluate(
        "scrollTo(0, 300); document.querySelectorAll('main *').forEach((one) => one.kept = true)"
    )
    answers["overview"] = overview(
        businesses=[*names, business("new", hour=counts(created=4, failed_attempts=1))],
        deaths={"tasks": 5, "groups": [death("status 500", 30, b02=2), *groups]},
    )
    pass_time(page, 2 * BUSINESSES_EVERY_MS, WHEEL_EVERY_MS)
    expect(viewer.rows("Latest deaths")).to_have_count(2)
    expect(link).to_be_focused()
    assert page.evaluate("scrollY") == 300
    expect(page.locator("details").first).to_have_attribute("open", "")
    anew = page.evaluate(
        "[...document.querySelectorAll('main section, main table, main li')]"
        ".filter((one) => !one.kept).length"
    )
    assert anew == 0


def test_it_fits_a_phone_without_empty_members(viewer: Viewer, answers: dict[str, Answer]) -> None:
    page = viewer.page
    breaker = {"host": "a." + "long" * 20 + ".example", "since": instant(660), "until": instant()}
    answers["overview"] = overview(
        businesses=[business("orders", breakers=[breaker], hour=counts(created=3))],
        deaths={"tasks": 1, "groups": [death("e" * 200, 60, orders=1)]},
    )
    page.set_viewport_size({"width": 390, "height": 844})
    viewer.open("overview")
    row = viewer.rows("Businesses in the last hour")
    expect(row.locator("[data-label='Due']")).to_be_visible()
    expect(row.locator("[data-label='In flight']")).to_be_hidden()
    expect(row.locator("[data-label='Dead']")).to_be_hidden()
    assert fits(page)


def test_it_shows_what_the_service_says(viewer: Viewer, service: Service, crowded_at: str) -> None:
    service.advance(300)
    viewer.open("overview")
    page = viewer.page
    expect(wrong(page)).to_contain_text("1 business is paused. mail")
    expect(wrong(page)).to_contain_text("Tasks died of 1 error in the last hour. status 503")
    expect(viewer.rows("Latest deaths")).to_contain_text("payments")
    expect(figure(page, "Last hour")).to_contain_text("5 delivered")
    expect(figure(page, "Next hour")).to_contain_text("≈ 640 expected")
    orders = viewer.rows("Businesses in the last hour").filter(has_text="orders")
    expect(orders).to_contain_text("5")


def test_a_day_of_a_business_is_shown_by_the_minute(
    viewer: Viewer, service: Service, crowded_at: str
) -> None:
    service.advance(300)
    viewer.open("businesses/payments")
    page = viewer.page
    map_of = page.get_by_role("slider", name="The last 24 hours by the minute")
    part = page.get_by_role("region", name="By the minute")
    expect(map_of).to_have_attribute("aria-valuemax", "1439")
    expect(part.locator(".readout")).to_contain_text("failed attempt")
    map_of.focus()
    page.keyboard.press("ArrowUp")  # an hour before
    expect(part.locator(".readout")).to_contain_text("nothing")
    page.keyboard.press("ArrowDown")
    expect(part.locator(".readout")).to_contain_text("3 due")
    href = part.get_by_role("link", name="tasks due then").get_attribute("href")
    assert href is not None
    assert href.startswith("#/tasks?biz_type=payments&due_from=")
    part.get_by_text("As a table").click()
    expect(viewer.rows("The last 24 hours by the hour").first).to_contain_text("3")
