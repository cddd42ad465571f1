"""The parts of every page of the console: start page, security policy, navigation."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Route, expect

from tests.console.tasks_at_hand import created
from tests.console.viewer import Viewer
from tests.support.service import Service


def test_the_console_opens_on_the_wheel(viewer: Viewer) -> None:
    viewer.open()
    expect(viewer.page.locator("main h1")).to_have_text("Wheel")
    expect(viewer.fact("Time pointer")).to_contain_text("lag")


def test_pages_are_reached_by_the_navigation(viewer: Viewer) -> None:
    viewer.open()
    for name in ("Tasks", "Timers", "Businesses", "Wheel"):
        viewer.page.get_by_role("link", name=name, exact=True).click()
        expect(viewer.page.get_by_role("link", name=name, exact=True)).to_have_attribute(
            "aria-current", "page"
        )


@pytest.mark.parametrize("path", ["/", "/console/"])
def test_the_root_of_the_stack_leads_to_the_console(viewer: Viewer, path: str) -> None:
    viewer.page.goto(path)
    expect(viewer.page.locator("main h1")).to_have_text("Overview")
    assert urlsplit(viewer.page.url).path == "/console"


def test_a_service_without_an_answer_is_named(
    viewer: Viewer, service: Service, complaints: list[str]
) -> None:
    viewer.page.route("**/v1/**", lambda route: route.abort())
    viewer.open()
    expect(viewer.page.get_by_role("alert").first).to_contain_text(service.url)
    complaints.clear()


def test_back_closes_a_dialog_and_the_page_stays(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business)
    viewer.open(f"tasks?biz_type={business}")
    viewer.open(f"tasks/{task['task_id']}")
    for leave in (viewer.page.go_back, lambda: viewer.agree("Leave it")):
        viewer.press("Cancel the task")
        expect(viewer.dialog()).to_be_visible()
        leave()
        expect(viewer.dialog()).to_have_count(0)
        expect(viewer.fact("Business")).to_have_text(business)
    assert service.task(task)["status"] == "pending"
    viewer.page.go_back()
    expect(viewer.rows("Tasks")).to_have_count(1)


def test_an_injected_script_does_not_run(viewer: Viewer, complaints: list[str]) -> None:
    viewer.open()
    refused = viewer.page.evaluate(
        """() => { try { document.body.innerHTML = "<img src=x onerror=alert(1)>"; return ""; }
                  catch (error) { return error.name; } }"""
    )
    assert refused == "TypeError"
    (complaint,) = complaints
    assert "TrustedHTML" in complaint
    complaints.clear()


def test_a_page_that_was_left_before_it_loaded_is_not_shown(viewer: Viewer) -> None:
    held: list[Route] = []
    viewer.page.route("**/pages/overview/overview.js", lambda route: held.append(route))
    viewer.page.goto("/console", wait_until="commit")
    expect(viewer.page.get_by_role("link", name="Overview", exact=True)).to_have_attribute(
        "aria-current", "page"
    )
    viewer.page.get_by_role("link", name="Timers", exact=True).click()
    expect(viewer.page.locator("main h1")).to_have_text("Timers")
    with viewer.page.expect_response("**/pages/overview/overview.js"):
        held[0].continue_()
    # It returns after the next turn of the event loop.
    viewer.page.evaluate("() => import(document.querySelector('script').src)")
    expect(viewer.page.locator("main h1")).to_have_text("Timers")


@pytest.mark.parametrize("address", ["nowhere", "tasks/a/b", "wheel/1", "%"])
def test_an_unknown_page_says_that_there_is_none(viewer: Viewer, address: str) -> None:
    viewer.open(address)
    expect(viewer.page.locator("main h1")).to_have_text("There is no such page")
    viewer.page.get_by_role("link", name="To the first page").click()
    expect(viewer.page.locator("main h1")).not_to_have_text("There is no such page")
