"""Keys over HTTP: create once, upsert, read, cancel, and the same for a prefix."""

from typing import Any

from tests.functions.conftest import call, pages_of
from tests.support.cases import each_case
from tests.support.clock import ManualClock

URL = "https://receiver.example/"
PATH = "/v1/businesses/orders/tasks"


def body(**fields: Any) -> dict[str, Any]:
    return {"delay_seconds": 600, "callback": {"url": URL}, **fields}


def create(key: str, **fields: Any) -> tuple[int, Any]:
    return call("POST", "/v1/tasks", body(biz_type="orders", key=key, **fields))


def test_a_repeated_create_returns_its_task_and_another_body_is_refused(wired: ManualClock) -> None:
    status, task = create("order-17", payload={"a": 1})
    assert (status, task["key"]) == (201, "order-17")
    wired.advance_ms(5_000)
    assert create("order-17", payload={"a": 1}) == (200, task)
    status, problem = create("order-17", payload={"a": 2})
    assert (status, problem["type"]) == (422, "urn:duewheel:problem:key-taken")


def test_a_put_creates_or_reschedules_and_matches_a_create(wired: ManualClock) -> None:
    status, task = call("PUT", f"{PATH}/order-17", body())
    assert status == 201
    wired.advance_ms(60_000)
    status, pushed = call("PUT", f"{PATH}/order-17", body())
    assert status == 200
    assert pushed["task_id"] == task["task_id"]
    assert pushed["due_at"] > task["due_at"]
    assert create("order-17")[0] == 200
    assert pushed.items() <= call("GET", f"{PATH}/order-17")[1].items()


def test_a_watchdog_is_bounded_by_max_due_at(wired: ManualClock) -> None:
    bounded = body(delay_seconds=3_600, max_due_at="2027-01-15T08:30:00Z")
    assert call("PUT", f"{PATH}/dog", bounded)[1]["due_at"] == "2027-01-15T08:30:00.000Z"


def test_a_key_is_free_after_a_cancel_by_key(wired: ManualClock) -> None:
    create("order-17")
    status, task = call("DELETE", f"{PATH}/order-17")
    assert (status, task["status"]) == (200, "cancelled")
    assert call("GET", f"{PATH}/order-17")[1]["status"] == "cancelled"
    assert create("order-17")[0] == 201
    assert call("GET", f"{PATH}/order-18")[0] == 404
    assert call("DELETE", f"{PATH}/order-18")[0] == 404


def test_a_batch_answers_each_key_like_a_separate_create(wired: ManualClock) -> None:
    create("there")
    tasks = [
        body(biz_type="orders", key="new"),
        body(biz_type="orders"),
        body(biz_type="orders", key="there"),
        body(biz_type="orders", key="there", payload=1),
        body(biz_type="orders", key="bad key"),
    ]
    status, answer = call("POST", "/v1/tasks/batch", {"tasks": tasks})
    assert status == 200
    assert [result["status"] for result in answer["results"]] == [201, 201, 200, 422, 422]
    assert answer["results"][4]["problem"]["field"] == "tasks[4].key"


@each_case(
    ("method", "path", "sent", "field"),
    [
        ("PUT", f"{PATH}/a b", body(), "key"),
        ("PUT", f"{PATH}/{'k' * 129}", body(), "key"),
        ("PUT", "/v1/businesses/Orders/tasks/k", body(), "biz_type"),
        ("PUT", f"{PATH}/k", body(biz_type="orders"), "biz_type"),
        ("PUT", f"{PATH}/k", body(max_due_at="soon"), "max_due_at"),
        ("POST", "/v1/tasks", body(biz_type="orders", max_due_at="x"), "max_due_at"),
        ("GET", f"{PATH}/a b", None, "key"),
        ("GET", PATH, None, "key_prefix"),
        ("DELETE", PATH, None, "key_prefix"),
    ],
)
def test_bad_input_names_the_field(
    wired: ManualClock, method: str, path: str, sent: Any, field: str
) -> None:
    status, problem = call(method, path, sent)
    assert (status, problem.get("field")) == (422, field)


def walk(method: str, prefix: str, limit: str = "") -> list[Any]:
    return pages_of(PATH, f"key_prefix={prefix}{limit}", method)


def test_a_prefix_is_listed_in_key_order_in_pages_and_cancelled(wired: ManualClock) -> None:
    keys = [f"order-17:{n:03d}" for n in range(120)]
    tasks = [body(biz_type="orders", key=key) for key in [*keys, "order-170", "order-1"]]
    call("POST", "/v1/tasks/batch", {"tasks": tasks})
    call("DELETE", f"{PATH}/order-17:050")

    pages = walk("GET", "order-17:", "&limit=25")
    listed = [task["key"] for page in pages for task in page["tasks"]]
    assert listed == [key for key in keys if key != "order-17:050"]
    assert max(len(page["tasks"]) for page in pages) <= 25

    cancelled = walk("DELETE", "order-17:")
    assert sum(answer["cancelled"] for answer in cancelled) == 119
    assert walk("GET", "order-17:")[-1]["tasks"] == []
    assert [task["key"] for page in walk("GET", "order-1") for task in page["tasks"]] == [
        "order-1",
        "order-170",
    ]


def test_a_page_of_large_payloads_ends_at_the_limit_of_the_answer(wired: ManualClock) -> None:
    large = "x" * 65_000
    keys = [f"big:{n:02d}" for n in range(30)]
    for start in (0, 15):
        batch = [
            body(biz_type="orders", key=key, payload=large) for key in keys[start : start + 15]
        ]
        assert call("POST", "/v1/tasks/batch", {"tasks": batch})[0] == 200
    pages = walk("GET", "big:", "&limit=100")
    assert [task["key"] for page in pages for task in page["tasks"]] == keys
    assert max(len(page["tasks"]) for page in pages) < 30


def test_tasks_past_their_cut_off_are_returned_as_too_late(wired: ManualClock) -> None:
    create("order-17:soon", delay_seconds=1)
    create("order-17:later")
    (answer,) = walk("DELETE", "order-17:")
    assert answer == {"cancelled": 1, "too_late": ["order-17:soon"], "cursor": None}
