"""Fields for instants: the shown text, the instant that it means, and invalid texts."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from local.stack import LocalStack
from tests.console.timers_at_hand import made, open_timer
from tests.console.viewer import Viewer
from tests.support.service import Service

# Between two and three o'clock in the viewer's morning, in the second of the two hours.
NOW = datetime(2030, 10, 27, 1, 30, tzinfo=UTC)
SHOWN = "2030-10-27T02:30"


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(start_ms=int(NOW.timestamp() * 1000), frozen=True) as stack:
        yield stack


@pytest.fixture
def zone() -> str:
    return "Europe/Berlin"


def test_a_shown_instant_keeps_its_milliseconds_until_it_is_edited(
    viewer: Viewer, business: str
) -> None:
    viewer.open(f"tasks?biz_type={business}&due_from=2030-10-27T01:30:00.500Z")
    expect(viewer.field("Due from")).to_have_value(SHOWN)
    viewer.field("Status").select_option("pending")
    viewer.press("Search")
    expect(viewer.page).to_have_url(re.compile(r"due_from=2030-10-27T01%3A30%3A00\.500Z"))
    viewer.fill("Due from", "2030-10-27T02:31")
    viewer.press("Search")
    expect(viewer.page).to_have_url(re.compile(r"due_from=2030-10-27T00%3A31%3A00\.000Z"))


def test_the_last_hour_is_one_hour_while_clocks_are_set_back(
    viewer: Viewer, service: Service, business: str
) -> None:
    service.create("shop", biz_type=business, due_at="2030-10-27T00:29:00Z")
    within = service.create("shop", biz_type=business, due_at="2030-10-27T01:10:00Z")
    viewer.open(f"tasks?biz_type={business}")
    expect(viewer.rows("Tasks")).to_have_count(2)
    viewer.press("Last hour")
    expect(viewer.page).to_have_url(re.compile(r"due_from=2030-10-27T00%3A3.*due_to=.*T01%3A3"))
    expect(viewer.rows("Tasks")).to_have_count(1)
    expect(viewer.rows("Tasks")).to_contain_text(within["task_id"])
    expect(viewer.field("Due from")).to_have_value(re.compile(f"^{SHOWN}"))
    expect(viewer.field("Due before")).to_have_value(re.compile(f"^{SHOWN}"))


def test_a_repeated_filter_of_dead_tasks_uses_the_given_instant(
    viewer: Viewer, business: str
) -> None:
    viewer.open(f"businesses/{business}/dead?since=2030-10-27T01:30:00Z")
    viewer.fill("Last status", "503")
    viewer.press("Filter")
    expect(viewer.page).to_have_url(re.compile("since=2030-10-27T01%3A30%3A00Z&status_code=503"))


def test_the_preview_of_a_timer_begins_at_its_start(
    viewer: Viewer, service: Service, business: str
) -> None:
    timer = made(service, business, start_at="2030-10-27T01:45:00Z")
    open_timer(viewer, timer, "/edit")
    viewer.fill("or an interval (seconds)", "60")
    first = viewer.rows("What is ahead").locator("time")
    expect(first.nth(1)).to_have_attribute("datetime", "2030-10-27T01:45:00.000Z")


def test_an_incomplete_instant_is_refused(viewer: Viewer, business: str) -> None:
    viewer.open(f"tasks?biz_type={business}")
    viewer.field("Due from").click()
    viewer.page.keyboard.type("0131")
    viewer.press("Search")
    expect(viewer.page.locator("[data-field=due_from]")).to_contain_text("Give date and time")


@pytest.mark.parametrize(
    ("path", "label", "verb"),
    [
        ("tasks", "Due from", "Search"),
        ("businesses/shop/dead", "Died before", "Filter"),
        ("timers/new", "Not before", "Make the timer"),
    ],
)
def test_a_year_of_five_digits_is_refused_at_its_field(
    viewer: Viewer, path: str, label: str, verb: str
) -> None:
    viewer.open(path)
    viewer.page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    viewer.field(label).evaluate("it => { it.value = '12345-01-02T03:04'; }")
    viewer.press(verb)
    expect(viewer.field_problem(label)).to_have_text("Give a year of four digits.")


def test_a_task_with_an_invalid_instant_is_not_created(
    viewer: Viewer, service: Service, business: str
) -> None:
    viewer.open(f"tasks/new?biz_type={business}")
    viewer.choose("Due", "at an instant")
    viewer.field("At").evaluate("it => { it.value = '12345-01-02T03:04'; }")
    viewer.press("Create")
    expect(viewer.field_problem("At")).to_have_text("Give a year of four digits.")
    viewer.choose("Due", "after a delay")  # hidden fields are not read
    viewer.fill("Callback URL", f"{service.url}/_local/inbox/shop")
    viewer.press("Create")
    assert viewer.message().startswith("The task is created.")
