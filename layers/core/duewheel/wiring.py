"""What the handlers run on, built once per process from the environment, never at import.

Workflows are imported where they are wired: a function pays at its cold start only for
what it uses. The notifier is wired once per thread, since an event loop and its
connections belong to one; in AWS a process has one thread, on one machine a thread plays
the environment.
"""

import os
import secrets
import threading
from collections.abc import Coroutine
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from duewheel.clock import Clock, SystemClock
from duewheel.rules.addresses import TOKEN_BYTES
from duewheel.settings import Settings, settings_from
from duewheel.stores.aws import AwsTime, dynamodb_client, sqs_client
from duewheel.stores.known_pointer import KnownTimePointer
from duewheel.stores.pointers import PointerStore
from duewheel.stores.slice_queue import SliceQueue
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_sqs.client import SQSClient

    from duewheel.stores.pages import PageStore
    from duewheel.stores.slices import SliceStore
    from duewheel.workflows.cancel import CancelTask
    from duewheel.workflows.change import ChangeTask
    from duewheel.workflows.create import CreateTasks
    from duewheel.workflows.deliver import Deliver
    from duewheel.workflows.lead import Lead
    from duewheel.workflows.look_up import LookUp
    from duewheel.workflows.redrive import RedriveTask
    from duewheel.workflows.steer import Steer
    from duewheel.workflows.sweep import Sweep

T = TypeVar("T")

_clock: Clock = SystemClock()
_threads = threading.local()


def use_clock(clock: Clock) -> None:
    """Let everything wired from now on run by another clock: the local stack's."""
    global _clock
    _clock = clock


def clock() -> Clock:
    return _clock


@cache
def settings() -> Settings:
    return settings_from(os.environ)


@cache
def aws_time() -> AwsTime:
    return AwsTime()


@cache
def dynamodb() -> "DynamoDBClient":
    client = dynamodb_client()
    aws_time().observe(client)
    return client


@cache
def sqs() -> "SQSClient":
    client = sqs_client()
    aws_time().observe(client)
    return client


@cache
def pointers() -> PointerStore:
    return PointerStore(dynamodb(), settings().registry_table)


@cache
def origin() -> int:
    """Also the check that this deployment fits the wheel it finds."""
    return pointers().origin(settings().buckets, clock().now_ms())


@cache
def tasks() -> TaskStore:
    config = settings()
    return TaskStore(dynamodb(), clock(), config.wheel_table, config.buckets, config.list_index)


@cache
def slice_queue() -> SliceQueue:
    return SliceQueue(sqs(), settings().slice_queue_url)


@cache
def slices() -> "SliceStore":
    from duewheel.stores.slices import SliceStore

    return SliceStore(dynamodb(), settings().wheel_table, settings().buckets)


@cache
def pages() -> "PageStore":
    from duewheel.stores.pages import PageStore

    return PageStore(dynamodb(), settings().wheel_table, settings().buckets)


@cache
def reenter() -> Reenter:
    return Reenter(
        clock(),
        tasks(),
        slice_queue(),
        random_bytes=lambda: secrets.token_bytes(TOKEN_BYTES),
        time_pointer=KnownTimePointer(pointers(), clock(), origin()),
        lead_ms=settings().lead_ms,
    )


@cache
def steer() -> "Steer":
    from duewheel.workflows.steer import Steer

    return Steer(clock(), tasks(), reenter(), settings().lead_ms)


@cache
def create_tasks() -> "CreateTasks":
    from duewheel.workflows.create import CreateTasks

    return CreateTasks(clock(), tasks(), reenter())


@cache
def cancel_task() -> "CancelTask":
    from duewheel.workflows.cancel import CancelTask

    return CancelTask(steer(), settings().retention_seconds)


@cache
def change_task() -> "ChangeTask":
    from duewheel.workflows.change import ChangeTask

    return ChangeTask(steer())


@cache
def redrive_task() -> "RedriveTask":
    from duewheel.workflows.redrive import RedriveTask

    return RedriveTask(clock(), tasks(), reenter())


@cache
def look_up() -> "LookUp":
    from duewheel.workflows.look_up import LookUp

    return LookUp(clock(), tasks(), pointers(), origin(), settings().buckets)


@cache
def lead() -> "Lead":
    from concurrent.futures import ThreadPoolExecutor

    from duewheel.workflows.dispatch import PROBES_AT_ONCE, Dispatch
    from duewheel.workflows.lead import Lead

    dispatch = Dispatch(
        clock(),
        slices(),
        slice_queue(),
        aws_ms=lambda: aws_time().latest_ms,
        lead_ms=settings().lead_ms,
        probers=ThreadPoolExecutor(PROBES_AT_ONCE),
    )
    return Lead(clock(), pointers(), dispatch, origin())


@cache
def sweep() -> "Sweep":
    from duewheel.workflows.sweep import Sweep
    from duewheel.workflows.sweep_second import SweepSecond

    sweep_second = SweepSecond(
        clock(), tasks(), slices(), pages(), slice_queue(), reenter(), settings().page_size
    )
    return Sweep(clock(), pointers(), sweep_second, origin(), settings().sweep_delay_seconds * 1000)


class Notifier:
    """One execution environment's event loop, connections and delivery."""

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.new_event_loop()
        self.deliver = _deliver()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


def notifier() -> Notifier:
    if not hasattr(_threads, "notifier"):
        _threads.notifier = Notifier()
    wired: Notifier = _threads.notifier
    return wired


def _deliver() -> "Deliver":
    from asyncio import Semaphore
    from random import random

    from duewheel.targets.http import HttpTarget
    from duewheel.workflows.call_page import CALLS_IN_FLIGHT_MAX, CallPage
    from duewheel.workflows.deliver import Deliver
    from duewheel.workflows.retry_or_end import RetryOrEnd

    config = settings()
    retry_or_end = RetryOrEnd(clock(), tasks(), reenter(), config.retention_seconds, random)
    call_page = CallPage(
        clock(),
        tasks(),
        HttpTarget(clock=clock(), allowed_private_cidrs=config.allowed_private_cidrs),
        retry_or_end,
        Semaphore(CALLS_IN_FLIGHT_MAX),
        config.callback_timeout_seconds,
        config.retention_seconds,
    )
    return Deliver(
        clock(),
        tasks(),
        slices(),
        pages(),
        slice_queue(),
        call_page,
        config.lead_ms,
        config.page_size,
        config.page_lease_ms,
    )
