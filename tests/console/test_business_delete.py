"""The deletion of a business: its confirmation, its timers and tasks, its refusals."""

from playwright.sync_api import expect

from tests.console.viewer import Viewer
from tests.support.service import Service


def delete(viewer: Viewer, name: str) -> None:
    viewer.press("Delete")
    viewer.fill(f"Type {name} to say that it is meant", name)
    viewer.page.get_by_label("Delete its timers and cancel its pending tasks, too").check()
    viewer.agree("Delete")


def test_a_deletion_needs_the_typed_name_and_is_refused_while_tasks_are_pending(
    viewer: Viewer, service: Service
) -> None:
    service.call("PUT", "/v1/businesses/kept", {})
    service.create("kept", biz_type="kept", delay_seconds=9000)
    viewer.open("businesses/kept")
    viewer.press("Delete")
    viewer.agree("Delete")
    expect(viewer.dialog()).to_be_visible()  # the name is not typed
    viewer.fill("Type kept to say that it is meant", "kept")
    viewer.page.keyboard.press("Enter")
    expect(viewer.outcome()).to_contain_text("The business has pending tasks")
    assert service.call("GET", "/v1/businesses/kept")[0] == 200


def test_a_deletion_can_include_timers_and_tasks(viewer: Viewer, service: Service) -> None:
    service.call("PUT", "/v1/businesses/gone", {})
    tasks = [service.new_task("gone", biz_type="gone", delay_seconds=9000) for _ in range(120)]
    assert service.call("POST", "/v1/tasks/batch", {"tasks": tasks})[0] == 200
    timer = {"name": "daily", "cron": "0 3 * * *", "timezone": "UTC"}
    timer |= service.new_task("gone", biz_type="gone")
    assert service.call("POST", "/v1/timers", timer)[0] == 201
    viewer.open("businesses/gone")
    delete(viewer, "gone")
    expect(viewer.outcome()).to_contain_text("is deleted: 1 timer deleted, 12")
    expect(viewer.page.locator("main h1")).to_have_text("Businesses")
    assert service.call("GET", "/v1/businesses/gone")[1]["version"] == 0, "its tasks are kept"


def test_a_business_changed_by_another_user_is_not_deleted(
    viewer: Viewer, service: Service
) -> None:
    service.call("PUT", "/v1/businesses/changed", {})
    viewer.page.clock.install()  # no automatic refresh
    viewer.page.clock.pause_at("2035-01-01")
    viewer.open("businesses/changed")
    expect(viewer.page.get_by_role("button", name="Delete")).to_be_visible()
    service.call("PUT", "/v1/businesses/changed", {"retention_days": 3})
    delete(viewer, "changed")
    expect(viewer.outcome()).to_contain_text("The business is at version 2.")
    assert service.call("GET", "/v1/businesses/changed")[0] == 200


def test_a_deletion_with_tasks_past_their_cut_off_is_retried_until_it_is_stopped(
    viewer: Viewer, service: Service
) -> None:
    service.call("PUT", "/v1/businesses/late", {})
    service.create("late", biz_type="late", delay_seconds=1)
    viewer.open("businesses/late")
    delete(viewer, "late")
    progress = viewer.page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text("1 task too late to cancel: their calls may be under way")
    viewer.press("Stop")
    expect(viewer.outcome()).to_contain_text("Stopped: late is not deleted")
