"""Counts the metrics that the functions write, and the length of their lines and records.

The workflows run on moto, as for the units; each line is that of one run.
"""

from dataclasses import dataclass
from logging import makeLogRecord

from bench.cost.counted import KNOWN_MS, Means, create, idle_minute, new_world
from duewheel import __version__
from duewheel.interface.http import Answer, Request
from duewheel.log import logger, logs_run
from duewheel.metrics import LATENESS, METRICS, Counted, Source, counts, metric_lines
from duewheel.rules.access.grants import Access
from functions.api.app import CALLS
from local.aws.metrics import filters_of

_SOURCE = Source("duewheel", __version__)
_CALLER = "arn:aws:iam::123456789012:role/duewheel-write-orders"
_REQUEST_ID = "UXlZLjKQoAMEPnw="
_TASK_ID = "AQG5dxdnQAAA0tduNy2QgXjEA4x3"
_BYTES_PER_VALUE = 3  # a lateness of two digits, and a comma


@dataclass(frozen=True)
class LogCost:
    """`created`, `delivered`, `swept`: the counts of one task each."""

    created: Counted
    delivered: Counted
    swept: Counted
    filters: int  # metrics that the template makes from logs, of errors

    @property
    def when_busy(self) -> int:
        """And nothing fails; while idle, none."""
        return len(_names(self.created, self.delivered, self.swept))

    @property
    def at_most(self) -> int:
        return len(METRICS) + self.filters

    @property
    def bytes_of_creates(self) -> int:
        """Of one process in ten seconds."""
        return _size(self.created)

    def bytes_per_page(self, tasks: float) -> float:
        return _size(self.delivered) + (tasks - 1) * _BYTES_PER_VALUE


def count_log_cost() -> LogCost:
    with new_world() as (world, resources):
        filters = len({each.metric for each in filters_of(resources)})
        idle_minute(world)
        counts.take()
        idle_minute(world)
        if counts.take() != Counted():
            raise AssertionError("an idle stack publishes no metric")
        (task,) = create(world, Means.SINGLE, [KNOWN_MS])
        created = counts.take()
        while world.clock.now_ms() < task.due_ms:
            idle_minute(world)
        if counts.take() != Counted():
            raise AssertionError("dispatch in time publishes no metric")
        world.drain()
        delivered = counts.take()
        world.sweep_past(task.due_ms // 1000)
        swept = counts.take()
    if set(delivered.values) != {LATENESS}:
        raise AssertionError("a delivery writes its lateness")
    return LogCost(created, delivered, swept, filters)


def change_bytes(tasks: int) -> int:
    """The record of a create of so many tasks by a role, as the api logs it."""
    ids = {"task_ids": [_TASK_ID] * tasks}
    path, log_fields = "/v1/tasks", {**ids, "biz_type": "orders"}
    if tasks > 1:
        path, log_fields = "/v1/tasks/batch", {**ids, "biz_types": ["orders"]}
    request = Request(method="POST", path=path, request_id=_REQUEST_ID, access=Access(_CALLER, ()))
    answer = Answer(201, "", log_fields=log_fields)
    line = CALLS.match_route(request).access_log_line(request, answer) or {}
    record = makeLogRecord({"levelname": "INFO", "msg": "change", **line})
    written = logs_run(lambda *_: logger.registered_formatter.format(record))
    return len(written({"requestContext": {"requestId": _REQUEST_ID}}, None)) + 1


def _names(*counted: Counted) -> set[str]:
    return {metric.name for one in counted for metric in (*one.counts, *one.values)}


def _size(counted: Counted) -> int:
    return sum(len(line) + 1 for line in metric_lines(counted, _SOURCE, 1_800_000_000_000))
