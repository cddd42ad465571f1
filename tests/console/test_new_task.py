"""The creation of a task in the console: repeats create one task, the payload is sent unchanged."""

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.viewer import Viewer
from tests.support.service import Service

MARKUP = "<img src=x onerror=alert(1)>"


def test_a_double_click_makes_one_task(viewer: Viewer, service: Service, business: str) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Payload").fill('{"order": 17}')
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/shop")
    viewer.page.get_by_role("button", name="Create").dblclick()
    expect(viewer.fact("Business")).to_have_text(business)
    expect(viewer.page.locator("pre.payload")).to_have_text('{"order": 17}')
    assert "created" in viewer.message()
    assert len(_all(service, business)) == 1


def test_a_task_whose_answer_was_lost_is_not_created_twice(
    viewer: Viewer, service: Service, business: str
) -> None:
    viewer.lose_first_answer("/v1/tasks")
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/shop")
    viewer.press("Create")
    expect(viewer.page.get_by_role("alert")).to_contain_text("took too long")
    viewer.press("Create")
    expect(viewer.fact("Business")).to_have_text(business)
    assert len(_all(service, business)) == 1


def test_a_payload_is_sent_unchanged(viewer: Viewer, service: Service, business: str) -> None:
    payload = '{"b": 1e400, "a": 12345678901234567890, "a": 1.0}'
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Payload").fill(payload)
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/{business}")
    viewer.field("In").fill("3")
    viewer.field("Unit").select_option("1")
    viewer.press("Create")
    expect(viewer.page.locator("pre.payload")).to_have_text(payload)
    service.advance(5)
    (request,) = service.received(business)
    assert request["body"] == payload


def test_a_tolerance_gives_the_task_a_shared_second(
    viewer: Viewer, service: Service, business: str
) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/{business}")
    viewer.field("Called later by up to (seconds)").fill("60")
    viewer.press("Create")
    expect(viewer.fact("Tolerance")).to_contain_text("up to 1 min")
    (task,) = _all(service, business)
    assert task["tolerance_seconds"] == 60
    assert task["due_at"] < task["next_at"]


def test_a_task_gets_the_priority_that_was_chosen(
    viewer: Viewer, service: Service, business: str
) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/{business}")
    viewer.choose("Priority", "low")
    viewer.press("Create")
    expect(viewer.fact("Priority")).to_have_text("low")
    (task,) = _all(service, business)
    assert task["priority"] == "low"


def test_a_task_gets_the_time_that_its_call_may_take(
    viewer: Viewer, service: Service, business: str
) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/{business}")
    viewer.field("A call may take (seconds)").fill("31")
    viewer.press("Create")
    expect(viewer.page.locator("[data-field='callback.timeout_seconds']")).to_contain_text(
        "0.1 to 30"
    )
    viewer.field("A call may take (seconds)").fill("2.5")
    viewer.press("Create")
    expect(viewer.fact("timeout_seconds")).to_have_text("2.5")
    (task,) = _all(service, business)
    assert task["callback"]["timeout_seconds"] == 2.5


def test_a_task_gets_its_flow_key(viewer: Viewer, service: Service, business: str) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/{business}")
    viewer.field("Flow key").fill("customer-7")
    viewer.press("Create")
    expect(viewer.fact("Flow key")).to_have_text("customer-7")
    (task,) = _all(service, business)
    assert task["flow_key"] == "customer-7"


def test_a_task_gets_its_labels(viewer: Viewer, service: Service, business: str) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/{business}")
    viewer.field("Labels").fill("team")
    viewer.press("Create")
    expect(viewer.page.locator("[data-field=labels]")).to_contain_text("team is no name:value.")
    viewer.field("Labels").fill("team:billing\n\nat:09:30")
    viewer.press("Create")
    expect(viewer.fact("Labels")).to_contain_text("at:09:30")
    (task,) = _all(service, business)
    assert task["labels"] == {"team": "billing", "at": "09:30"}


def test_a_task_says_who_is_told_of_its_outcome(
    viewer: Viewer, service: Service, business: str
) -> None:
    callback = {"url": f"{service.url}/_local/inbox/{business}-told"}
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/{business}")
    viewer.field("Told of outcomes (JSON)").fill('{"outcomes": ["dead"')
    viewer.press("Create")
    expect(viewer.page.get_by_text("This is no JSON").first).to_be_visible()
    told = {"outcomes": ["dead", "delivered"], "callback": callback}
    viewer.field("Told of outcomes (JSON)").fill(json.dumps(told))
    viewer.press("Create")
    expect(viewer.fact("Told of outcomes")).to_contain_text("delivered")
    (task,) = _all(service, business)
    assert task["on_outcome"]["outcomes"] == ["dead", "delivered"]


@pytest.mark.parametrize("payload", ["{order: 17}", '1, "key": "smuggled"', MARKUP])
def test_a_payload_that_is_no_json_is_refused_at_its_field(
    viewer: Viewer, service: Service, business: str, payload: str
) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Payload").fill(payload)
    viewer.press("Create")
    expect(viewer.page.locator("[data-field=payload]")).to_contain_text("This is no JSON")
    expect(viewer.field("Payload")).to_be_focused()
    assert _all(service, business) == []


def test_a_refusal_is_shown_at_the_field_that_it_names(viewer: Viewer, business: str) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.field("Callback URL").fill("ftp://example.com/")
    viewer.press("Create")
    expect(viewer.page.locator("[data-field='callback.url']")).to_contain_text("begin with http")
    expect(viewer.field("Callback URL")).to_be_focused()
    viewer.field("In").fill("-1")
    viewer.press("Create")
    expect(viewer.page.locator("[data-field=delay_seconds]")).to_contain_text("must be from 0")
    expect(viewer.page.locator(".field-problem")).to_have_count(1)


def test_the_key_of_a_live_task_creates_no_second_task(
    viewer: Viewer, service: Service, business: str
) -> None:
    for delay in ("10", "5", "10"):
        viewer.open(f"tasks/new?biz_type={business}&key=order-17:close")
        viewer.field("Callback URL").fill(f"{service.url}/_local/inbox/shop")
        viewer.field("In").fill(delay)
        viewer.press("Create")
        if delay == "5":
            expect(viewer.page.locator("[data-field=key]")).to_contain_text("by another body")
        else:
            expect(viewer.fact("Key")).to_have_text("order-17:close")
    assert "names this task already" in viewer.message()
    assert len(_all(service, business)) == 1


def test_a_task_is_made_for_an_instant_by_the_keyboard_alone(
    viewer: Viewer, service: Service, business: str
) -> None:
    viewer.open("tasks")
    viewer.page.get_by_role("link", name="New task").focus()
    keyboard = viewer.page.keyboard
    keyboard.press("Enter")
    expect(viewer.page.locator("main h1")).to_have_text("New task")
    keyboard.press("Tab")
    keyboard.type(business)
    keyboard.press("Tab")
    expect(viewer.field("Due")).to_be_focused()
    keyboard.press("ArrowDown")
    keyboard.press("Tab")
    keyboard.type("01312030")
    keyboard.press("Tab")
    keyboard.type("040000PM")
    for _ in range(4):
        keyboard.press("Tab")
        if viewer.field("Callback URL").evaluate("it => it === document.activeElement"):
            break
    keyboard.type(f"{service.url}/_local/inbox/shop")
    keyboard.press("Enter")
    expect(viewer.fact("Due")).to_have_text("2030-01-31 16:00:00.000")


def test_the_new_task_form_fits_a_phone(viewer: Viewer) -> None:
    viewer.page.set_viewport_size({"width": 360, "height": 740})
    viewer.open("tasks/new")
    expect(viewer.field("Method")).to_be_visible()
    assert viewer.has_room()


def _all(service: Service, business: str) -> list[dict[str, Any]]:
    return service.call("GET", f"/v1/tasks?biz_type={business}")[1]["tasks"]
