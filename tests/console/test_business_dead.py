"""The dead tasks of a business: found by the instant and the cause of their death, and redriven."""

from datetime import UTC, datetime
from typing import Any

from playwright.sync_api import expect

from tests.console.viewer import FAILED, Viewer
from tests.support.service import Service

MARKUP = "<img src=x onerror=alert(1)>"
ZONE_MS = 8 * 3_600_000  # the viewer's, ahead of UTC


def dead_tasks(service: Service, name: str, *statuses: int, **more: Any) -> list[dict[str, Any]]:
    """One task for each status that the callback answers, a minute apart."""
    service.call("PUT", f"/v1/businesses/{name}", {"retry": {"attempts": 1}})
    made = []
    for status in statuses:
        service.call("PUT", f"/_local/received/{name}", {"status": status})
        made.append(service.create(name, biz_type=name, delay_seconds=5, **more))
        service.advance(60)
    service.call("PUT", f"/_local/received/{name}", {"status": 200})
    return made


def many_dead(service: Service, name: str, count: int) -> None:
    service.call("PUT", f"/v1/businesses/{name}", {})
    service.call("PUT", f"/_local/received/{name}", {"status": 410})
    tasks = [service.new_task(name, biz_type=name, delay_seconds=5) for _ in range(count)]
    assert service.call("POST", "/v1/tasks/batch", {"tasks": tasks})[0] == 200
    service.advance(15)
    service.call("PUT", f"/_local/received/{name}", {"status": 200})


def typed(ms: int) -> str:
    return datetime.fromtimestamp((ms + ZONE_MS) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def statuses_of(service: Service, tasks: list[dict[str, Any]]) -> list[str]:
    return [service.task(task)["status"] for task in tasks]


def test_an_empty_list_of_dead_tasks_is_reported(viewer: Viewer) -> None:
    viewer.open("businesses/alive/dead")
    expect(viewer.page.locator(".empty")).to_have_text("No task of it is dead.")
    expect(viewer.page.get_by_role("group", name="Change many")).to_have_count(0)


def test_dead_tasks_are_found_by_cause_and_instant(viewer: Viewer, service: Service) -> None:
    begun_ms = service.now_ms()
    stopped, exhausted = dead_tasks(service, "found", 410, 503)
    viewer.open("businesses/found")
    viewer.page.get_by_role("link", name="Dead tasks").click()
    rows = viewer.rows("Dead tasks")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("attempts exhausted")
    viewer.choose("Reason", "attempts exhausted")
    viewer.press("Filter")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text(exhausted["task_id"])
    viewer.page.go_back()
    expect(rows).to_have_count(2)
    viewer.fill("Died before", typed(begun_ms + 60_000))
    viewer.page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text(stopped["task_id"])
    expect(viewer.page.get_by_label("Died before")).to_have_value(typed(begun_ms + 60_000))
    viewer.page.get_by_role("link", name="Clear").click()
    viewer.fill("Last error contains", "nowhere")
    viewer.press("Filter")
    expect(viewer.page.locator(".empty")).to_have_text("The filter takes no dead task.")


def test_a_refused_filter_shows_the_reason(viewer: Viewer) -> None:
    viewer.open("businesses/refused/dead")
    viewer.fill("Last status", "teapot")
    viewer.press("Filter")
    expect(viewer.page.locator("main .problem")).to_contain_text("status_code: must be")


def test_selected_tasks_are_redriven(viewer: Viewer, service: Service) -> None:
    first, second, third = tasks = dead_tasks(service, "picked", 410, 410, 410)
    viewer.open("businesses/picked/dead")
    viewer.page.get_by_label(f"Select {first['task_id']}").check()
    viewer.page.get_by_label(f"Select {third['task_id']}").check()
    service.call("POST", f"/v1/tasks/{third['task_id']}/redrive")  # by another user
    viewer.press("Apply to 2 selected")
    expect(viewer.dialog()).to_contain_text("Redrive 2 tasks of picked?")
    viewer.agree("Redrive them")
    progress = viewer.page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text("1 refused")
    expect(viewer.rows("Dead tasks")).to_have_count(1)
    service.advance(10)
    assert statuses_of(service, tasks) == ["delivered", "dead", "delivered"]
    assert second["task_id"] in viewer.rows("Dead tasks").inner_text()


def test_all_tasks_of_the_filter_are_redriven(viewer: Viewer, service: Service) -> None:
    many_dead(service, "all", 101)
    viewer.open("businesses/all/dead?status_code=410")
    expect(viewer.rows("Dead tasks")).to_have_count(50)
    viewer.page.get_by_role("link", name="Next page").click()
    expect(viewer.page.get_by_role("link", name="First page")).to_be_visible()
    viewer.press("Apply to all that match")
    expect(viewer.dialog()).to_contain_text("Redrive 101 tasks of all?")
    viewer.agree("Redrive them")
    expect(viewer.page.locator(".empty")).to_contain_text("The filter takes no")
    viewer.page.get_by_role("link", name="The operation").click()
    expect(viewer.fact("Tasks")).to_contain_text("last status 410")
    viewer.page.get_by_role("link", name="the list of them").click()
    expect(viewer.page.get_by_label("Last status")).to_have_value("410")


def test_a_refresh_keeps_the_selection_without_redriven_tasks(
    viewer: Viewer, service: Service
) -> None:
    first, second = dead_tasks(service, "chosen", 410, 410)
    viewer.page.clock.install()
    viewer.open("businesses/chosen/dead")
    viewer.press("Select all shown")
    expect(viewer.page.get_by_role("button", name="Apply to 2 selected")).to_be_enabled()
    viewer.page.get_by_label(f"Select {second['task_id']}").focus()
    service.call("POST", f"/v1/tasks/{first['task_id']}/redrive")
    viewer.page.clock.run_for(11_000)
    expect(viewer.page.get_by_role("button", name="Apply to 1 selected")).to_be_visible()
    left = viewer.page.get_by_label(f"Select {second['task_id']}")
    expect(left).to_be_checked()
    expect(left).to_be_focused()
    viewer.press("Select none")
    expect(left).not_to_be_checked()


def test_the_keyboard_alone_selects_a_task_for_a_redrive(viewer: Viewer, service: Service) -> None:
    (task,) = dead_tasks(service, "keys", 410)
    viewer.open("businesses/keys/dead")
    viewer.page.get_by_label(f"Select {task['task_id']}").focus()
    viewer.page.keyboard.press("Space")
    redrive = viewer.page.get_by_role("button", name="Apply to 1 selected")
    for _ in range(6):
        viewer.page.keyboard.press("Shift+Tab")
        if redrive.evaluate("button => button === document.activeElement"):
            break
    viewer.page.keyboard.press("Enter")
    expect(viewer.dialog()).to_contain_text("Redrive 1 task of keys?")


def test_dead_tasks_are_shown_as_text_and_fit_a_phone(viewer: Viewer, service: Service) -> None:
    task = {
        "task_id": "AQG5" + "x" * 24, "key": MARKUP, "settled_at": "2030-01-31T08:00:00.000Z",
        "reason": MARKUP, "attempts": 1, "last_error": MARKUP + "x" * 90, "history": [],
    }  # fmt: skip
    viewer.page.route(
        "**/v1/businesses/text/dead*",
        lambda route: route.fulfill(json={"tasks": [task], "cursor": None}),
    )
    viewer.page.set_viewport_size({"width": 360, "height": 740})
    viewer.open("businesses/text/dead")
    expect(viewer.rows("Dead tasks")).to_contain_text([MARKUP])
    expect(viewer.page.locator("main img")).to_have_count(0)
    assert viewer.has_room()


def test_a_failed_list_of_dead_tasks_is_reported(viewer: Viewer) -> None:
    viewer.answer("/v1/businesses/broken/dead", 500, FAILED)
    viewer.open("businesses/broken/dead")
    expect(viewer.page.locator("main .problem")).to_contain_text("failed unexpectedly")
