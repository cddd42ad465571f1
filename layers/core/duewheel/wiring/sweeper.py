"""What the sweeper runs on."""

from concurrent.futures import ThreadPoolExecutor

from duewheel.stores.statistics import StatisticsStore
from duewheel.wiring.businesses import businesses, parking_records
from duewheel.wiring.process import (
    aws_time,
    clock,
    dynamodb,
    hand_over,
    once,
    origin,
    pointers,
    settings,
)
from duewheel.wiring.wheel import headers, pages, read_second, reenter, tasks
from duewheel.workflows.come_up_again import ComeUpAgain
from duewheel.workflows.keep_books import WRITERS, KeepBooks
from duewheel.workflows.put_off import WRITERS as PUTTING_OFF
from duewheel.workflows.put_off import PutOff
from duewheel.workflows.rescue import WRITERS as RESCUING
from duewheel.workflows.rescue import Rescue
from duewheel.workflows.send_releases import SendReleases
from duewheel.workflows.sweep import Sweep
from duewheel.workflows.sweep_second import SweepSecond


@once
def statistics() -> StatisticsStore:
    return StatisticsStore(dynamodb(), clock(), settings().registry_table)


@once
def sweep() -> Sweep:
    config = settings()
    put_off = PutOff(clock(), tasks(), reenter(), ThreadPoolExecutor(PUTTING_OFF))
    sweep_second = SweepSecond(
        clock(),
        read_second(),
        tasks(),
        pages(),
        hand_over(),
        Rescue(clock(), tasks(), reenter(), ThreadPoolExecutor(RESCUING)),
        ComeUpAgain(clock(), tasks(), pages(), put_off),
        config.page_size,
    )
    keep_books = KeepBooks(clock(), statistics(), tasks(), ThreadPoolExecutor(WRITERS))
    lag_ms = config.sweep_delay_seconds * 1000
    return Sweep(
        clock(),
        pointers(),
        sweep_second,
        keep_books,
        headers(),
        origin(),
        lag_ms,
        aws_ms=lambda: aws_time().latest_ms,
    )


@once
def send_releases() -> SendReleases:
    return SendReleases(parking_records(), businesses(), hand_over())
