"""The parts of functions that read and change tasks: their stores, and the writer of entries."""

from functools import partial

from duewheel.rules.wheel.addresses import TOKEN_BYTES
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.sweep.minute_statistics import StatisticsStore
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.order_items import OrderItemStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.wheel.sharding import HeaderCache, HeaderStore, LoadStore
from duewheel.wiring.process import (
    aws_time,
    clock,
    dynamodb,
    message_sender,
    once,
    origin,
    pointers,
    random_bytes,
    random_unit,
    settings,
    slices,
)
from duewheel.workflows.sweep.read_second import ReadSecond
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.tell_outcome import TellOutcome
from duewheel.workflows.tasks.write_entries import EntryWriter, RefreshAwsTime, ReserveShards


@once
def tasks() -> TaskStore:
    config = settings()
    return TaskStore(
        client=dynamodb(),
        clock=clock(),
        table=config.wheel_table,
        buckets=config.buckets,
        list_index=config.list_index,
    )


@once
def keys() -> KeyStore:
    return KeyStore(tasks())


@once
def turns() -> RateLimitStore:
    return RateLimitStore(dynamodb(), settings().registry_table)


@once
def pages() -> PageLeaseStore:
    return PageLeaseStore(dynamodb(), clock(), settings().wheel_table, settings().buckets)


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
def reserve_shards() -> ReserveShards:
    return ReserveShards(loads(), headers(), HeaderCache(clock()), random_unit())


def _key_of_timer(timer_id: str) -> str | None:
    # Timers read schedules, which slows the cold start of functions that need none.
    from duewheel.rules.timers.timer import Timer
    from duewheel.wiring.timers import timers

    timer = timers().read_many([timer_id]).get(timer_id)
    return timer.rules.flow_key if isinstance(timer, Timer) else None


@once
def entry_writer() -> EntryWriter:
    return EntryWriter(
        clock=clock(),
        tasks=tasks(),
        message_sender=message_sender(),
        random_bytes=partial(random_bytes(), TOKEN_BYTES),
        refresh_aws_time=RefreshAwsTime(pointers(), clock(), origin()),
        aws_ms=aws_time().latest_ms,
        reserve_shards=reserve_shards(),
        lead_ms=settings().lead_ms,
    )


@once
def tell_outcome() -> TellOutcome:
    return TellOutcome(tasks(), entry_writer())


def keep_order(known: BusinessCache) -> KeepOrder:
    """`known`: the cache of businesses of this process."""
    return KeepOrder(
        clock=clock(),
        known=known,
        tasks=tasks(),
        items=OrderItemStore(tasks()),
        key_of_timer=_key_of_timer,
        entry_writer=entry_writer(),
        lives_ms=settings().notifier_lives_ms,
    )
