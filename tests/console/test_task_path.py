"""The path of a task, drawn on its page: what has been, what is now, and what is ahead."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.console.tasks_at_hand import created, dead_task, open_task
from tests.console.viewer import Viewer
from tests.support.service import Service

NAMES = ["Created", "Waited", "Page", "Attempts", "Outcome", "Notices"]
WHEN = "2030-01-31T08:30:00.000Z"


def stages(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("list", name="Path").get_by_role("listitem")


def names(viewer: Viewer) -> list[str]:
    return stages(viewer).locator(".stage").all_inner_texts()


def stage(viewer: Viewer, name: str) -> Locator:
    return stages(viewer).filter(has=viewer.page.locator(f".stage:text-is('{name}')"))


def now(viewer: Viewer) -> Locator:
    return viewer.page.locator("[aria-current=step]")


def test_a_delivered_task_has_come_all_the_way(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business, 10)
    service.advance(15)
    open_task(viewer, task)
    expect(stages(viewer)).to_have_count(6)
    assert names(viewer) == NAMES
    ended = service.call("GET", f"/v1/tasks/{task['task_id']}")[1]
    instants = {
        "Created": task["created_at"],
        "Waited": task["due_at"],
        "Attempts": ended["history"][0]["at"],
        "Outcome": ended["settled_at"],
    }
    for name, at in instants.items():
        expect(stage(viewer, name).locator(".at time")).to_have_attribute("datetime", at)
    expect(stage(viewer, "Waited")).to_contain_text("due 10 s after its creation")
    expect(stage(viewer, "Page")).to_contain_text(re.compile(r"of \d\d:\d\d:\d\dcalled .* later"))
    expect(stage(viewer, "Attempts")).to_contain_text("1 attempt deliveredstatus 200")
    expect(stage(viewer, "Outcome")).to_contain_text("delivered")
    expect(stage(viewer, "Notices")).to_contain_text("none was made")
    expect(now(viewer)).to_have_count(0)


def test_a_task_ahead_waits_until_it_is_due(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business, 600)
    open_task(viewer, task)
    expect(now(viewer)).to_contain_text("Waiting")
    expect(now(viewer).locator(".at time")).to_have_attribute("datetime", task["due_at"])
    expect(stage(viewer, "Attempts")).to_contain_text("none yet")
    expect(stage(viewer, "Outcome")).to_contain_text("none yet")


def test_a_task_that_waits_for_another_attempt_has_been_called_before(
    viewer: Viewer, service: Service, business: str
) -> None:
    service.call("PUT", f"/_local/received/{business}", {"status": 503, "times": 1})
    task = created(service, business, 10, retry={"delays_seconds": [600]})
    service.advance(15)
    open_task(viewer, task)
    expect(now(viewer)).to_contain_text("its last attempt failed")
    assert names(viewer) == ["Created", "Page", "Attempts", "Waiting", "Outcome", "Notices"]
    expect(stage(viewer, "Attempts")).to_contain_text("1 attempt retrystatus 503")


def test_a_dead_task_leads_to_the_notice_of_its_death(
    viewer: Viewer, service: Service, business: str
) -> None:
    callback = {"url": f"{service.url}/_local/inbox/notices"}
    told = {"outcomes": ["dead"], "callback": callback}
    service.call("PUT", f"/v1/businesses/{business}", {"on_outcome": told})
    task = dead_task(service, business)
    notice_id = service.call("GET", f"/v1/tasks/{task['task_id']}")[1]["notice_id"]
    open_task(viewer, task)
    expect(stage(viewer, "Outcome")).to_contain_text("dead")
    stage(viewer, "Notices").get_by_role("link").click()
    expect(viewer.fact("Task id")).to_have_text(notice_id)


def test_a_cancelled_task_has_neither_page_nor_attempts(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business, 600)
    service.call("DELETE", f"/v1/tasks/{task['task_id']}")
    open_task(viewer, task)
    for name in ("Page", "Attempts"):
        expect(stage(viewer, name)).to_have_class("passed-by")
        expect(stage(viewer, name)).to_contain_text("none")
    expect(stage(viewer, "Outcome")).to_contain_text("cancelled by caller")


@pytest.mark.parametrize(
    ("waiting", "name", "said"),
    [
        ({"reason": "calling", "run": "r-1", "since": WHEN}, "Page", "It is being called"),
        ({"reason": "running", "since": WHEN, "until": WHEN}, "Outcome", "Its receiver works"),
        ({"reason": "rate"}, "Waiting", "calls a second"),
    ],
)
def test_the_stage_in_which_a_task_is_says_why(
    viewer: Viewer,
    service: Service,
    business: str,
    waiting: dict[str, Any],
    name: str,
    said: str,
) -> None:
    task = created(service, business)
    answer = {**task, "waiting": {"expected_at": None, **waiting}}
    viewer.answer(f"/v1/tasks/{task['task_id']}", 200, answer)
    open_task(viewer, task)
    expect(now(viewer)).to_contain_text(name)
    expect(now(viewer)).to_contain_text(said)
    expect(viewer.page.locator("p.waiting")).to_have_count(1)
