"""The search box of every page, and the page of what is found."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.tasks_at_hand import created
from tests.console.viewer import Viewer
from tests.support.service import Service

REQUESTS_MAX = 25


@pytest.fixture
def asked(page: Page) -> list[str]:
    """The requests for data that the page makes."""
    paths: list[str] = []
    page.on("request", lambda sent: paths.append(sent.url) if "/v1/" in sent.url else None)
    return paths


def box(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("combobox", name="Find a task, timer or business")


def search(viewer: Viewer, text: str) -> None:
    viewer.open("find")
    box(viewer).fill(text)
    box(viewer).press("Enter")


def known(service: Service, business: str) -> str:
    """A business with settings: others are listed once a task of theirs has been due."""
    service.call("PUT", f"/v1/businesses/{business}", {})
    return business


def found(viewer: Viewer, group: str) -> Locator:
    return viewer.section(group).get_by_role("listitem")


def named_timer(service: Service, business: str, name: str) -> str:
    timer: dict[str, Any] = {"biz_type": business, "name": name, "cron": "0 3 * * *"}
    timer["callback"] = {"url": f"{service.url}/_local/inbox/{business}"}
    return str(service.call("POST", "/v1/timers", timer)[1]["timer_id"])


def test_a_slash_leads_to_the_box_from_every_page_but_not_out_of_a_field(viewer: Viewer) -> None:
    page = viewer.page
    for path in ("wheel", "tasks", "timers", "find", "businesses"):
        viewer.open(path)
        page.locator("main h1").wait_for()
        page.keyboard.press("/")
        expect(box(viewer)).to_be_focused()
        expect(box(viewer)).to_have_value("")
        page.keyboard.press("Escape")
        expect(box(viewer)).not_to_be_focused()
    page.get_by_label("Name of a business").press("/")
    expect(page.get_by_label("Name of a business")).to_have_value("/")


def test_a_task_is_found_by_its_id_with_one_request_for_it(
    viewer: Viewer, service: Service, business: str, asked: list[str]
) -> None:
    task = created(service, business)
    search(viewer, task["task_id"])
    expect(viewer.fact("Task id")).to_have_text(task["task_id"])
    of_search = [url for url in asked if "/v1/tasks/" in url or "key_prefix" in url]
    assert 1 <= len(of_search) <= 2  # and one of its page


def test_a_task_is_found_by_its_key_whatever_its_business(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, known(service, business), key=f"only-{business}")
    search(viewer, f"only-{business}")
    expect(viewer.fact("Task id")).to_have_text(task["task_id"])
    viewer.page.go_back()
    expect(viewer.page.locator("main h1")).to_have_text("Find")


def test_an_ended_task_is_found_by_its_whole_key(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, known(service, business), 1, key=f"ended-{business}")
    service.advance(5)
    search(viewer, f"ended-{business}")
    expect(viewer.fact("Task id")).to_have_text(task["task_id"])


def test_a_key_is_looked_for_in_the_business_that_is_named_alone(
    viewer: Viewer, service: Service, business: str, asked: list[str]
) -> None:
    task = created(service, business, key="order-17")
    created(service, f"{business}-too", key="order-17")
    search(viewer, f"{business}/order-17")
    expect(viewer.fact("Task id")).to_have_text(task["task_id"])
    assert not [url for url in asked if f"{business}-too" in url]


def test_all_that_begins_so_is_listed_by_kind(
    viewer: Viewer, service: Service, business: str
) -> None:
    prefix = f"close-{business}"
    for key in (f"{prefix}:1", f"{prefix}:2"):
        created(service, known(service, business), key=key)
    timer_id = named_timer(service, business, f"{prefix} nightly")
    search(viewer, prefix)
    expect(found(viewer, "Tasks")).to_have_count(2)
    expect(found(viewer, "Tasks").first).to_contain_text(f"{prefix}:1pending")
    expect(found(viewer, "Timers")).to_have_count(1)
    found(viewer, "Timers").get_by_role("link").click()
    expect(viewer.page).to_have_url(re.compile(f"#/timers/{timer_id}$"))


def test_a_timer_is_found_by_its_id(viewer: Viewer, service: Service, business: str) -> None:
    timer_id = named_timer(service, business, "by its id")
    search(viewer, timer_id)
    expect(viewer.page.locator("main h1")).to_have_text("by its id enabled")


def test_a_business_is_found_by_a_part_of_its_name(
    viewer: Viewer, service: Service, business: str
) -> None:
    service.call("PUT", f"/v1/businesses/the-{business}-in-rome", {})
    search(viewer, f"{business}-in-rome")
    expect(viewer.page.locator("main h1")).to_have_text(f"the-{business}-in-rome")


def test_a_business_is_suggested_while_one_types_and_reached_by_the_keyboard(
    viewer: Viewer, service: Service, business: str, asked: list[str]
) -> None:
    service.call("PUT", f"/v1/businesses/{business}-quick", {})
    viewer.open("find")
    viewer.page.locator("main h1").wait_for()
    asked.clear()
    viewer.page.keyboard.press("/")
    viewer.page.keyboard.type(f"{business}-qu")
    option = viewer.page.get_by_role("option", name=f"{business}-quick", exact=True)
    expect(option).to_be_visible()
    viewer.page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    assert [url.split("/v1/")[1] for url in asked] == ["businesses?limit=100"]
    viewer.page.keyboard.press("Enter")
    expect(viewer.page.locator("main h1")).to_have_text(f"{business}-quick")
    expect(viewer.page.locator("#find-options")).to_be_hidden()


def test_a_search_is_bounded_and_goes_on_when_it_is_asked_to(
    viewer: Viewer, service: Service, business: str, asked: list[str]
) -> None:
    for number in range(12):
        service.call("PUT", f"/v1/businesses/{business}-n{number:02d}", {})
    created(service, f"{business}-n11", key=f"far-{business}")
    viewer.open("find")
    viewer.page.locator("main h1").wait_for()
    asked.clear()
    viewer.open(f"find?q=far-{business}")
    more = viewer.button("Look for the key in more businesses")
    expect(more).to_be_visible()
    assert len(asked) <= REQUESTS_MAX
    while found(viewer, "Tasks").count() == 0:
        more.click()
        expect(viewer.page.locator("[aria-busy]")).to_have_count(0)
    expect(found(viewer, "Tasks")).to_contain_text(f"far-{business}")


def test_what_is_not_found_says_where_it_was_looked_for(
    viewer: Viewer, service: Service, business: str
) -> None:
    viewer.open(f"find?q=no-such-thing&biz_type={business}")
    expect(viewer.page.locator(".empty")).to_contain_text("Nothing is found by that name.")
    expect(viewer.page.get_by_text("Keys were looked for in")).to_contain_text(business)


def test_a_failed_part_is_reported_beside_what_is_found(
    viewer: Viewer, service: Service, business: str
) -> None:
    created(service, business, key=f"partly-{business}")
    viewer.page.route("**/v1/timers?*", lambda route: route.fulfill(status=503, body=""))
    viewer.open(f"find?q=partly-{business}&biz_type={business}")
    expect(found(viewer, "Tasks")).to_have_count(1)
    expect(viewer.page.locator("main .problem")).to_contain_text("Timers: The service cannot")


def test_a_text_is_not_read_as_markup(viewer: Viewer) -> None:
    search(viewer, "<img src=x onerror=alert(1)>")
    expect(viewer.page.locator("main h1")).to_contain_text("<img src=x")
    expect(viewer.page.locator("main img")).to_have_count(0)


def test_the_box_fits_a_phone(viewer: Viewer, service: Service, business: str) -> None:
    page = viewer.page
    page.set_viewport_size({"width": 360, "height": 740})
    viewer.open("find")
    box(viewer).fill("x" * 60)
    expect(page.get_by_role("option")).to_have_count(2)
    assert viewer.has_room()
    menu = page.get_by_role("navigation", name="Console").get_by_role("link")
    assert len({round(link.bounding_box()["y"]) for link in menu.all()}) == 1  # type: ignore[index]
