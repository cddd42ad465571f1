"""The pages of tasks for a viewer who may read one business only."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from local.stack import LocalStack
from tests.console.viewer import Viewer
from tests.support.service import Service


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(frozen=True, asks_for_keys=True) as stack:
        yield stack


@pytest.fixture
def service(stack: LocalStack) -> Service:
    return Service(stack.url, stack.admin_key)


@pytest.fixture
def reader(page: Page, service: Service, business: str) -> Viewer:
    """A viewer with the right to read one business."""
    grants = [{"right": "read", "businesses": business}]
    _, made = service.call("POST", "/v1/keys", {"name": "reader", "grants": grants})
    page.goto("/console")
    page.get_by_label("API key").fill(made["key"])
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_label("API key")).to_have_count(0)
    return Viewer(page)


def test_tasks_within_reach_are_listed_and_others_are_refused(
    reader: Viewer, service: Service, business: str
) -> None:
    service.create("shop", biz_type=business, delay_seconds=600)
    reader.open(f"tasks?biz_type={business}")
    expect(reader.rows("Tasks")).to_have_count(1)
    reader.field("Business").fill("other")
    reader.press("Search")
    refused = reader.section("Found").get_by_role("alert")
    expect(refused).to_contain_text("This call needs the right to read business other")


def test_a_task_out_of_reach_is_shown_as_unknown(reader: Viewer, service: Service) -> None:
    task = service.create("shop", biz_type="other", delay_seconds=600)
    reader.open(f"tasks/{task['task_id']}")
    expect(reader.page.locator(".empty")).to_contain_text("There is no such task.")


def test_the_actions_of_a_reader_are_refused_without_an_effect(
    reader: Viewer, service: Service, business: str
) -> None:
    task = service.create("shop", biz_type=business, delay_seconds=600)
    reader.open(f"tasks/{task['task_id']}")
    reader.press("Cancel the task")
    reader.agree("Cancel it")
    assert "needs the right to write" in reader.message()
    expect(reader.page.locator(".standing")).to_have_text("pending")
    assert task.items() <= service.task(task).items()
    reader.open(f"tasks/new?biz_type={business}")
    reader.press("Create")
    expect(reader.page.get_by_role("alert")).to_contain_text("right to write to a business")
