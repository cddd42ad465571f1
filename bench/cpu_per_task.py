"""What delivering a task costs the notifier in CPU, beside one UpdateItem of boto3 in the same run.

The real handler with its real wiring makes real HTTP calls to a receiver in a process of its own.
What the emulator takes is measured apart and left out, in both.

    make bench-cpu
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch
from urllib.request import urlopen

import boto3

from bench.one_machine.sink import receiving
from duewheel.rules.access.grants import AuthMode
from duewheel.rules.wheel.queue_messages import PageMessage, encode
from duewheel.wiring import process
from functions.api import app as api
from functions.notifier import app as notifier
from local.aws import emulator
from local.aws.emulator import Emulator
from local.aws.functions import Context
from local.aws.resources import create_resources
from local.aws.template import load_template
from local.chaos.aws_faults import answered_by
from tests.support.clock import ManualClock

TEMPLATE = Path(__file__).resolve().parents[1] / "template.yaml"
ALLOWED = {"AllowedPrivateCidrs": "127.0.0.0/8"}
AHEAD_SECONDS = 3_600
BATCH = 500
UPDATES = 500
GOAL = 0.5
CASE = "cpu"  # as the receiver counts


@dataclass
class Emulated:
    """CPU seconds of the emulator, on all threads."""

    seconds: float = 0.0

    def __call__(self, request: Any, handle: Any) -> Any:
        began = time.thread_time()
        try:
            return handle(request)
        finally:
            self.seconds += time.thread_time() - began


@dataclass
class Own:
    """CPU milliseconds of this process without the emulator's, by the piece."""

    emulated: Emulated

    @contextmanager
    def measured(self, pieces: int, into: list[float]) -> Iterator[None]:
        began, emulated = time.process_time(), self.emulated.seconds
        yield
        took = time.process_time() - began - (self.emulated.seconds - emulated)
        into.append(took * 1000 / pieces)


def deliveries(own: Own, clock: ManualClock, receiver: str, tasks: int) -> Iterator[float]:
    """Of one second after the other, each with so many tasks, in as many slices as it has."""
    while True:
        second = clock.now_ms() // 1000 + AHEAD_SECONDS
        create(second, f"{receiver}/{CASE}/1", tasks)
        clock.set_ms(second * 1000)
        slices = process.slices().slices_to_dispatch(second)
        called = calls_at(receiver)
        took: list[float] = []
        for shard in range(slices):
            deliver(encode(PageMessage(second, shard)), partial(own.measured, tasks, took))
        if calls_at(receiver) != called + tasks:
            raise AssertionError("not all tasks were called, or not once")
        yield sum(took)


def create(second: int, url: str, tasks: int) -> None:
    body = [
        {
            "biz_type": "bench",
            "due_ms": second * 1000,
            "payload": {"order": n},
            "callback": {"url": url},
        }
        for n in range(tasks)
    ]
    for start in range(0, tasks, BATCH):
        event = {
            "rawPath": "/v1/tasks/batch",
            "rawQueryString": "",
            "headers": {},
            "requestContext": {"http": {"method": "POST"}, "requestId": "r"},
            "body": json.dumps({"tasks": body[start : start + BATCH]}),
        }
        answer = api.handler(event, context("api"))
        results = json.loads(answer["body"])["results"]
        if any(result["status"] != 201 for result in results):
            raise AssertionError(f"not all tasks were created: {results[0]}")


def deliver(first: str, measured: Callable[[], AbstractContextManager[None]]) -> None:
    """Page after page, each in a run of its own, as the messages come; in AWS it is not the
    notifier who fetches them."""
    sqs, url = process.sqs(), process.settings().slice_queue_url
    bodies = [first]
    while bodies:
        records = [{"messageId": "m", "receiptHandle": "r", "body": body} for body in bodies]
        with measured():
            answer = notifier.handler({"Records": records}, context("notifier"))
        if answer != {"batchItemFailures": []}:
            raise AssertionError(f"messages were left: {answer}")
        got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1).get("Messages", [])
        bodies = [message["Body"] for message in got]


def context(name: str) -> Context:
    return Context(name, 512, "arn", lambda: 60_000, aws_request_id="run")


def updates(own: Own) -> Iterator[float]:
    """One conditional UpdateItem of a few attributes."""
    client, table = boto3.client("dynamodb"), process.settings().registry_table
    while True:
        took: list[float] = []
        with own.measured(UPDATES, took):
            for number in range(UPDATES):
                client.update_item(
                    TableName=table,
                    Key={"kind": {"S": "bench"}, "record": {"S": str(number)}},
                    UpdateExpression="SET #a = :a, #n = :n",
                    ConditionExpression="attribute_not_exists(#gone)",
                    ExpressionAttributeNames={"#a": "a", "#n": "n", "#gone": "gone"},
                    ExpressionAttributeValues={":a": {"S": "text"}, ":n": {"N": "1"}},
                )
        yield took[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200, help="of each second")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        receiving(Path(folder)) as receiver,
        emulated() as (own, clock),
    ):
        tasks = deliveries(own, clock, receiver, options.tasks)
        baseline = updates(own)
        next(tasks), next(baseline)  # connections, caches, and what is compiled once
        rounds = [(next(tasks), next(baseline)) for _ in range(options.rounds)]
    show(rounds, options.tasks)


def calls_at(receiver: str) -> int:
    with urlopen(f"{receiver}/{CASE}/count") as answer:
        return int(answer.read())


@contextmanager
def emulated() -> Iterator[tuple[Own, ManualClock]]:
    clock, inside = ManualClock(), Emulated()
    # The SDK does all its work here, as it does in AWS: it signs what it sends.
    with (
        patch.object(emulator, "sdk_without_idle_work", nullcontext),
        Emulator(clock),
        answered_by(inside),
    ):
        clients = boto3.client("dynamodb"), boto3.client("sqs")
        parameters = {**ALLOWED, "AuthMode": AuthMode.OFF.value}
        resources = create_resources(load_template(TEMPLATE, parameters), *clients)
        os.environ.update(resources.environment("api"))
        process.start_anew(clock, lambda _: None)  # its metrics are made, and discarded
        yield Own(inside), clock


def show(rounds: list[tuple[float, float]], tasks: int) -> None:
    ratios = [task / update for task, update in rounds]
    print(
        f"{tasks} tasks a second, pages of {process.settings().page_size}, {len(rounds)} rounds\n"
    )
    print("| | own CPU |")
    print("|---|---|")
    print(f"| a delivered task | {median(task for task, _ in rounds):.3f} ms |")
    print(f"| an UpdateItem of boto3 | {median(update for _, update in rounds):.3f} ms |")
    print(f"| ratio, median of the rounds (goal: at most {GOAL}) | {median(ratios):.2f} |")


if __name__ == "__main__":
    main()
