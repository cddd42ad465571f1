"""The CPU time of a task, compared with one UpdateItem of boto3 in the same run: to deliver, to
create, to read with its page and to settle.

The real handlers with their real wiring make real HTTP calls to a receiver in a process of its own.
The time of the emulator is measured separately and subtracted everywhere. The calls of functions
are counted in a separate round: unlike times, they do not depend on the load of the machine.

    make bench-cpu
"""

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch
from urllib.request import urlopen

import boto3
from msgspec.structs import replace

from bench.one_machine.sink import receiving
from duewheel.log import logger
from duewheel.rules.access.grants import AuthMode
from duewheel.rules.tasks.task import Attempt, Status, Task
from duewheel.rules.wheel.queue_messages import PageMessage, encode
from duewheel.stores.dynamodb import WRITES_PER_BATCH
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.wiring import process
from functions.api import app as api
from functions.notifier import app as notifier
from local.aws import emulator
from local.aws.emulator import Emulator
from local.aws.functions import Context
from local.aws.patches.quick_sdk import sdk_without_idle_work
from local.aws.patches.straight_calls import calls_without_http
from local.aws.resources import create_resources
from local.aws.template import load_template
from local.chaos.aws_faults import answered_by
from tests.support.clock import ManualClock

TEMPLATE = Path(__file__).resolve().parents[1] / "template.yaml"
ALLOWED = {"AllowedPrivateCidrs": "127.0.0.0/8"}
AHEAD_SECONDS = 3_600
FAR_AHEAD_SECONDS = 86_400  # for tasks that are created and not delivered
BATCH = 500
SINGLE = 50
PAGE = 100
UPDATES = 500
GOAL = 0.5
CASE = "cpu"  # as the receiver counts
# Patches that save work of the SDK in tests. Here the SDK works as in AWS: it signs and writes
# requests, and parses answers.
SAVED_ELSEWHERE = (sdk_without_idle_work, calls_without_http)
DELIVERED, UPDATE = "a delivered task", "an UpdateItem of boto3"
CONNECTED = "a delivered task, on a new connection"


@dataclass
class Emulated:
    """CPU seconds of the emulator, on any thread. Functions that it invokes are not counted."""

    seconds: float = 0.0

    def __call__(self, request: Any, handle: Any) -> Any:
        counting = sys.getprofile()
        sys.setprofile(None)
        began = time.thread_time()
        try:
            return handle(request)
        finally:
            self.seconds += time.thread_time() - began
            sys.setprofile(counting)


@dataclass
class Own:
    """CPU milliseconds of this process for each task, without the emulator; and the number of
    functions called on this thread."""

    emulated: Emulated
    is_counting: bool = False
    took: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measured(self, name: str, pieces: int) -> Iterator[None]:
        called = 0

        def count(_: Any, event: str, __: Any) -> None:
            nonlocal called
            called += event in ("call", "c_call")

        gc.freeze()  # else each full collection would traverse all data of the emulator
        began, emulated = time.process_time(), self.emulated.seconds
        sys.setprofile(count if self.is_counting else None)
        try:
            yield
        finally:
            sys.setprofile(None)
        took_ms = (time.process_time() - began - self.emulated.seconds + emulated) * 1000
        self.took[name] = (
            self.took.get(name, 0) + (called if self.is_counting else took_ms) / pieces
        )


def deliver_second(own: Own, clock: ManualClock, receiver: str, tasks: int) -> None:
    """A second with so many tasks, in as many slices as it has. The connections of an hour ago are
    closed, so its first page opens new ones; the other pages use these, as under load."""
    second = clock.now_ms() // 1000 + AHEAD_SECONDS
    for start in range(0, tasks, BATCH):
        count = min(BATCH, tasks - start)
        create_batch(new_tasks(second, f"{receiver}/{CASE}/1", count))
    clock.set_ms(second * 1000)
    occupied = process.slices().probe(second)
    called = calls_at(receiver)
    pages = chain(
        [partial(own.measured, CONNECTED, PAGE)],
        repeat(partial(own.measured, DELIVERED, tasks - PAGE)),
    )
    for shard in range(occupied.shards if occupied else 0):
        deliver(encode(PageMessage(second, shard)), pages)
    if calls_at(receiver) - called != tasks:
        raise AssertionError("not all tasks were called, or not once")


def create_and_read(own: Own, clock: ManualClock) -> None:
    """Creates tasks singly and in a batch; then reads and settles the page of the batch."""
    second = clock.now_ms() // 1000 + FAR_AHEAD_SECONDS
    events = [
        posted("/v1/tasks", task) for task in new_tasks(second - 60, "https://to.example/1", SINGLE)
    ]
    with own.measured("a create", SINGLE):
        answers = [api.handler(event, context("api")) for event in events]
    if any(answer["statusCode"] != 201 for answer in answers):
        raise AssertionError(f"not all tasks were created: {answers[0]}")
    create_batch(
        new_tasks(second, "https://to.example/1", BATCH),
        partial(own.measured, f"a create, in a batch of {BATCH}", BATCH),
    )
    with own.measured(f"a task read, in a page of {PAGE}", PAGE):
        found = process.slices().read_page(second, 0, None, None, PAGE).entries
    tasks = [settled(entry.task, second) for entry in found if entry.task is not None]
    if len(tasks) != PAGE:
        raise AssertionError("the page is not full")
    settle(own, tasks)


def settle(own: Own, tasks: list[Task]) -> None:
    config = process.settings()
    store = TaskStore(
        client=process.dynamodb(),
        clock=process.clock(),
        table=config.wheel_table,
        buckets=config.buckets,
        list_index=True,
    )
    with own.measured(f"a task settled, of {WRITES_PER_BATCH}", len(tasks)):
        for start in range(0, len(tasks), WRITES_PER_BATCH):
            if store.put_delivered(tasks[start : start + WRITES_PER_BATCH]):
                raise AssertionError("not all tasks were settled")


def settled(task: Task, second: int) -> Task:
    attempt = Attempt(
        at_ms=second * 1000,
        lateness_ms=12,
        duration_ms=34,
        outcome="delivered",
        entry_second=second,
        status_code=204,
    )
    return replace(
        task,
        status=Status.DELIVERED,
        attempts=1,
        history=(attempt,),
        settled_ms=second * 1000,
        expires_at=second,
        lateness_ms=12,
    )


def new_tasks(second: int, url: str, number: int) -> list[dict[str, Any]]:
    return [
        {
            "biz_type": "bench",
            "due_ms": second * 1000,
            "payload": {"order": n},
            "callback": {"url": url},
        }
        for n in range(number)
    ]


def posted(path: str, body: Any) -> dict[str, Any]:
    return {
        "rawPath": path,
        "rawQueryString": "",
        "headers": {},
        "requestContext": {"http": {"method": "POST"}, "requestId": "r"},
        "body": json.dumps(body),
    }


def create_batch(
    tasks: list[dict[str, Any]],
    measured: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    event = posted("/v1/tasks/batch", {"tasks": tasks})
    with measured():
        answer = api.handler(event, context("api"))
    results = json.loads(answer["body"])["results"]
    if any(result["status"] != 201 for result in results):
        raise AssertionError(f"not all tasks were created: {results[0]}")


def deliver(first: str, pages: Iterator[Callable[[], AbstractContextManager[None]]]) -> None:
    """Page after page, each in a run of its own, as the messages come; in AWS the notifier does not
    receive them itself. `pages`: the measurement of each."""
    sqs, url = process.sqs(), process.settings().slice_queue_url
    bodies = [first]
    while bodies:
        records = [{"messageId": "m", "receiptHandle": "r", "body": body} for body in bodies]
        with next(pages)():
            answer = notifier.handler({"Records": records}, context("notifier"))
        if answer != {"batchItemFailures": []}:
            raise AssertionError(f"messages were left: {answer}")
        got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1).get("Messages", [])
        bodies = [message["Body"] for message in got]
        for message in got:  # or it would come again in a later second
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def context(name: str) -> Context:
    return Context(name, 512, "arn", lambda: 60_000, aws_request_id="run")


def update_items(own: Own, client: Any) -> None:
    """A conditional UpdateItem of a few attributes."""
    table = process.settings().registry_table
    with own.measured(UPDATE, UPDATES):
        for number in range(UPDATES):
            client.update_item(
                TableName=table,
                Key={"kind": {"S": "bench"}, "record": {"S": str(number)}},
                UpdateExpression="SET #a = :a, #n = :n",
                ConditionExpression="attribute_not_exists(#gone)",
                ExpressionAttributeNames={"#a": "a", "#n": "n", "#gone": "gone"},
                ExpressionAttributeValues={":a": {"S": "text"}, ":n": {"N": "1"}},
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tasks", type=int, default=2 * PAGE, help=f"of each second, more than {PAGE}"
    )
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    if options.tasks <= PAGE:
        parser.error(f"--tasks must be more than {PAGE}, those of the first page")
    with (
        tempfile.TemporaryDirectory() as folder,
        receiving(Path(folder)) as receiver,
        emulated() as (own, clock),
        nothing_logged(),
    ):
        client = boto3.client("dynamodb")

        def measured_round(*, is_counting: bool = False) -> dict[str, float]:
            own.is_counting, own.took = is_counting, {}
            deliver_second(own, clock, receiver, options.tasks)
            create_and_read(own, clock)
            update_items(own, client)
            return own.took

        measured_round()  # connections, caches, and code that is compiled once
        counted = measured_round(is_counting=True)
        rounds = [measured_round() for _ in range(options.rounds)]
    show(rounds, counted, options.tasks)


@contextmanager
def nothing_logged() -> Iterator[None]:
    """Log lines are made and discarded: one of a batch has 500 ids."""
    handler: Any = logger.registered_handler
    with open(os.devnull, "w") as nowhere:
        before = handler.setStream(nowhere)
        try:
            yield
        finally:
            handler.setStream(before)


def calls_at(receiver: str) -> int:
    with urlopen(f"{receiver}/{CASE}/count") as answer:
        return int(answer.read())


@contextmanager
def emulated() -> Iterator[tuple[Own, ManualClock]]:
    clock, inside = ManualClock(), Emulated()
    patches = [saved for saved in emulator.PATCHES if saved not in SAVED_ELSEWHERE]
    with (
        patch.object(emulator, "PATCHES", patches),
        Emulator(clock),
        answered_by(inside),
    ):
        clients = boto3.client("dynamodb"), boto3.client("sqs")
        parameters = {**ALLOWED, "AuthMode": AuthMode.OFF.value}
        resources = create_resources(load_template(TEMPLATE, parameters), *clients)
        os.environ.update(resources.environment("api"))
        process.start_anew(clock, lambda _: None)  # its metrics are made, and discarded
        yield Own(inside), clock


def show(rounds: list[dict[str, float]], counted: dict[str, float], tasks: int) -> None:
    print(
        f"{tasks} tasks a second, pages of {process.settings().page_size}, {len(rounds)} rounds; "
        f"goal of {DELIVERED}: at most {GOAL} of {UPDATE}\n"
    )
    print("| | own CPU | of an UpdateItem | calls of functions |")
    print("|---|---|---|---|")
    for name, calls in counted.items():
        own = median(took[name] for took in rounds)
        ratio = median(took[name] / took[UPDATE] for took in rounds)
        # Many of a delivery's calls are made on other threads, and are not counted.
        is_delivery = name in (CONNECTED, DELIVERED)
        shown = "" if is_delivery else f"{calls:,.0f}"
        print(f"| {name} | {own:.3f} ms | {ratio:.2f} | {shown} |")


if __name__ == "__main__":
    main()
