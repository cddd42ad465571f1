"""The parts that every function needs: settings, clock, clients, pointers, queues, slices, metrics.

At the end of a run of a function its counts become lines of its log.
"""

import os
import random
import secrets
from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from duewheel import __version__
from duewheel.clock import Clock, SystemClock
from duewheel.metrics import Source, counts, metric_lines
from duewheel.rules.wheel.queue_messages import Lane
from duewheel.settings import Settings, settings_from
from duewheel.stores.aws_clients import AwsTime, dynamodb_client, lambda_client, sqs_client
from duewheel.stores.sweep.slices import SliceStore
from duewheel.stores.wheel.async_invoke import AsyncInvoke
from duewheel.stores.wheel.page_queue import SliceQueue
from duewheel.stores.wheel.pointers import PointerStore, WheelShape
from duewheel.workflows.wheel.send_messages import MessageSender

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_sqs.client import SQSClient


T = TypeVar("T")
WHEEL_SECRET_BYTES = 32

_clock: Clock = SystemClock()
_write_line: Callable[[str], None] = print
_generation = 0
_parts: list[Any] = []
_replaced: dict[Callable[[], Any], Callable[[], Any]] = {}


def once(build: Callable[[], T]) -> Callable[[], T]:
    """Built at the first call, and kept until the next `start_anew`."""

    @cache
    @wraps(build)
    def part() -> T:
        replacement: Callable[[], T] = _replaced.get(part, build)
        return replacement()

    _parts.append(part)
    return part


def build_all(module: ModuleType) -> None:
    """Build the parts that this module declares."""
    for part in _parts:
        if part.__module__ == module.__name__:
            part()


def built() -> list[Any]:
    return [part() for part in _parts if part.cache_info().currsize]


def start_anew(clock: Clock, write_line: Callable[[str], None] = print) -> None:
    """Forget all that was built. From now on use this clock, and write metrics to `write_line`. Not
    called in AWS, but by the local stack and by tests."""
    global _clock, _generation, _write_line
    _clock = clock
    _write_line = write_line
    _generation += 1
    for part in _parts:
        part.cache_clear()


def replace_parts(by: Mapping[Callable[[], Any], Callable[[], Any]]) -> None:
    """Replace these parts from the next start on. Not called in AWS: tests replace a part with
    it."""
    _replaced.clear()
    _replaced.update(by)


def generation() -> int:
    """Changes with each new start, so that parts of an earlier one are recognised."""
    return _generation


def clock() -> Clock:
    return _clock


def write_line(line: str) -> None:
    """Write the line unchanged to this function's log, which in AWS is standard output."""
    _write_line(line)


@once
def settings() -> Settings:
    return settings_from(os.environ)


@once
def aws_time() -> AwsTime:
    return AwsTime()


@once
def dynamodb() -> "DynamoDBClient":
    client = dynamodb_client()
    aws_time().observe(client)
    return client


@once
def sqs() -> "SQSClient":
    client = sqs_client()
    aws_time().observe(client)
    return client


@once
def random_unit() -> Callable[[], float]:
    return random.random


@once
def random_bytes() -> Callable[[int], bytes]:
    return secrets.token_bytes


@once
def pointers() -> PointerStore:
    return PointerStore(dynamodb(), settings().registry_table)


@once
def origin() -> int:
    """Also checks that this deployment fits the existing wheel."""
    return shape().origin


@once
def shape() -> WheelShape:
    fresh = secrets.token_bytes(WHEEL_SECRET_BYTES)
    return pointers().shape(settings().buckets, clock().now_ms(), fresh)


@once
def completion_secret() -> bytes:
    """Seals the tokens by which receivers report the end of their work. It is read with the shape
    of the wheel."""
    return shape().secret


@once
def queues() -> dict[Lane, SliceQueue]:
    config = settings()
    urls = {Lane.MAIN: config.slice_queue_url, Lane.SLOW: config.slow_queue_url}
    return {lane: SliceQueue(sqs(), url) for lane, url in urls.items()}


@once
def invoker() -> Any:
    return lambda_client()


@once
def message_sender() -> MessageSender:
    return MessageSender(queues(), AsyncInvoke(invoker, settings().notifier_function))


@once
def slices() -> SliceStore:
    return SliceStore(dynamodb(), settings().wheel_table, settings().buckets)


R = TypeVar("R")


@once
def metric_source() -> Source:
    return Source(settings().stack_name, __version__)


CARRIED_MS = 10_000


class _Written(Struct):
    at_ms: int = 0


@once
def _written() -> _Written:
    return _Written()


def writes_metrics(handler: Callable[[Any, Any], R]) -> Callable[[Any, Any], R]:
    """The same handler, which writes the counts even if it fails."""
    return _ending(handler, _write_metrics)


def carries_metrics(handler: Callable[[Any, Any], R]) -> Callable[[Any, Any], R]:
    """As `writes_metrics`, but runs within ten seconds share a line, which the next run after them
    writes. A process that has none loses the counts that it carries."""
    return _ending(handler, _write_metrics_in_time)


CHECK = {"check": True}


def answers_check(
    *wirings: ModuleType,
) -> Callable[[Callable[[Any, Any], R]], Callable[[Any, Any], R]]:
    """The same handler, which answers the event of a check by what the parts in these modules
    reach. Before traffic moves, a deployment invokes each new version with this event."""

    def answering(handler: Callable[[Any, Any], R]) -> Callable[[Any, Any], R]:
        @wraps(handler)
        def checking(event: Any, context: Any) -> Any:
            if event != CHECK:
                return handler(event, context)
            from duewheel.wiring.check import reached

            return {"reached": reached(wirings)}

        return checking

    return answering


def _ending(handler: Callable[[Any, Any], R], end: Callable[[], None]) -> Callable[[Any, Any], R]:
    @wraps(handler)
    def writing(event: Any, context: Any) -> R:
        try:
            return handler(event, context)
        finally:
            end()

    return writing


def _write_metrics_in_time() -> None:
    if abs(clock().now_ms() - _written().at_ms) >= CARRIED_MS:
        _write_metrics()


def _write_metrics() -> None:
    counted = counts.take()
    if not counted.counts and not counted.values:
        return  # nor are the settings read, which may be the cause
    if settings().metrics:
        _written().at_ms = clock().now_ms()
        for line in metric_lines(counted, metric_source(), clock().now_ms()):
            write_line(line)
