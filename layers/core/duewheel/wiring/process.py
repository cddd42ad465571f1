"""What all functions share: settings, clock, clients and stores."""

import os
import random
import secrets
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from duewheel.clock import Clock, SystemClock
from duewheel.rules.addresses import TOKEN_BYTES
from duewheel.rules.lanes import Lane
from duewheel.settings import Settings, settings_from
from duewheel.stores.aws import AwsTime, dynamodb_client, kms_client, lambda_client, sqs_client
from duewheel.stores.businesses import BusinessStore
from duewheel.stores.headers import HeaderStore
from duewheel.stores.keys import KeyStore
from duewheel.stores.known_businesses import KnownBusinesses
from duewheel.stores.known_pointer import KnownTimePointer
from duewheel.stores.known_shards import KnownShards
from duewheel.stores.loads import LoadStore
from duewheel.stores.pages import PageStore
from duewheel.stores.parking_records import ParkingRecords
from duewheel.stores.pointers import PointerStore
from duewheel.stores.sealed_secrets import SealedSecrets
from duewheel.stores.second_link import SecondLink
from duewheel.stores.slice_queue import SliceQueue
from duewheel.stores.slices import SliceStore
from duewheel.stores.statistics import StatisticsStore
from duewheel.stores.tasks import TaskStore
from duewheel.stores.timers import TimerStore
from duewheel.workflows.hand_over import HandOver
from duewheel.workflows.read_second import ReadSecond
from duewheel.workflows.reenter import Reenter
from duewheel.workflows.size_seconds import SizeSeconds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_kms.client import KMSClient
    from mypy_boto3_sqs.client import SQSClient

T = TypeVar("T")

_clock: Clock = SystemClock()
_generation = 0
_forget: list[Callable[[], None]] = []


def once(build: Callable[[], T]) -> Callable[[], T]:
    """Built at the first call and kept, until the process starts anew."""
    kept = cache(build)
    _forget.append(kept.cache_clear)
    return kept


def start_anew(clock: Clock) -> None:
    """Forget all that was built, and run by another clock from now on. In AWS nobody does:
    it is the seam for the local stack and the tests."""
    global _clock, _generation
    _clock = clock
    _generation += 1
    for forget in _forget:
        forget()


def generation() -> int:
    """Tells what was built before from what was built after the last new start."""
    return _generation


def clock() -> Clock:
    return _clock


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
def pointers() -> PointerStore:
    return PointerStore(dynamodb(), settings().registry_table)


@once
def origin() -> int:
    """Also the check that this deployment fits the wheel it finds."""
    return pointers().origin(settings().buckets, clock().now_ms())


@once
def tasks() -> TaskStore:
    config = settings()
    return TaskStore(dynamodb(), clock(), config.wheel_table, config.buckets, config.list_index)


@once
def keys() -> KeyStore:
    return KeyStore(tasks())


@once
def timers() -> TimerStore:
    return TimerStore(dynamodb(), clock(), settings().registry_table)


@once
def businesses() -> BusinessStore:
    config = settings()
    return BusinessStore(dynamodb(), clock(), config.registry_table, config.business_defaults)


@once
def known_businesses() -> KnownBusinesses:
    return KnownBusinesses(businesses(), clock())


@once
def queues() -> dict[Lane, SliceQueue]:
    config = settings()
    urls = {Lane.MAIN: config.slice_queue_url, Lane.SLOW: config.slow_queue_url}
    return {lane: SliceQueue(sqs(), url) for lane, url in urls.items()}


@once
def kms() -> "KMSClient":
    return kms_client()


@once
def sealed_secrets() -> SealedSecrets:
    return SealedSecrets(kms, settings().signing_key)


@once
def invoker() -> Any:
    return lambda_client()


@once
def hand_over() -> HandOver:
    return HandOver(queues(), SecondLink(invoker, settings().notifier_function))


@once
def parking_records() -> ParkingRecords:
    return ParkingRecords(dynamodb(), clock(), settings().registry_table)


@once
def slices() -> SliceStore:
    return SliceStore(dynamodb(), settings().wheel_table, settings().buckets)


@once
def pages() -> PageStore:
    return PageStore(dynamodb(), clock(), settings().wheel_table, settings().buckets)


@once
def read_second() -> ReadSecond:
    return ReadSecond(slices(), tasks())


@once
def statistics() -> StatisticsStore:
    return StatisticsStore(dynamodb(), clock(), settings().registry_table)


@once
def loads() -> LoadStore:
    return LoadStore(dynamodb(), settings().registry_table)


@once
def headers() -> HeaderStore:
    return HeaderStore(dynamodb(), clock(), settings().wheel_table, settings().buckets)


@once
def size_seconds() -> SizeSeconds:
    return SizeSeconds(loads(), headers(), KnownShards(clock()), random.random)


@once
def reenter() -> Reenter:
    return Reenter(
        clock(),
        tasks(),
        hand_over(),
        random_bytes=lambda: secrets.token_bytes(TOKEN_BYTES),
        time_pointer=KnownTimePointer(pointers(), clock(), origin()),
        aws_ms=lambda: aws_time().latest_ms,
        size_seconds=size_seconds(),
        lead_ms=settings().lead_ms,
        ahead_ms=settings().profile.ahead_ms,
    )
