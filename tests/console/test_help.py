"""The help page, with every call of the API."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from duewheel import __version__
from duewheel.api.wheel_calls import API_DOCUMENT
from tests.console.viewer import Viewer
from tests.support.service import Service

DOCUMENT: dict[str, Any] = json.loads(API_DOCUMENT.read_text("utf-8"))
CALLS = [call for path in DOCUMENT["paths"].values() for call in path.values()]
UNANSWERED = "Failed to load resource: net::ERR_FAILED"
MARKUP = "<img src=x onerror=alert(1)>"


def details(page: Page, name: str) -> Locator:
    return page.locator(f"details.call[data-call={name}]")


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def opened(viewer: Viewer, name: str) -> Locator:
    viewer.open(f"help?call={name}")
    call = details(viewer.page, name)
    expect(call.get_by_role("heading", name="Answers")).to_be_visible()
    return call


def test_every_call_is_listed_in_the_group_of_its_tag(viewer: Viewer) -> None:
    viewer.open("help")
    expect(viewer.page.get_by_text(f"{len(CALLS)} calls", exact=True)).to_be_visible()
    expect(viewer.page.locator("details.call")).to_have_count(len(CALLS))
    for tag in DOCUMENT["tags"]:
        group = viewer.page.locator("main section").filter(
            has=viewer.page.get_by_role("heading", name=tag["name"], exact=True)
        )
        of_tag = [call for call in CALLS if tag["name"] in call["tags"]]
        expect(group.locator("details.call")).to_have_count(len(of_tag))


def test_the_version_of_the_service_is_shown(viewer: Viewer, service: Service) -> None:
    viewer.open("help")
    expect(viewer.fact("Version")).to_have_text(service.call("GET", "/v1/health")[1]["version"])


def test_a_call_is_found_and_opened_by_the_keyboard_alone(viewer: Viewer) -> None:
    viewer.open("help")
    page = viewer.page
    page.get_by_label("Find calls by words").focus()
    page.keyboard.type("Task ENDED again")
    expect(page.locator("details.call:visible")).not_to_have_count(len(CALLS))
    expect(details(page, "redrive_task")).to_be_visible()
    expect(details(page, "read_wheel")).to_be_hidden()
    page.keyboard.press("Tab")
    first = page.locator("details.call:visible").first
    expect(first.locator("summary").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(first.get_by_role("heading", name="Answers")).to_be_visible()


def test_a_call_is_found_by_a_member_of_its_body(viewer: Viewer) -> None:
    viewer.open("help?find=creates_per_second")
    expect(details(viewer.page, "configure_business")).to_be_visible()
    expect(viewer.page.get_by_text(f"1 of {len(CALLS)} calls")).to_be_visible()


def test_the_search_text_is_part_of_the_address(viewer: Viewer) -> None:
    viewer.open("help")
    viewer.page.get_by_label("Find calls by words").fill("audit")
    expect(details(viewer.page, "audit")).to_be_visible()
    viewer.page.reload()
    expect(viewer.page.get_by_label("Find calls by words")).to_have_value("audit")
    expect(details(viewer.page, "create_task")).to_be_hidden()


def test_a_search_without_a_match_is_reported(viewer: Viewer) -> None:
    viewer.open("help?find=nosuchword")
    expect(viewer.page.get_by_text("No call has all of these words.")).to_be_visible()
    expect(viewer.page.locator("details.call:visible")).to_have_count(0)


def test_an_address_opens_its_call_and_the_call_shows_its_address(viewer: Viewer) -> None:
    call = opened(viewer, "list_tasks")
    expect(call.locator("summary").first).to_be_focused()
    expect(call.get_by_role("link", name="Link to this call")).to_have_attribute(
        "href", "#/help?call=list_tasks"
    )
    expect(viewer.page.locator("details.call[open]")).to_have_count(1)


def test_a_call_shows_its_parameters_and_their_bounds(viewer: Viewer) -> None:
    parameters = opened(viewer, "list_tasks").locator("ul.members").first.locator("li")
    expect(parameters.filter(has_text="biz_type")).to_contain_text("if it is left out")
    expect(parameters.filter(has_text="limit")).to_contain_text(
        "in the query, integer, from 1 to 100, by default 50"
    )
    expect(parameters.filter(has_text="status")).to_contain_text('"pending" or "delivered"')
    expect(parameters.filter(has_text="due_from")).to_contain_text("Inclusive.")


def test_a_body_is_shown_with_its_conditions_and_references(viewer: Viewer) -> None:
    call = opened(viewer, "create_task")
    expect(call.get_by_text("Exactly one of due_at, due_ms, delay_seconds.")).to_be_visible()
    call.locator("summary").filter(has_text="Retry").first.click()
    call.locator("summary").filter(has_text="RetryLadder").click()
    expect(call.get_by_text("array of number, from 0 to 604,800")).to_be_visible()


def test_an_optional_condition_is_shown_as_at_most(viewer: Viewer) -> None:
    call = opened(viewer, "change_task")
    expect(call.get_by_text("At most one of due_at, due_ms, delay_seconds.")).to_be_visible()


def test_examples_of_requests_and_answers_are_shown_unchanged(viewer: Viewer) -> None:
    call = opened(viewer, "create_task")
    call.locator("summary").filter(has_text="Example create-with-all-fields").first.click()
    shown = call.locator("pre:visible")
    assert json.loads(shown.inner_text())["key"] == "order-18:close"
    call.locator("summary").filter(has_text="201 Created").click()
    call.locator("summary:visible").filter(has_text="Example create").last.click()
    expect(call.locator("pre:visible").last).to_contain_text('"task_id"')


def test_every_call_can_be_opened(viewer: Viewer) -> None:
    viewer.open("help")
    expect(viewer.page.locator("details.call")).to_have_count(len(CALLS))
    viewer.page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    answers = viewer.page.locator("details.call").get_by_role("heading", name="Answers")
    expect(answers).to_have_count(len(CALLS))


def test_every_problem_is_listed_with_its_status(viewer: Viewer) -> None:
    viewer.open("help")
    types = {
        schema["properties"]["type"]["const"]
        for schema in DOCUMENT["components"]["schemas"].values()
        if "const" in schema.get("properties", {}).get("type", {})
    }
    problems = {name for name in types if name.startswith("urn:duewheel:problem:")}
    expect(viewer.rows("Problems")).to_have_count(len(problems))
    too_late = viewer.rows("Problems").filter(has_text="urn:duewheel:problem:too-late")
    expect(too_late).to_contain_text("409")
    expect(too_late).to_contain_text("its call may be under way")


def test_the_keyboard_shortcuts_are_listed(viewer: Viewer) -> None:
    viewer.open("help")
    expect(viewer.fact("Esc")).to_contain_text("leaves a dialog")


def test_links_stay_in_the_console_and_the_named_documents_exist(viewer: Viewer) -> None:
    opened(viewer, "create_task")
    hrefs = viewer.page.eval_on_selector_all(
        "a[href]", "all => all.map(a => a.getAttribute('href'))"
    )
    assert [href for href in hrefs if not href.startswith("#")] == []
    documents = viewer.page.locator("dt a.mono").all_inner_texts()
    assert documents
    assert [name for name in documents if not (Path(__file__).parents[2] / name).is_file()] == []


def test_a_document_that_cannot_be_loaded_is_reported(
    viewer: Viewer, complaints: list[str]
) -> None:
    viewer.page.route("**/v1/openapi.json", lambda route: route.abort())
    viewer.open("help")
    expect(viewer.page.get_by_role("alert")).to_contain_text("The service does not answer")
    expect(viewer.fact("Version")).to_have_text(__version__)
    viewer.page.unroute("**/v1/openapi.json")
    viewer.open("help?find=")
    expect(viewer.page.locator("details.call")).to_have_count(len(CALLS))
    assert complaints == [UNANSWERED]
    complaints.clear()


def test_markup_is_shown_as_text(viewer: Viewer) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    call = document["paths"]["/v1/wheel"]["get"]
    call["summary"] = call["description"] = f"{MARKUP} `{MARKUP}`"
    call["responses"]["200"]["content"]["application/json"]["examples"] = {
        MARKUP: {"value": MARKUP}
    }
    document["info"]["description"] = MARKUP
    document["components"]["schemas"]["Wheel"]["properties"][MARKUP] = {"enum": [MARKUP]}
    viewer.page.route("**/v1/openapi.json", lambda route: route.fulfill(json=document))
    wheel = opened(viewer, "read_wheel")
    expect(wheel.locator("summary").first).to_contain_text(MARKUP)
    wheel.locator("summary").filter(has_text="200 OK").click()
    expect(wheel.locator("li").filter(has_text=MARKUP)).to_be_visible()
    wheel.locator("summary").filter(has_text="Example").click()
    expect(wheel.locator("pre")).to_have_text(MARKUP)
    expect(viewer.page.locator("main img")).to_have_count(0)


def test_the_page_fits_a_phone(viewer: Viewer) -> None:
    page = viewer.page
    page.set_viewport_size({"width": 360, "height": 740})
    viewer.open("help")
    expect(page.locator("details.call")).to_have_count(len(CALLS))
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    answers = page.locator("details.call").get_by_role("heading", name="Answers")
    expect(answers).to_have_count(len(CALLS))
    assert fits(page)
