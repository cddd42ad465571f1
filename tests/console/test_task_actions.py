"""The actions on a task in the console, and the messages about their outcomes."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.tasks_at_hand import created, dead_task, open_task
from tests.console.viewer import Viewer
from tests.support.service import Service, ms_of


def test_a_task_is_cancelled_after_the_confirmation(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business)
    open_task(viewer, task)
    viewer.press("Cancel the task")
    viewer.agree("Leave it")
    expect(viewer.button("Cancel the task")).to_be_focused()
    assert service.task(task)["status"] == "pending"
    viewer.press("Cancel the task")
    viewer.agree("Cancel it")
    expect(viewer.page.locator(".standing")).to_have_text("cancelled cancelled by caller")
    assert "its call is not made" in viewer.message()
    expect(viewer.page.locator("main h1")).to_be_focused()
    assert service.task(task)["status"] == "cancelled"


def test_an_action_that_is_too_late_reports_that_the_call_may_be_under_way(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business, 2)
    open_task(viewer, task)
    verbs = {"Cancel the task": "Cancel it", "Reschedule": "Reschedule it", "Run now": "Run it"}
    for number, (action, verb) in enumerate(verbs.items(), start=1):
        viewer.press(action)
        viewer.agree(verb)
        expect(viewer.page.locator(".outcome.refused")).to_have_count(number)
        assert "its call may be under way" in viewer.message()
        expect(viewer.button(action)).to_be_visible()
    assert task.items() <= service.task(task).items()


def test_a_task_is_rescheduled_by_the_keyboard_alone(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business)
    open_task(viewer, task)
    viewer.button("Reschedule").focus()
    keyboard = viewer.page.keyboard
    keyboard.press("Enter")
    expect(viewer.field("Due")).to_be_focused()
    keyboard.press("Tab")
    keyboard.type("2")
    keyboard.press("Tab")
    keyboard.type("hours")
    keyboard.press("Tab")
    keyboard.press("Tab")
    keyboard.press("Enter")
    assert "The task is due at" in viewer.message()
    expect(viewer.button("Reschedule")).to_be_focused()
    assert _ahead(service, task) == pytest.approx(7200, abs=1)


def test_a_task_is_rescheduled_to_an_instant(
    viewer: Viewer, service: Service, business: str
) -> None:
    open_task(viewer, created(service, business))
    viewer.press("Reschedule")
    viewer.field("Due").select_option("at")
    viewer.field("At").fill("2030-01-31T16:00:00")
    viewer.field("At").press("Enter")
    expect(viewer.fact("Due")).to_have_text("2030-01-31 16:00:00.000")
    expect(viewer.fact("Due").locator("time")).to_have_attribute(
        "title", "2030-01-31T08:00:00.000Z"
    )


def test_an_instant_beyond_the_limit_is_refused(
    viewer: Viewer, service: Service, business: str
) -> None:
    open_task(viewer, created(service, business))
    viewer.press("Reschedule")
    viewer.field("In").fill("99999999")
    viewer.agree("Reschedule it")
    assert "delay_seconds: must be from 0" in viewer.message()


def test_a_task_is_run_now_and_followed_to_its_delivery(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    task = created(service, business)
    open_task(viewer, task)
    viewer.press("Run now")
    viewer.agree("Run it")
    assert "made now" in viewer.message()
    service.advance(3)
    still.clock.run_for(3000)
    expect(viewer.page.locator(".standing")).to_have_text("delivered")
    assert len(service.received(business)) == 1


def test_a_task_is_paused_and_resumed(viewer: Viewer, service: Service, business: str) -> None:
    task = created(service, business)
    open_task(viewer, task)
    viewer.press("Pause")
    viewer.agree("Pause it")
    assert "The task is paused" in viewer.message()
    expect(viewer.page.locator(".standing")).to_have_text("pending paused")
    expect(viewer.page.locator(".waiting")).to_contain_text("It is paused since")
    assert service.task(task)["paused"]["until"] == service.task(task)["next_at"]
    viewer.press("Resume")
    viewer.agree("Resume it")
    expect(viewer.page.locator(".standing")).to_have_text("pending")
    assert service.task(task)["next_at"] == task["next_at"]
    expect(viewer.button("Pause")).to_be_visible()


def test_a_dead_task_is_redriven(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    task = dead_task(service, business)
    open_task(viewer, task)
    expect(viewer.page.locator(".standing")).to_have_text("dead stopped")
    expect(viewer.button("Cancel the task")).to_have_count(0)
    viewer.press("Redrive")
    viewer.agree("Redrive it")
    expect(viewer.section("Attempts")).to_contain_text("Attempt before the redrive")
    service.advance(3)
    still.clock.run_for(3000)
    expect(viewer.page.locator(".standing")).to_have_text("delivered")
    expect(viewer.section("Attempts")).to_contain_text("Attempt 1 delivered")


def test_a_cancelled_task_is_redriven_to_its_due_instant(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business)
    open_task(viewer, task)
    viewer.press("Cancel the task")
    viewer.agree("Cancel it")
    expect(viewer.page.locator(".standing")).to_contain_text("cancelled")
    viewer.press("Redrive")
    expect(viewer.page.get_by_role("dialog")).to_contain_text("called again")
    viewer.agree("Redrive it")
    expect(viewer.page.locator(".standing")).to_have_text("pending")
    expect(viewer.section("Facts")).to_contain_text("1 time; it was cancelled before")
    expect(viewer.button("Redrive")).to_have_count(0)


def test_a_late_answer_is_not_shown_on_the_next_page(
    viewer: Viewer, service: Service, business: str
) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == "GET":
            return route.fallback()
        return held.append(route)

    viewer.page.route(re.compile("/v1/tasks/"), hold)
    open_task(viewer, created(service, business))
    viewer.press("Run now")
    viewer.agree("Run it")
    viewer.page.get_by_role("link", name="Tasks", exact=True).click()
    expect(viewer.page.locator("main h1")).to_have_text("Tasks")
    held[0].continue_()
    assert "made now" in viewer.message()
    expect(viewer.page.locator("main h1")).to_have_text("Tasks")


def test_an_action_without_permission_is_reported(
    viewer: Viewer, service: Service, business: str
) -> None:
    def refuse(route: Route) -> None:
        if route.request.method == "GET":
            return route.fallback()
        return route.fulfill(status=403, json={"title": "The caller may not do this"})

    viewer.page.route(re.compile("/v1/tasks/"), refuse)
    open_task(viewer, created(service, business))
    viewer.press("Run now")
    viewer.agree("Run it")
    assert "The caller may not do this" in viewer.message()
    expect(viewer.page.locator(".standing")).to_have_text("pending")


def _ahead(service: Service, task: dict[str, Any]) -> float:
    return (ms_of(service.task(task)["due_at"]) - service.now_ms()) / 1000


def test_a_task_of_a_blocked_host_says_so_and_probes_it(
    viewer: Viewer, service: Service, business: str
) -> None:
    service.call("PUT", f"/_local/received/{business}", {"status": 503, "times": 20})
    tasks = [service.new_task(business, biz_type=business, delay_seconds=5)] * 20
    service.call("POST", "/v1/tasks/batch", {"tasks": tasks})
    service.advance(6)
    task = created(service, business, 600)
    open_task(viewer, task)
    viewer.press("Run now")
    viewer.agree("Run it")
    assert "waits: its host 127.0.0.1" in viewer.message()
    service.advance(3)
    viewer.open("overview")
    open_task(viewer, task)
    viewer.press("Probe the host now")
    viewer.agree("Probe it")
    expect(viewer.page.locator(".outcome").last).to_contain_text("is tried by this task now")
    service.advance(1)
    assert service.task(task)["status"] == "delivered"
    assert service.call("GET", f"/v1/businesses/{business}")[1]["breakers"] == []
