"""The console's tasks under a key prefix: listed, and cancelled together."""

import re

from playwright.sync_api import Route, expect

from tests.console.tasks_at_hand import batch, created
from tests.console.viewer import Viewer
from tests.support.service import Service


def test_all_tasks_under_a_prefix_are_counted_and_cancelled(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 51)
    other = created(service, business, key="other")
    late = created(service, business, 2, key="k-late")
    viewer.open(f"tasks?biz_type={business}&key_prefix=k-")
    expect(viewer.rows("Tasks")).to_have_count(50)
    viewer.press("Cancel all under k-")
    expect(viewer.page.get_by_role("dialog")).to_contain_text("Cancel 52 tasks?")
    viewer.agree("Cancel them")
    assert "51 tasks cancelled. Too late for 1 task" in viewer.message()
    assert "k-late" in viewer.message()
    expect(viewer.rows("Tasks")).to_have_count(1)
    assert service.task(other)["status"] == "pending"
    assert service.task(late)["status"] == "pending"


def test_a_declined_cancel_leaves_all_tasks(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 2)
    viewer.open(f"tasks?biz_type={business}&key_prefix=k-")
    viewer.press("Cancel all under k-")
    viewer.agree("Leave it")
    expect(viewer.page.get_by_role("dialog")).to_have_count(0)
    expect(viewer.page.get_by_role("button", name="Cancel all under k-")).to_be_focused()
    _, answer = service.call("GET", f"/v1/businesses/{business}/tasks?key_prefix=k-")
    assert len(answer["tasks"]) == 2


def test_a_refused_cancel_under_a_prefix_is_reported(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 1)

    def refuse(route: Route) -> None:
        if route.request.method != "DELETE":
            return route.fallback()
        return route.fulfill(status=403, json={"title": "The caller may not do this"})

    viewer.page.route(re.compile("key_prefix="), refuse)
    viewer.open(f"tasks?biz_type={business}&key_prefix=k-")
    viewer.press("Cancel all under k-")
    viewer.agree("Cancel them")
    assert "The caller may not do this" in viewer.message()
    expect(viewer.rows("Tasks")).to_have_count(1)


def test_a_prefix_without_live_tasks_is_reported(viewer: Viewer, business: str) -> None:
    viewer.open(f"tasks?biz_type={business}&key_prefix=k-")
    expect(viewer.section("Found")).to_have_text("No live task exists under this prefix.")
