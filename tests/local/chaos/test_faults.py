"""`FAULTS=0.1 make local`: random faults of every kind, in which no task is lost."""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.wiring import notifier as notifier_wiring
from local.aws.emulator import Emulator
from local.aws.functions import Context, Died, Function
from local.chaos.aws_faults import Fault, Reply, in_part, possible_faults
from local.chaos.faults import BACKLOG_SECONDS, LATE_SECONDS_MAX, SKEW_MS_MAX, Faults
from local.control.clock import MovableClock
from local.stack import LocalStack
from tests.support.service import Service

MESSAGES: list[Any] = [{"MessageId": "a"}, {"MessageId": "b"}]
START_MS = 1_800_000_000_000
TIMEOUT_MS = 60_000
FUNCTION = Function("some", "some", "arn", TIMEOUT_MS, 128, lambda event, context: None)

Handler = Callable[[Context], Any]
Invoke = Callable[[Handler], Any]


def test_tasks_are_delivered_though_calls_callbacks_and_processes_fail() -> None:
    with LocalStack(frozen=True, faults=Faults(0.05, seed=5)) as stack:
        service = Service(stack.url)
        asked = [
            service.call("POST", "/v1/tasks", service.new_task("orders", delay_seconds=i * 5))
            for i in range(4)
        ]
        created = [task for status, task in asked if status == 201]
        service.advance(400)
        assert len(created) > len(asked) / 2
        assert {task["task_id"] for task in created} <= {
            request["headers"]["webhook-id"] for request in service.received("orders")
        }
        _, faults = service.call("GET", "/_local/faults")
    assert faults["injected"].pop("clock off") > 5
    assert sum(faults["injected"].values()) > 5
    assert (faults["rate"], faults["seed"]) == (0.05, 5)


def test_without_the_flag_no_fault_is_injected() -> None:
    faults = Faults(0, seed=1)
    assert faults.batches(MESSAGES, lambda message, seconds: pytest.fail("hidden")) == [MESSAGES]
    assert faults.batches([], lambda message, seconds: pytest.fail("hidden")) == []
    assert faults.callback_trouble() is None
    clock, functions, submit = MovableClock(), {"arn": FUNCTION}, ThreadPoolExecutor.submit
    assert faults.clock_for_functions(clock) is clock
    assert faults.functions(functions, clock) is functions
    with faults.at_work():
        assert ThreadPoolExecutor.submit is submit
    assert not any(faults.injected.values())


# The clock and the remaining time of each run


class TimeFlies(MovableClock):
    """A clock that jumps to each instant that a caller waits for."""

    async def sleep_until_ms(self, instant_ms: int) -> None:
        self.set_ms(instant_ms)


@pytest.fixture
def clock() -> MovableClock:
    return TimeFlies(START_MS, frozen=True)


@pytest.fixture
def faults() -> Faults:
    """Every possible fault is injected, but a death only one time in twenty."""
    return Faults(1, seed=3)


@pytest.fixture
def invoke(clock: MovableClock, faults: Faults) -> Iterator[Invoke]:
    """Runs a handler as one of the functions of a stack with these faults."""

    def invoke(handler: Handler) -> Any:
        own = replace(FUNCTION, handler=lambda event, context: handler(context))
        return faults.functions({"arn": own}, clock)["arn"].invoke_with_timeout({}, clock)

    with Emulator(clock), faults.at_work():
        yield invoke


def test_each_run_has_one_clock_that_differs_from_others(
    clock: MovableClock, faults: Faults, invoke: Invoke
) -> None:
    own = faults.clock_for_functions(clock)
    pool = ThreadPoolExecutor(2)

    async def in_coroutine_and_thread() -> list[int]:
        return [own.now_ms(), await asyncio.to_thread(own.now_ms)]

    def everywhere(_: Context) -> set[int]:
        pooled = [pool.submit(own.now_ms).result(), *pool.map(lambda _: own.now_ms(), range(2))]
        return {own.now_ms(), *pooled, *asyncio.run(in_coroutine_and_thread())}

    read = [invoke(everywhere) for _ in range(30)]
    assert all(len(instants) == 1 for instants in read)
    off_ms = {instant - START_MS for instants in read for instant in instants}
    assert len(off_ms) > 15
    assert min(off_ms) < 0 < max(off_ms)
    assert all(abs(ms) <= SKEW_MS_MAX for ms in off_ms)
    assert faults.injected["clock off"] == 30
    assert own.now_ms() == clock.now_ms() == START_MS


def test_a_run_waits_by_its_own_clock(clock: MovableClock, faults: Faults, invoke: Invoke) -> None:
    own = faults.clock_for_functions(clock)

    def wait(_: Context) -> int:
        asyncio.run(own.sleep_until_ms(START_MS + 5_000))
        return own.now_ms()

    assert invoke(wait) == START_MS + 5_000
    assert 0 < abs(clock.now_ms() - START_MS - 5_000) <= SKEW_MS_MAX


def test_a_run_may_have_less_time_than_the_timeout_of_its_function(
    clock: MovableClock, faults: Faults, invoke: Invoke
) -> None:
    def use_some(context: Context) -> tuple[int, int]:
        begins_ms, had_ms = clock.now_ms(), context.get_remaining_time_in_millis()
        clock.set_ms(begins_ms + had_ms // 2)
        return had_ms, had_ms // 2 + context.get_remaining_time_in_millis()

    counted_down = [invoke(use_some) for _ in range(20)]
    assert all(had_ms == later_ms < TIMEOUT_MS for had_ms, later_ms in counted_down)
    assert len(set(counted_down)) > 10
    assert faults.injected["short of time"] == 20


def test_a_run_without_time_left_dies_at_its_next_aws_call(
    clock: MovableClock, faults: Faults, invoke: Invoke
) -> None:
    sqs = boto3.client("sqs")
    target = notifier_wiring.HttpTarget(clock=clock, allowed_private_cidrs=())

    def outlive_it(context: Context) -> str:
        clock.set_ms(clock.now_ms() + context.get_remaining_time_in_millis())
        for attempt in (sqs.list_queues, sqs.list_queues, call_back):
            with pytest.raises(Died, match="ran out of time"):
                attempt()
        return "an answer that nobody hears"

    def call_back() -> None:
        callback = HttpCallback("https://receiver.example/")
        asyncio.run(target.call(callback, {}, None, timeout_seconds=1))

    with pytest.raises(RuntimeError, match="some ran out of time"):
        invoke(outlive_it)
    assert faults.injected["time ran out"] == 1
    assert not faults.injected["callback dropped"]


def test_calls_of_the_stack_itself_have_no_faults(faults: Faults, invoke: Invoke) -> None:
    for _ in range(20):
        boto3.client("sqs").list_queues()
    assert not faults.injected.total()


# Messages


def test_messages_arrive_late_twice_and_out_of_order() -> None:
    faults = Faults(0.4, seed=2)
    hidden: list[tuple[str, int]] = []
    seen = [
        faults.batches(MESSAGES, lambda m, seconds: hidden.append((m["MessageId"], seconds)))
        for _ in range(100)
    ]
    turned = MESSAGES[::-1]
    assert faults.injected["a backlog"] > 0
    for expected in ([], [MESSAGES], [turned], [MESSAGES, MESSAGES], [turned, turned]):
        assert expected in seen
    assert len(hidden) == len(MESSAGES) * seen.count([])
    late_seconds = {seconds for _, seconds in hidden}
    assert late_seconds <= {*range(1, LATE_SECONDS_MAX + 1), BACKLOG_SECONDS}


def test_batches_of_a_backlog_are_delayed_one_after_the_other() -> None:
    faults = Faults(0.5, seed=3)
    waited: list[int] = []
    while not faults.injected["a backlog"]:
        waited.clear()
        faults.batches(MESSAGES, lambda _, seconds: waited.append(seconds))
    assert waited == [BACKLOG_SECONDS] * len(MESSAGES)
    assert faults.batches(MESSAGES, lambda _, seconds: waited.append(seconds)) == []
    assert waited == [BACKLOG_SECONDS] * 2 * len(MESSAGES)


def test_an_asynchronous_event_may_run_twice() -> None:
    faults = Faults(0.5, seed=1)
    assert {faults.events() for _ in range(20)} == {1, 2}
    assert Faults(0, seed=1).events() == 1


def test_only_single_writes_and_transactions_conflict_with_a_transaction() -> None:
    operations = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
    others = ("GetItem", "Query", "BatchGetItem", "BatchWriteItem", "SendMessageBatch", "")
    assert all(Fault.CONFLICT in possible_faults(operation) for operation in operations)
    assert not any(Fault.CONFLICT in possible_faults(operation) for operation in others)
    met = [one for one in (*operations, *others) if Fault.IN_PROGRESS in possible_faults(one)]
    assert met == ["TransactWriteItems"]


@pytest.mark.parametrize(
    ("operation", "asked", "done_of", "left_of"),
    [
        (
            "BatchWriteItem",
            {"RequestItems": {"t": [{"PutRequest": {"Item": {"n": n}}} for n in range(25)]}},
            lambda asked: asked["RequestItems"].get("t", []),
            lambda answer: answer["UnprocessedItems"].get("t", []),
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"t": {"Keys": [{"n": n} for n in range(25)]}}},
            lambda asked: asked["RequestItems"]["t"]["Keys"],
            lambda answer: answer["UnprocessedKeys"].get("t", {}).get("Keys", []),
        ),
        (
            "SendMessageBatch",
            {"Entries": [{"Id": f"{n}"} for n in range(10)]},
            lambda asked: [entry["Id"] for entry in asked["Entries"]],
            lambda answer: [failed["Id"] for failed in answer["Failed"]],
        ),
    ],
)
def test_a_batch_cut_twice_returns_all_unprocessed_items(
    operation: str, asked: Any, done_of: Callable[[Any], Any], left_of: Callable[[Any], Any]
) -> None:
    done: list[Any] = []

    def carry_out(request: Any) -> Reply:
        done.extend(done_of(json.loads(request.body)))
        return 200, {}, "{}"

    def cut(request: Any) -> Reply | None:
        return in_part(request, carry_out, lambda _: chance.random() < 0.5)

    chance = Random(1)
    headers = {"X-Amz-Target": f"any.{operation}"}
    request = AWSPreparedRequest("POST", "https://aws", headers, json.dumps(asked), False)
    reply = in_part(request, cut, lambda _: chance.random() < 0.5)
    assert reply is not None
    left = left_of(json.loads(reply[2]))
    whole = done_of(asked)
    assert 0 < len(done) < len(whole)
    assert sorted(map(str, [*done, *left])) == sorted(map(str, whole))
