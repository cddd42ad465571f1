"""Which tasks of a page go in one request, and when."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business, Defaults, Own
from duewheel.rules.callbacks.aws.eventbridge import EventBridgeCallback
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.aws.stepfunctions import StepFunctionsCallback
from duewheel.rules.callbacks.batch import HEAD_BYTES_MAX, Batch, document, document_bytes
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.delivery.batches import form_of, grouped, still_together
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at
from tests.support.cases import each_case
from tests.support.clock import NOON_MS

TO = HttpCallback("https://a.example/", "POST")
TO_QUEUE = SqsCallback("https://sqs.us-east-1.amazonaws.com/123456789012/q")
TO_BUS = EventBridgeCallback("bus", "shop", "order due")
TO_MACHINE = StepFunctionsCallback("arn:aws:states:us-east-1:123456789012:stateMachine:m")


def a_task(number: int, ms: int = 0, **fields: Any) -> Task:
    home = address_at(NOON_MS + ms, number.to_bytes(TOKEN_BYTES, "big"))
    values: dict[str, Any] = {"callback": TO, "payload": "1", **fields}
    return replace(Task.at(home, "orders", NOON_MS + ms, NOON_MS), **values)


def business(tasks_max: int = 100, bytes_max: int | None = None, **own: Any) -> Business:
    settings = Own(batch=Batch(tasks_max, bytes_max), **own)
    return Business("orders", Defaults(30, 10, 30), own=settings)


def sizes(tasks: list[Task], of: Business) -> list[int]:
    return [len(group) for group in grouped(tasks, of)]


def test_a_batch_has_at_most_as_many_tasks_as_the_setting_and_the_target_allow() -> None:
    tasks = [a_task(number) for number in range(25)]
    assert sizes(tasks, business(10)) == [10, 10, 5]
    of_queue = [replace(task, callback=TO_QUEUE) for task in tasks]
    assert sizes(of_queue, business(100)) == [10, 10, 5]
    assert sizes(of_queue, business(4)) == [4, 4, 4, 4, 4, 4, 1]


def test_tasks_with_different_callbacks_go_apart() -> None:
    other = replace(TO, headers=(("x-shop", "b"),))
    tasks = [a_task(number, callback=(TO, other)[number % 2]) for number in range(6)]
    assert [[task.callback for task in group] for group in grouped(tasks, business())] == [
        [TO] * 3,
        [other] * 3,
    ]


def test_tasks_of_different_flow_keys_go_apart() -> None:
    tasks = [a_task(number, flow_key=("a", "b", None)[number % 3]) for number in range(9)]
    assert [[task.flow_key for task in group] for group in grouped(tasks, business())] == [
        ["a"] * 3,
        ["b"] * 3,
        [None] * 3,
    ]


def test_a_task_and_one_with_the_same_callback_by_its_business_go_together() -> None:
    tasks = [a_task(0), a_task(1, callback=None), a_task(2, callback=HttpCallback(method=""))]
    assert sizes(tasks, business(callback=TO)) == [3]


def test_a_batch_spans_less_than_a_second_and_its_last_task_is_due_last() -> None:
    tasks = [a_task(number, ms) for number, ms in enumerate((0, 5, 999, 1_000, 1_998, 2_000))]
    groups = grouped(tasks, business())
    assert [[task.due_ms - NOON_MS for task in group] for group in groups] == [
        [0, 5, 999],
        [1_000, 1_998],
        [2_000],
    ]


@each_case(
    "fields",
    [
        {"callback": replace(TO, method="GET")},
        {"callback": replace(TO, is_raw=True), "payload": '"text"'},
        {"callback": TO_MACHINE},
        {"callback": TO_QUEUE, "attempts": 1},
        {"callback": replace(TO_QUEUE, is_raw=True), "payload": "17"},
        {"callback": HttpCallback()},
        {"notice_of": "another"},
    ],
)
def test_a_task_that_cannot_share_a_request_goes_alone(fields: dict[str, Any]) -> None:
    alone = a_task(7, **fields)
    usual = business()
    assert form_of(alone, usual) is None
    shared = [a_task(1), a_task(2)]
    assert [alone] in grouped([shared[0], alone, shared[1]], usual)


@each_case(
    ("callback", "has_document"),
    [(TO, True), (LambdaCallback("orders"), True), (TO_QUEUE, False), (TO_BUS, False)],
)
def test_a_lone_task_has_the_form_of_a_batch_where_batches_are_documents(
    callback: Callback, has_document: bool
) -> None:
    form = form_of(a_task(1, callback=callback), business())
    assert form is not None
    assert form.has_document is has_document


def test_no_task_is_batched_without_the_setting() -> None:
    unbatched = Business("orders", Defaults(30, 10, 30))
    assert form_of(a_task(1), unbatched) is None
    assert sizes([a_task(1), a_task(2)], unbatched) == [1, 1]


@given(
    st.lists(st.tuples(st.integers(0, 2_500), st.integers(0, 900)), max_size=30),
    st.integers(2, 9),
    st.integers(1_000, 4_000),
)
def test_each_task_is_in_one_batch_that_is_within_its_limits(
    lengths: list[tuple[int, int]], tasks_max: int, bytes_max: int
) -> None:
    found = [
        a_task(number, ms, payload='"' + "é" * length + '"')
        for number, (length, ms) in enumerate(sorted(lengths, key=lambda pair: pair[1]))
    ]
    groups = grouped(found, business(tasks_max, bytes_max))
    batched = [task.home.name for group in groups for task in group]
    assert sorted(batched) == sorted(task.home.name for task in found)
    for group in groups:
        assert len(group) <= tasks_max
        assert len(group) == 1 or len(document(group).encode()) <= bytes_max
        assert group[-1].next_ms == max(task.next_ms for task in group)
    # None is smaller than it has to be: it could not have taken the next one.
    for group, following in pairwise(groups):
        size = HEAD_BYTES_MAX + sum(map(document_bytes, [*group, following[0]]))
        assert len(group) == tasks_max or size > bytes_max


def test_tasks_that_changed_while_they_waited_leave_the_batch() -> None:
    tasks = [a_task(number) for number in range(5)]
    tasks[1] = replace(tasks[1], callback=replace(TO, url="https://b.example/"))
    together, others = still_together(tasks, business())
    assert (together, others) == ([tasks[0], *tasks[2:]], [tasks[1]])
    tasks[4] = replace(tasks[4], payload='"' + "x" * 999_999 + '"')
    together, others = still_together(tasks, business())
    assert (together, others) == ([tasks[0], *tasks[2:4]], [tasks[1], tasks[4]])
