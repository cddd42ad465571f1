"""What functions need that read and change tasks: their stores, and the way to another entry."""

import random
import secrets

from duewheel.rules.wheel.addresses import TOKEN_BYTES
from duewheel.stores.delivery.page_leases import PageStore
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.wheel.headers import HeaderStore, KnownShards
from duewheel.stores.wheel.load_estimates import LoadStore
from duewheel.stores.wheel.pointers import KnownTimePointer
from duewheel.wiring.process import (
    aws_time,
    clock,
    dynamodb,
    hand_over,
    once,
    origin,
    pointers,
    settings,
    slices,
)
from duewheel.workflows.sweep.read_second import ReadSecond
from duewheel.workflows.tasks.write_entries import Reenter
from duewheel.workflows.wheel.reserve_shards import SizeSeconds


@once
def tasks() -> TaskStore:
    config = settings()
    return TaskStore(dynamodb(), clock(), config.wheel_table, config.buckets, config.list_index)


@once
def keys() -> KeyStore:
    return KeyStore(tasks())


@once
def pages() -> PageStore:
    return PageStore(dynamodb(), clock(), settings().wheel_table, settings().buckets)


@once
def read_second() -> ReadSecond:
    return ReadSecond(slices(), tasks())


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
