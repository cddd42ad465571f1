"""The search for tasks in the console."""

import re

from playwright.sync_api import Page, Route, expect

from tests.console.tasks_at_hand import MARKUP, batch, created
from tests.console.viewer import Viewer
from tests.support.service import Service

LIST = re.compile(r"/v1/tasks\?")


# The search


def test_the_tasks_of_all_businesses_are_listed_until_one_is_named(
    viewer: Viewer, service: Service, business: str
) -> None:
    for name in (f"{business}-a", f"{business}-b"):
        service.call("PUT", f"/v1/businesses/{name}", {})
        created(service, name, labels={"of": business})
    viewer.open(f"tasks?label=of:{business}")
    expect(viewer.rows("Tasks")).to_have_count(2)
    viewer.rows("Tasks").first.get_by_role("link", name=f"{business}-a", exact=True).click()
    expect(viewer.rows("Tasks")).to_have_count(1)
    expect(viewer.field("Business")).to_have_value(f"{business}-a")


def test_a_page_with_little_says_what_it_looked_at(viewer: Viewer, business: str) -> None:
    looked_at = {"records": 500, "businesses": 10}
    viewer.answer("/v1/tasks", 200, {"tasks": [], "cursor": "more", "looked_at": looked_at})
    viewer.open("tasks?status=dead")
    expect(viewer.section("Found")).to_contain_text("but the list goes on")
    expect(viewer.section("Found")).to_contain_text("looked at 500 tasks of 10 businesses")


def test_a_search_is_part_of_the_address_and_of_the_history(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business)
    gone = created(service, business, 700)
    service.call("DELETE", f"/v1/tasks/{gone['task_id']}")
    viewer.open("tasks")
    viewer.field("Business").fill(business)
    viewer.press("Search")
    expect(viewer.rows("Tasks")).to_have_count(2)
    viewer.field("Status").select_option("pending")
    viewer.press("Search")
    expect(viewer.rows("Tasks")).to_have_count(1)
    expect(viewer.section("Found")).to_be_focused()
    expect(viewer.rows("Tasks")).to_contain_text(task["task_id"])
    expect(viewer.page).to_have_url(re.compile(rf"biz_type={business}.*status=pending"))
    viewer.page.go_back()
    expect(viewer.rows("Tasks")).to_have_count(2)
    expect(viewer.field("Status")).to_have_value("")


def test_businesses_with_settings_are_suggested(
    viewer: Viewer, service: Service, business: str
) -> None:
    service.call("PUT", f"/v1/businesses/{business}", {"retention_days": 7})
    viewer.open("tasks")
    expect(viewer.page.locator(f"datalist option[value='{business}']")).to_have_count(1)


def test_a_search_works_without_suggestions(
    viewer: Viewer, service: Service, business: str
) -> None:
    created(service, business)
    refusal = {"title": "The caller may not do this", "detail": "No.", "status": 403}
    viewer.answer("/v1/businesses", 403, refusal)
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.page.locator(".search")).to_contain_text("None can be suggested.")
    expect(viewer.rows("Tasks")).to_have_count(1)


def test_tasks_can_be_sorted_by_latest_due_instant(
    viewer: Viewer, service: Service, business: str
) -> None:
    early, late = created(service, business, 60), created(service, business, 120)
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.rows("Tasks").first).to_contain_text(early["task_id"])
    viewer.field("Order").select_option("desc")
    viewer.press("Search")
    expect(viewer.rows("Tasks").first).to_contain_text(late["task_id"])


def test_a_list_is_filtered_by_a_click_on_a_label_and_a_second_one_narrows_it(
    viewer: Viewer, service: Service, business: str
) -> None:
    both = created(service, business, labels={"team": "billing", "order": "17"})
    created(service, business, 700, labels={"team": "billing"})
    created(service, business, 800)
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.rows("Tasks")).to_have_count(3)
    viewer.rows("Tasks").first.get_by_role("link", name="team:billing").click()
    expect(viewer.rows("Tasks")).to_have_count(2)
    viewer.rows("Tasks").first.get_by_role("link", name="order:17").click()
    expect(viewer.rows("Tasks")).to_have_count(1)
    expect(viewer.field("Labels")).to_have_value("team:billing\norder:17")
    expect(viewer.rows("Tasks")).to_contain_text(both["task_id"])
    viewer.field("Labels").fill("team:sales")
    viewer.press("Search")
    expect(viewer.section("Found")).to_contain_text("No task is as you look for it.")
    viewer.field("Labels").fill("sales")
    viewer.press("Search")
    expect(viewer.section("Found")).to_contain_text("must be a name and a value")


def test_the_labels_of_a_task_lead_to_those_that_have_them(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business, labels={"team": "billing: é"})
    created(service, business)
    viewer.open(f"tasks/{task['task_id']}")
    viewer.fact("Labels").get_by_role("link", name="team:billing: é").click()
    expect(viewer.rows("Tasks")).to_have_count(1)


def test_the_next_hour_is_one_click_and_in_utc_in_the_address(
    viewer: Viewer, service: Service, business: str
) -> None:
    soon = created(service, business, 1800)
    created(service, business, 7200)
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.rows("Tasks")).to_have_count(2)
    viewer.press("Next hour")
    expect(viewer.rows("Tasks")).to_have_count(1)
    expect(viewer.rows("Tasks")).to_contain_text(soon["task_id"])
    expect(viewer.page).to_have_url(re.compile(r"due_from=[^&]*Z&due_to=[^&]*Z"))


def test_today_is_the_viewers_day(viewer: Viewer, business: str) -> None:
    viewer.open(f"tasks?biz_type={business}")
    viewer.press("Today")
    midnight = r"\d{4}-\d\d-\d\dT16%3A00%3A00"  # in Shanghai
    expect(viewer.page).to_have_url(re.compile(f"due_from={midnight}.*due_to={midnight}"))


def test_instants_are_read_in_the_viewers_zone(
    viewer: Viewer, service: Service, business: str
) -> None:
    path = f"tasks?biz_type={business}"
    service.create("shop", biz_type=business, due_at="2030-01-31T08:00:00Z")
    viewer.open(path)
    viewer.field("Due from").fill("2030-01-31T16:00:00")
    viewer.field("Due before").fill("2030-01-31T16:00:01")
    viewer.press("Search")
    expect(viewer.page).to_have_url(re.compile(r"due_from=2030-01-31T08%3A00%3A00"))
    expect(viewer.rows("Tasks")).to_contain_text("2030-01-31 16:00:00")
    expect(viewer.rows("Tasks").locator("time")).to_have_attribute(
        "title", "2030-01-31T08:00:00.000Z"
    )
    expect(viewer.field("Due from")).to_have_value("2030-01-31T16:00")


def test_an_invalid_search_is_refused_with_the_message_of_the_service(
    viewer: Viewer, business: str
) -> None:
    viewer.open(
        f"tasks?biz_type={business}&due_from=2030-01-02T00:00:00Z&due_to=2030-01-01T00:00:00Z"
    )
    expect(viewer.section("Found")).to_contain_text("must be later than due_from")


def test_a_task_is_found_by_its_id_and_back_leads_to_the_search(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business)
    viewer.open(f"tasks?biz_type={business}")
    viewer.field("Task id or key").fill(task["task_id"])
    viewer.press("Search")
    expect(viewer.page).to_have_url(re.compile(rf"#/tasks/{task['task_id']}$"))
    expect(viewer.fact("Task id")).to_have_text(task["task_id"])
    viewer.page.go_back()
    expect(viewer.rows("Tasks")).to_have_count(1)


def test_a_task_is_found_by_its_business_and_key(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business, key="order-17:close")
    viewer.open(f"tasks?biz_type={business}&find=order-17:close")
    expect(viewer.fact("Task id")).to_have_text(task["task_id"])


def test_a_text_that_names_no_task_is_reported(viewer: Viewer, business: str) -> None:
    viewer.open("tasks")
    for name in ("order-17:lost", MARKUP, "AQG5dxdnQAAACfpAZj_rkI-wgGT2"):
        viewer.field("Business").fill("")
        viewer.field("Task id or key").fill(name)
        viewer.press("Search")
        found = viewer.section("Found")
        expect(found).to_contain_text(f"{name} is no task's id. If it is a key")
        viewer.field("Business").fill(business)
        viewer.press("Search")
        expect(found).to_contain_text(f"{name} is no task's id, nor a key of {business}")


def test_an_impossible_business_is_shown_as_text_in_the_refusal(viewer: Viewer) -> None:
    viewer.open("tasks")
    viewer.field("Business").fill(MARKUP)
    viewer.press("Search")
    expect(viewer.section("Found").get_by_role("alert")).to_contain_text("biz_type")
    expect(viewer.field("Business")).to_have_value(MARKUP)
    expect(viewer.page.locator("main img")).to_have_count(0)


def test_the_search_can_be_cleared(viewer: Viewer) -> None:
    viewer.open("tasks")
    viewer.field("Key prefix").fill("order-")
    viewer.press("Clear")
    expect(viewer.field("Key prefix")).to_have_value("")


def test_a_search_without_results_is_reported(viewer: Viewer, business: str) -> None:
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.section("Found")).to_have_text("No task is as you look for it.")


# Pages


def test_a_long_list_is_paged_forwards_and_backwards(
    viewer: Viewer, service: Service, business: str
) -> None:
    batch(service, business, 51)
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.rows("Tasks")).to_have_count(50)
    viewer.page.get_by_role("link", name="Next page").click()
    expect(viewer.rows("Tasks")).to_have_count(1)
    expect(viewer.section("Found")).to_contain_text("End of the list")
    viewer.page.go_back()
    expect(viewer.rows("Tasks")).to_have_count(50)


def test_empty_pages_are_skipped(viewer: Viewer, service: Service, business: str) -> None:
    task = created(service, business)

    def first_pages_empty(route: Route) -> None:
        if "cursor=passed" in route.request.url:
            route.fulfill(json={"tasks": [task], "cursor": None})
        else:
            route.fulfill(json={"tasks": [], "cursor": "passed"})

    viewer.page.route(LIST, first_pages_empty)
    viewer.open(f"tasks?biz_type={business}&status=pending")
    expect(viewer.rows("Tasks")).to_have_count(1)


def test_after_many_empty_pages_the_user_continues_by_hand(viewer: Viewer, business: str) -> None:
    asked: list[str] = []

    def empty(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(json={"tasks": [], "cursor": f"c{len(asked)}"})

    viewer.page.route(LIST, empty)
    viewer.open(f"tasks?biz_type={business}&status=dead")
    expect(viewer.section("Found")).to_contain_text("Nothing on this page, but the list goes on.")
    expect(viewer.page.get_by_role("link", name="Next page")).to_have_attribute(
        "href", re.compile("cursor=c5$")
    )


def test_a_cursor_of_another_search_is_refused(viewer: Viewer, business: str) -> None:
    viewer.open(f"tasks?biz_type={business}&cursor=AAAA")
    expect(viewer.section("Found").get_by_role("alert")).to_contain_text("cursor")


# Failures of the list


def test_without_the_list_index_the_page_shows_how_to_enable_it(
    viewer: Viewer, business: str
) -> None:
    refusal = {
        "type": "urn:duewheel:problem:list-index-off",
        "title": "This deployment keeps no index to list tasks by",
        "status": 409,
        "detail": "Deploy the stack with the parameter ListIndex=on.",
    }
    viewer.answer("/v1/tasks", 409, refusal)
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.section("Found")).to_contain_text("Deploy the stack with the parameter ListIndex")


def test_the_refusal_of_a_business_replaces_its_list(viewer: Viewer, business: str) -> None:
    refusal = {"type": "urn:duewheel:problem:not-permitted", "detail": "This needs a right."}
    viewer.answer("/v1/tasks", 403, refusal)
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.section("Found").get_by_role("alert")).to_contain_text("This needs a right.")
    expect(viewer.field("Business")).to_have_value(business)


def test_a_failed_refresh_keeps_the_list_until_the_next_one(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    created(service, business)
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.rows("Tasks")).to_have_count(1)
    viewer.answer("/v1/tasks", 503, {"message": "Service Unavailable"})
    still.clock.run_for(10_000)
    expect(viewer.section("Found").get_by_role("alert")).to_contain_text("cannot answer now")
    expect(viewer.rows("Tasks")).to_have_count(1)
    still.unroute_all()
    still.clock.run_for(10_000)
    expect(viewer.section("Found").get_by_role("alert")).to_have_count(0)


def test_a_refresh_shows_changes_and_keeps_the_focus(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    first, second = created(service, business, 60), created(service, business, 120)
    viewer.open(f"tasks?biz_type={business}")
    focused = viewer.page.get_by_role("link", name=second["task_id"])
    focused.focus()
    service.call("DELETE", f"/v1/tasks/{first['task_id']}")
    created(service, business, 90)
    still.clock.run_for(10_000)
    expect(viewer.rows("Tasks")).to_have_count(3)
    expect(viewer.rows("Tasks").first).to_contain_text("cancelled")
    expect(focused).to_be_focused()


def test_the_column_of_errors_says_that_it_has_reasons_too(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business)
    service.call("DELETE", f"/v1/tasks/{task['task_id']}")
    reason = service.task(task)["reason"]
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.rows("Tasks")).to_have_count(1)
    column = viewer.section("Tasks").get_by_role("columnheader").all_inner_texts()
    cell = viewer.rows("Tasks").first.locator("td").nth(column.index("Last error or reason"))
    expect(cell).to_have_text(reason)


# At any width


def test_the_task_list_fits_a_phone(viewer: Viewer, service: Service, business: str) -> None:
    key = "k" * 128
    created(service, business, key=key)
    viewer.page.set_viewport_size({"width": 360, "height": 740})
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.rows("Tasks")).to_have_count(1)
    assert viewer.has_room()
    viewer.open(f"tasks?biz_type={business}&key_prefix={key}")
    viewer.press(f"Cancel all under {key}")
    expect(viewer.page.get_by_role("dialog")).to_be_visible()
    assert viewer.has_room()
    assert viewer.page.get_by_role("dialog").evaluate("it => it.scrollWidth <= it.clientWidth")
