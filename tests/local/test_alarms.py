"""Each alarm goes off by its fault and by no other, and ends when that is mended."""

from collections.abc import Iterator
from random import Random
from typing import Any

import boto3
import pytest

from duewheel.rules.addresses import address_of_task
from duewheel.stores import task_items
from local.aws_faults import Fault, Handle, Reply, answered_by, do, operation_of
from tests.support.watched_stack import WatchedStack

BUCKETS = 10_000_000  # as the template has it by default
QUEUE = "duewheel-SliceQueue"


@pytest.fixture
def watched() -> Iterator[WatchedStack]:
    """As it is when it has run for a while."""
    with WatchedStack() as running:
        running.passes(minutes=6)
        assert running.off() == set()
        yield running


def creates(watched: WatchedStack, inbox: str, number: int = 1, **more: Any) -> None:
    task = watched.service.new_task(inbox, **{"delay_seconds": 20, **more})
    status, answer = watched.service.call("POST", "/v1/tasks/batch", {"tasks": [task] * number})
    assert status == 200, answer


def queue_url() -> str:
    return boto3.client("sqs").get_queue_url(QueueName=QUEUE)["QueueUrl"]


def refused(*operations: str) -> Any:
    def answer(request: Any, handle: Handle) -> Reply | None:
        if operation_of(request) in operations:
            return do(Fault.THROTTLED, request, handle, Random(1))
        return handle(request)

    return answered_by(answer)


def test_a_healthy_stack_has_none_idle_or_at_work(watched: WatchedStack) -> None:
    creates(watched, "ok", 50)
    for _ in range(12):
        creates(watched, "ok", 5, delay_seconds=70)
        watched.passes(minutes=1)
        assert watched.off() == set()
