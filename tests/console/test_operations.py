"""Operations on many tasks in the console: started from the list of tasks, and followed."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.console.tasks_at_hand import MARKUP, batch, created
from tests.console.viewer import FAILED, Viewer
from tests.support.service import Service

RUNNING: dict[str, Any] = {
    "operation_id": "shop~0123456789abcdef0123",
    "biz_type": "shop",
    "action": "cancel",
    "filter": {"status": "pending", "key_prefix": "k-"},
    "state": "running",
    "created_at": "2030-01-31T08:00:00.000Z",
    "created_by": "key:ops",
    "updated_at": "2030-01-31T08:00:01.000Z",
    "ended_at": None,
    "looked_at": 1400,
    "changed": 1200,
    "unchanged": 30,
    "refused": 0,
    "total": None,
    "position": "2030-01-31T09:00:00.000Z",
    "last_problem": None,
}
DONE = {**RUNNING, "state": "done", "ended_at": "2030-01-31T08:00:02.000Z"}
PATH = f"/v1/operations/{RUNNING['operation_id']}"
REFUSED = [
    {
        "task_id": "AQG5dxdnQAAA48fN5E11gpkpQwrd",
        "problem": {"title": "It is too late", "detail": f"Cut off. {MARKUP}"},
    }
]


def listed(service: Service, business: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]]
    found = service.call("GET", f"/v1/tasks?biz_type={business}{query}")[1]["tasks"]
    return found


def statuses(service: Service, business: str) -> list[str]:
    return [task["status"] for task in listed(service, business)]


def progress(viewer: Viewer) -> Locator:
    return viewer.section("Progress")


def started(service: Service, business: str, **members: Any) -> dict[str, Any]:
    """An operation of another user, at its end."""
    body = {"biz_type": business, "action": "cancel", **members}
    status, operation = service.call("POST", "/v1/operations", body)
    assert status == 201, operation
    while operation["state"] == "running":
        _, operation = service.call("GET", f"/v1/operations/{operation['operation_id']}")
    return dict(operation)


# From the list of tasks


def test_selected_tasks_are_cancelled_and_the_others_stay(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 3)
    viewer.open(f"tasks?biz_type={business}")
    for number in (0, 2):
        viewer.rows("Tasks").nth(number).get_by_role("checkbox").check()
    viewer.choose("Action", "Cancel")
    viewer.press("Apply to 2 selected")
    expect(viewer.dialog()).to_contain_text(f"Cancel 2 tasks of {business}?")
    viewer.agree("Cancel them")
    expect(progress(viewer)).to_contain_text("2 tasks cancelled.")
    expect(viewer.rows("Tasks")).to_contain_text(["cancelled", "pending", "cancelled"])
    expect(viewer.button("Apply to 0 selected")).to_be_disabled()
    assert statuses(service, business) == ["cancelled", "pending", "cancelled"]
    viewer.press("Close")
    expect(progress(viewer)).to_have_count(0)


def test_all_that_match_are_counted_first_and_those_on_other_pages_are_among_them(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 60)
    other = created(service, business, key="other", labels={"team": "a"})
    viewer.open(f"tasks?biz_type={business}&status=pending&key_prefix=k-")
    expect(viewer.rows("Tasks")).to_have_count(50)
    viewer.choose("Action", "Cancel")
    viewer.press("Apply to all that match")
    expect(viewer.dialog()).to_contain_text(f"Cancel 60 tasks of {business}?")
    assert set(statuses(service, business)) == {"pending"}
    viewer.agree("Cancel them")
    expect(progress(viewer)).to_contain_text("60 tasks cancelled.")
    expect(viewer.section("Found")).to_contain_text("No task is as you look for it.")
    assert service.task(other)["status"] == "pending"


def test_the_filter_of_the_list_is_the_filter_of_the_operation(
    viewer: Viewer, business: str
) -> None:
    sent: list[dict[str, Any]] = []

    def answer(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(status=201, json={**DONE, "dry_run": True, "changed": 0})

    task = {"task_id": "AQG5", "biz_type": business, "status": "pending", "attempts": 0}
    viewer.answer("/v1/tasks", 200, {"tasks": [task], "cursor": None})
    viewer.page.route("**/v1/operations", answer)
    due = "due_from=2030-01-31T08:00:00Z&due_to=2030-02-01T08:00:00Z"
    words = f"status=pending&key_prefix=k-&flow_key=c%2F7&timer_id=17&label=team:a%0An:1&{due}"
    viewer.open(f"tasks?biz_type={business}&{words}")
    viewer.choose("Action", "Cancel")
    viewer.press("Apply to all that match")
    expect(viewer.outcome()).to_contain_text("can change no task")
    assert sent == [
        {
            "biz_type": business,
            "action": "cancel",
            "filter": {
                "status": "pending",
                "key_prefix": "k-",
                "flow_key": "c/7",
                "timer_id": "17",
                "due_from": "2030-01-31T08:00:00Z",
                "due_to": "2030-02-01T08:00:00Z",
                "labels": {"team": "a", "n": "1"},
            },
            "dry_run": True,
        }
    ]


def test_tasks_are_moved_by_a_span_each_from_its_own_instant(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 2)
    before = [task["due_at"] for task in listed(service, business)]
    viewer.open(f"tasks?biz_type={business}")
    viewer.choose("Action", "Reschedule")
    viewer.press("Apply to all that match")
    viewer.fill("By", "2")
    viewer.choose("Unit", "hours")
    viewer.agree("Count them")
    expect(viewer.dialog()).to_contain_text(f"Reschedule 2 tasks of {business}?")
    viewer.fill("At most (tasks a second)", "100")
    viewer.agree("Reschedule them")
    expect(progress(viewer)).to_contain_text("2 tasks rescheduled.")
    after = [task["due_at"] for task in listed(service, business)]
    assert [text[11:13] for text in after] != [text[11:13] for text in before]
    progress(viewer).get_by_role("link", name="The operation").click()
    expect(viewer.fact("By")).to_have_text("2 h later")
    expect(viewer.fact("Pace")).to_have_text("at most 100 a second")


def test_selected_tasks_are_moved_to_one_instant(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 2)
    viewer.open(f"tasks?biz_type={business}")
    viewer.press("Select all shown")
    viewer.choose("Action", "Reschedule")
    viewer.press("Apply to 2 selected")
    viewer.dialog().get_by_label("Due", exact=True).select_option(label="at an instant")
    viewer.fill("At", "2030-01-31T16:00:00")  # in Shanghai
    viewer.agree("Reschedule them")
    expect(progress(viewer)).to_contain_text("2 tasks rescheduled.")
    assert {task["due_at"] for task in listed(service, business)} == {"2030-01-31T08:00:00.000Z"}


def test_no_action_is_preselected(viewer: Viewer, service: Service, business: str) -> None:
    batch(service, business, 2)
    viewer.open(f"tasks?biz_type={business}")
    viewer.press("Select all shown")
    for button in ("Apply to 2 selected", "Apply to all that match"):
        expect(viewer.button(button)).to_be_disabled()


def test_a_declined_question_starts_nothing(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 2)
    viewer.open(f"tasks?biz_type={business}")
    viewer.choose("Action", "Cancel")
    viewer.press("Apply to all that match")
    viewer.agree("Leave it")
    expect(viewer.dialog()).to_have_count(0)
    expect(viewer.button("Apply to all that match")).to_be_focused()
    assert statuses(service, business) == ["pending", "pending"]
    _, found = service.call("GET", f"/v1/operations?biz_type={business}")
    assert [one["dry_run"] for one in found["operations"]] == [True]


def test_what_the_service_refuses_is_reported_and_starts_nothing(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 1)
    viewer.open(f"tasks?biz_type={business}")
    viewer.choose("Action", "Redrive")
    viewer.press("Apply to all that match")
    expect(viewer.outcome()).to_contain_text("status")
    viewer.choose("Action", "Cancel")
    viewer.press("Apply to all that match")
    viewer.fill("At most (tasks a second)", "many")
    viewer.agree("Cancel them")
    expect(viewer.outcome()).to_contain_text("per_second")
    assert statuses(service, business) == ["pending"]


def test_a_count_can_be_stopped(viewer: Viewer, business: str) -> None:
    counting = {**RUNNING, "dry_run": True, "changed": 7}
    task = {"task_id": "AQG5", "biz_type": business, "status": "pending", "attempts": 0}
    viewer.answer("/v1/tasks", 200, {"tasks": [task], "cursor": None})
    viewer.answer("/v1/operations", 201, counting)
    viewer.answer(PATH, 200, counting)
    viewer.open(f"tasks?biz_type={business}")
    viewer.choose("Action", "Cancel")
    viewer.press("Apply to all that match")
    expect(viewer.section("Count")).to_contain_text("7 tasks would be cancelled, 30 were so")

    def stop(route: Route) -> None:
        viewer.answer(PATH, 200, {**counting, "state": "stopped"})
        route.fulfill(json={**counting, "state": "stopping"})

    viewer.page.route(f"**{PATH}/stop", stop)
    viewer.press("Stop counting")
    expect(viewer.section("Count")).to_have_count(0)
    expect(viewer.dialog()).to_have_count(0)


def test_leaving_the_page_ends_a_count_and_not_an_operation(viewer: Viewer, business: str) -> None:
    stopped: list[str] = []
    task = {"task_id": "AQG5", "biz_type": business, "status": "pending", "attempts": 0}
    viewer.answer("/v1/tasks", 200, {"tasks": [task], "cursor": None})
    viewer.answer("/v1/operations", 201, {**RUNNING, "dry_run": True})
    viewer.answer(PATH, 200, {**RUNNING, "dry_run": True})

    def stop(route: Route) -> None:
        stopped.append(route.request.url)
        route.fulfill(json=RUNNING)

    viewer.page.route(f"**{PATH}/stop", stop)
    viewer.open(f"tasks?biz_type={business}")
    viewer.choose("Action", "Cancel")
    viewer.press("Apply to all that match")
    expect(viewer.section("Count")).to_be_visible()
    with viewer.page.expect_response(f"**{PATH}/stop"):
        viewer.open("find")
    assert len(stopped) == 1


def test_a_failed_look_is_shown_and_the_operation_is_followed_on(
    viewer: Viewer, business: str, still: Page
) -> None:
    task = {"task_id": "AQG5", "biz_type": business, "status": "pending", "attempts": 0}
    viewer.answer("/v1/tasks", 200, {"tasks": [task], "cursor": None})
    viewer.answer("/v1/operations", 201, RUNNING)
    viewer.answer(PATH, 500, FAILED)
    viewer.open(f"tasks?biz_type={business}")
    viewer.press("Select all shown")
    viewer.choose("Action", "Cancel")
    viewer.press("Apply to 1 selected")
    viewer.agree("Cancel them")
    expect(progress(viewer)).to_contain_text("1,200 of 1 task cancelled, 30 were so already.")
    still.clock.run_for(1000)
    expect(progress(viewer).get_by_role("alert")).to_contain_text("failed unexpectedly")
    viewer.answer(PATH, 200, DONE)
    still.clock.run_for(1000)
    expect(progress(viewer)).to_contain_text("1,200 tasks cancelled")
    expect(progress(viewer).get_by_role("alert")).to_have_count(0)


def test_many_are_changed_only_where_a_business_is_named(
    viewer: Viewer, service: Service, business: str
) -> None:
    service.call("PUT", f"/v1/businesses/{business}", {})
    created(service, business, labels={"of": business})
    viewer.open(f"tasks?label=of:{business}")
    expect(viewer.rows("Tasks")).to_have_count(1)
    expect(viewer.page.get_by_role("group", name="Change many")).to_have_count(0)
    expect(viewer.page.get_by_role("checkbox")).to_have_count(0)
    expect(viewer.section("Found")).to_contain_text("To change many at once, name a business.")


def test_the_actions_are_those_that_the_status_allows(
    viewer: Viewer, service: Service, business: str
) -> None:
    gone = created(service, business)
    service.call("DELETE", f"/v1/tasks/{gone['task_id']}")
    created(service, business)
    options = viewer.field("Action").locator("option")
    viewer.open(f"tasks?biz_type={business}")
    expect(options).to_have_text(
        ["choose one", "Cancel", "Reschedule", "Run", "Pause", "Resume", "Redrive"]
    )
    viewer.open(f"tasks?biz_type={business}&status=pending")
    expect(options).to_have_text(["choose one", "Cancel", "Reschedule", "Run", "Pause", "Resume"])
    viewer.open(f"tasks?biz_type={business}&status=cancelled")
    expect(options).to_have_text(["Redrive"])


def test_the_keyboard_alone_cancels_tasks(viewer: Viewer, service: Service, business: str) -> None:
    batch(service, business, 2)
    viewer.open(f"tasks?biz_type={business}")
    box = viewer.rows("Tasks").nth(1).get_by_role("checkbox")
    box.focus()
    viewer.page.keyboard.press("Space")
    expect(viewer.button("Apply to 1 selected")).to_be_disabled()  # no action is chosen yet
    viewer.field("Action").focus()
    viewer.page.keyboard.type("Cancel")
    expect(viewer.button("Apply to 1 selected")).to_be_enabled()
    viewer.button("Apply to 1 selected").focus()
    viewer.page.keyboard.press("Enter")
    expect(viewer.field("At most (tasks a second)")).to_be_focused()
    viewer.page.keyboard.press("Enter")  # in a field it means the action
    expect(progress(viewer)).to_contain_text("1 task cancelled.")
    assert statuses(service, business) == ["pending", "cancelled"]


def test_a_refresh_keeps_the_selection_and_the_action(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    batch(service, business, 2)
    viewer.open(f"tasks?biz_type={business}")
    viewer.rows("Tasks").first.get_by_role("checkbox").check()
    viewer.choose("Action", "Run")
    created(service, business, 30)
    still.clock.run_for(10_000)
    expect(viewer.rows("Tasks")).to_have_count(3)
    expect(viewer.button("Apply to 1 selected")).to_be_enabled()
    expect(viewer.field("Action")).to_have_value("run")
    expect(viewer.rows("Tasks").nth(1).get_by_role("checkbox")).to_be_checked()


# One operation


def test_an_operation_shows_its_request_and_what_it_could_not_change(
    viewer: Viewer, service: Service, business: str
) -> None:
    tasks = [created(service, business), created(service, business, 1)]
    service.advance(5)
    ids = [task["task_id"] for task in tasks]
    operation = started(service, business, ids=ids)
    viewer.open(f"operations/{operation['operation_id']}")
    assert viewer.heading() == f"Cancel tasks of {business}"
    expect(viewer.section("Progress")).to_have_text("1 task cancelled, 1 refused.")
    expect(viewer.fact("Tasks")).to_have_text("2 tasks by id")
    expect(viewer.rows("Refused tasks")).to_have_count(1)
    expect(viewer.rows("Refused tasks")).to_contain_text([ids[1]])
    expect(viewer.button("Stop")).to_have_count(0)
    viewer.fact("Business").get_by_role("link").click()
    viewer.page.get_by_role("navigation", name="Business").get_by_role(
        "link", name="Operations"
    ).click()
    expect(viewer.rows("Latest")).to_have_count(1)


def test_its_filter_leads_to_the_list_of_the_tasks(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 2)
    created(service, business, labels={"team": "a"})
    chosen = {"status": "pending", "labels": {"team": "a"}, "due_to": "2035-01-01T00:00:00Z"}
    operation = started(service, business, filter=chosen, dry_run=True)
    viewer.open(f"operations/{operation['operation_id']}")
    assert viewer.heading() == f"Count tasks of {business} to cancel"
    expect(viewer.section("Progress")).to_have_text("1 task would be cancelled.")
    viewer.page.get_by_role("link", name="the list of them").click()
    expect(viewer.rows("Tasks")).to_have_count(1)
    expect(viewer.field("Status")).to_have_value("pending")


def test_a_running_operation_is_followed_and_stopped(viewer: Viewer, still: Page) -> None:
    viewer.answer(PATH, 200, RUNNING)
    viewer.open(f"operations/{RUNNING['operation_id']}")
    expect(viewer.section("Progress")).to_contain_text("1,200 tasks cancelled, 30 were so already.")
    expect(viewer.section("Progress")).to_contain_text("now at those due at 2030-01-31 17:00:00")
    viewer.answer(PATH, 200, {**RUNNING, "changed": 1300, "refused": 1})
    viewer.answer(f"{PATH}/refused", 200, {"refused": REFUSED, "cursor": None})
    still.clock.run_for(1000)
    expect(viewer.section("Progress")).to_contain_text("1,300 tasks cancelled")
    expect(viewer.rows("Refused tasks")).to_contain_text(["It is too late"])
    expect(viewer.page.locator("main img")).to_have_count(0)
    viewer.answer(f"{PATH}/stop", 200, {**RUNNING, "state": "stopping", "refused": 1})
    viewer.press("Stop")
    viewer.agree("Stop it")
    expect(viewer.button("Stop")).to_have_count(0)
    viewer.answer(PATH, 200, {**DONE, "state": "stopped", "refused": 1})
    still.clock.run_for(1000)
    expect(viewer.page.locator(".head .badge")).to_have_text("stopped")


def test_why_an_operation_failed_is_shown(viewer: Viewer) -> None:
    failed = {**DONE, "state": "failed", "last_problem": f"The index is off. {MARKUP}"}
    viewer.answer(PATH, 200, failed)
    viewer.open(f"operations/{RUNNING['operation_id']}")
    expect(viewer.section("Progress")).to_contain_text(f"The index is off. {MARKUP}")
    expect(viewer.page.locator("main img")).to_have_count(0)


def test_refused_tasks_are_paged(viewer: Viewer) -> None:
    viewer.answer(PATH, 200, {**DONE, "refused": 2})
    viewer.answer(f"{PATH}/refused", 200, {"refused": REFUSED, "cursor": "more"})
    viewer.open(f"operations/{RUNNING['operation_id']}")
    viewer.page.get_by_role("link", name="Next page").click()
    expect(viewer.page.get_by_role("link", name="First page")).to_be_visible()
    expect(viewer.rows("Refused tasks")).to_have_count(1)


def test_an_unknown_operation_is_reported(viewer: Viewer) -> None:
    viewer.open(f"operations/{RUNNING['operation_id']}")
    expect(viewer.page.locator(".empty")).to_contain_text("There is no such operation.")


def test_a_failed_look_at_an_operation_is_reported(viewer: Viewer, still: Page) -> None:
    viewer.answer(PATH, 200, RUNNING)
    viewer.open(f"operations/{RUNNING['operation_id']}")
    expect(viewer.button("Stop")).to_be_visible()
    viewer.answer(PATH, 500, FAILED)
    still.clock.run_for(1000)
    expect(viewer.page.locator("main .problem")).to_contain_text("failed unexpectedly")
    expect(viewer.section("Progress")).to_be_visible()


# Many operations


def test_running_operations_are_first_and_filters_are_part_of_the_address(
    viewer: Viewer, service: Service, business: str
) -> None:
    created(service, business)
    started(service, business, filter={})
    viewer.open("operations")
    viewer.fill("Business", business)
    viewer.press("Filter")
    expect(viewer.rows("Latest")).to_contain_text(["1 task cancelled"])
    viewer.choose("State", "failed")
    viewer.press("Filter")
    expect(viewer.page.locator(".empty")).to_contain_text("No operation is as you look for it.")
    viewer.page.go_back()
    expect(viewer.rows("Latest")).to_have_count(1)


def test_an_operation_that_runs_is_shown_once_and_above_the_others(viewer: Viewer) -> None:
    page = {"operations": [DONE | {"operation_id": "shop~1"}, RUNNING], "cursor": None}
    viewer.answer("/v1/operations", 200, page)
    viewer.page.route(
        "**/v1/operations?*state=running*",
        lambda route: route.fulfill(json={"operations": [RUNNING], "cursor": None}),
    )
    viewer.open("operations")
    expect(viewer.rows("Under way")).to_have_count(1)
    expect(viewer.rows("Under way").get_by_role("progressbar")).to_be_visible()
    expect(viewer.rows("Latest")).to_have_count(1)
    viewer.rows("Under way").get_by_role("link", name="Cancel").click()
    expect(viewer.page.get_by_role("heading", level=1)).to_be_visible()


def test_an_empty_list_of_operations_is_reported(viewer: Viewer) -> None:
    viewer.answer("/v1/operations", 200, {"operations": [], "cursor": None})
    viewer.open("operations")
    expect(viewer.page.locator(".empty")).to_contain_text("no operation in the last 30 days")


@pytest.mark.parametrize("path", ["operations", "operations/shop~0123456789abcdef0123"])
def test_operations_fit_a_phone(viewer: Viewer, path: str) -> None:
    long = {**RUNNING, "created_by": "arn:aws:sts::123456789012:assumed-role/" + "x" * 60}
    long |= {"refused": 1, "filter": {"flow_key": "k" * 128}, "last_problem": "y" * 200}
    viewer.answer("/v1/operations", 200, {"operations": [long], "cursor": "more"})
    viewer.answer(PATH, 200, long)
    viewer.answer(f"{PATH}/refused", 200, {"refused": REFUSED, "cursor": None})
    viewer.page.set_viewport_size({"width": 360, "height": 740})
    viewer.open(path)
    expect(viewer.page.get_by_role("progressbar").first).to_be_visible()
    assert viewer.has_room()
