"""The page of a task says why it waits, and until when."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.tasks_at_hand import created, open_task
from tests.console.viewer import Viewer
from tests.support.service import Service


def sentence(viewer: Viewer) -> Locator:
    return viewer.page.locator("p.waiting")


def test_a_task_that_failed_says_when_it_is_tried_again_until_it_is_delivered(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    service.call("PUT", f"/_local/received/{business}", {"status": 503, "times": 1})
    task = created(service, business, 10, retry={"delays_seconds": [60]})
    open_task(viewer, task)
    expect(sentence(viewer)).to_have_count(0)
    service.advance(15)
    still.clock.run_for(3000)
    expect(sentence(viewer)).to_have_text(
        re.compile(r"^It waits: its last attempt failed. It is expected 20\d\d-.*, in \d+ s\.$")
    )
    service.advance(60)
    still.clock.run_for(3000)
    expect(viewer.page.locator(".standing")).to_contain_text("delivered")
    expect(sentence(viewer)).to_have_count(0)


def test_a_task_of_a_paused_business_says_that_it_is_paused(
    viewer: Viewer, service: Service, business: str
) -> None:
    service.call("POST", f"/v1/businesses/{business}/pause")
    task = created(service, business, 10)
    service.advance(15)
    open_task(viewer, task)
    expect(sentence(viewer)).to_have_text("It waits: its business or its flow key is paused.")


WHEN = "2030-01-31T08:30:00.000Z"


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (
            {"reason": "open-breaker", "host": "down.example", "until": "2030-01-31T08:30:00.000Z"},
            r"It waits: its host down\.example keeps failing and is not called\. A probe is due",
        ),
        (
            {"reason": "calling", "run": "r", "since": "2030-01-31T08:30:00.000Z"},
            r"It is being called",
        ),
        (
            {"reason": "running", "since": WHEN, "until": WHEN},
            r"Its receiver works on it since .*, and has to report the end by",
        ),
        (
            {"reason": "backlog", "stage": "sweep"},
            r"It waits: there is a backlog; its message was lost",
        ),
        ({"reason": "<b>moon</b>"}, r"It waits: <b>moon</b>"),
    ],
)
def test_each_reason_is_a_sentence(
    viewer: Viewer, service: Service, business: str, waiting: dict[str, Any], said: str
) -> None:
    task = created(service, business)
    viewer.answer(
        f"/v1/tasks/{task['task_id']}", 200, {**task, "waiting": {"expected_at": None, **waiting}}
    )
    open_task(viewer, task)
    expect(sentence(viewer)).to_have_text(re.compile("^" + said))
    expect(sentence(viewer).locator("b")).to_have_count(0)
