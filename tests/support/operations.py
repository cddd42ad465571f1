"""Bulk operations in tests: made from what a request says, and worked on by workers."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.bulk.operation import Operation, RefusedItem
from duewheel.rules.bulk.requests import RefusedQuery, operation_request
from tests.support.damage import delete
from tests.support.world import CALLER, World

ALL: dict[str, Any] = {}  # the filter
RUN_MS = 900_000


def asked_for(world: World, action: str, by: str = CALLER, **members: Any) -> Operation:
    """As `POST /v1/operations` makes it, of the business `orders`; no worker has begun."""
    body = {"biz_type": "orders", "action": action, **members}
    new = operation_request(json.dumps(body), world.clock.now_ms())
    operation = world.create_operation(new, by=by)
    world.invocations.clear()
    return operation


def worked_on(world: World, operation: Operation, run_ms: int = RUN_MS) -> Operation:
    """By one run of a worker."""
    ends_ms = world.clock.now_ms() + run_ms
    world.run_operations.run(lambda: ends_ms - world.clock.now_ms())
    return as_it_is(world, operation)


def as_it_is(world: World, operation: Operation) -> Operation:
    found = world.operations.read(operation.biz_type, operation.mark)
    assert found is not None
    return found


def done(world: World, action: str, **members: Any) -> Operation:
    return worked_on(world, asked_for(world, action, **members))


def numbers(operation: Operation) -> tuple[int, int, int]:
    """Changed, unchanged and refused."""
    counts = operation.counts
    return counts.changed, counts.unchanged, counts.refused


def refused(world: World, operation: Operation, limit: int = 100) -> list[RefusedItem]:
    found: list[RefusedItem] = []
    cursor = None
    while True:
        query = RefusedQuery(cursor=cursor, limit=limit)
        page = world.read_operations.refused(operation.operation_id, query, ANYTHING)
        assert len(page.refused) <= limit
        found += page.refused
        cursor = page.cursor
        if cursor is None:
            return found


def in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of a page and the reads of a list: a process that dies ends all its threads."""

    def each(_: Any, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return [function(*one) for one in zip(*arguments, strict=True)]

    monkeypatch.setattr("duewheel.workflows.bulk.run_operations.fan_out", each)
    monkeypatch.setattr("duewheel.workflows.tasks.list_tasks.fan_out", each)


def retire_all(world: World) -> None:
    """Take all tasks out of the wheel."""
    for item in world.items():
        delete(world, item)
