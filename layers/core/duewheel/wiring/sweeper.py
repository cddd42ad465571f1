"""The parts of the sweeper."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from duewheel.wiring.businesses import businesses, pausing, seen_businesses
from duewheel.wiring.process import (
    aws_time,
    clock,
    message_sender,
    once,
    origin,
    pointers,
    settings,
)
from duewheel.wiring.wheel import entry_writer, headers, pages, read_second, statistics, tasks
from duewheel.workflows.sweep.record_statistics import WRITERS, RecordStatistics
from duewheel.workflows.sweep.rescue import WRITERS as RESCUING
from duewheel.workflows.sweep.rescue import Rescue
from duewheel.workflows.sweep.run_sweep import Sweep
from duewheel.workflows.sweep.sweep_second import PostponePage, SweepSecond
from duewheel.workflows.tasks.reschedule import WRITERS as PUTTING_OFF
from duewheel.workflows.tasks.reschedule import Reschedule


@once
def sweep_second() -> SweepSecond:
    reschedule = Reschedule(clock(), tasks(), entry_writer(), ThreadPoolExecutor(PUTTING_OFF))
    return SweepSecond(
        clock=clock(),
        read_second=read_second(),
        tasks=tasks(),
        pages=pages(),
        message_sender=message_sender(),
        rescue=Rescue(clock(), tasks(), entry_writer(), ThreadPoolExecutor(RESCUING)),
        postpone_page=PostponePage(clock(), tasks(), pages(), reschedule),
        page_size=settings().page_size,
    )


@once
def record_statistics() -> RecordStatistics:
    return RecordStatistics(
        clock=clock(),
        statistics=statistics(),
        tasks=tasks(),
        seen=seen_businesses(),
        writers=ThreadPoolExecutor(WRITERS),
    )


@once
def sweep() -> Sweep:
    return Sweep(
        clock=clock(),
        pointers=pointers(),
        sweep_second=sweep_second(),
        record_statistics=record_statistics(),
        headers=headers(),
        origin=origin(),
        lag_ms=settings().sweep_delay_seconds * 1000,
        aws_ms=aws_time().latest_ms,
    )


@once
def send_releases() -> Callable[[], None]:
    return partial(pausing().release_all, businesses())
