"""The parts of the scheduler."""

from concurrent.futures import ThreadPoolExecutor

from duewheel.wiring.process import (
    aws_time,
    clock,
    message_sender,
    once,
    origin,
    pointers,
    settings,
    slices,
)
from duewheel.workflows.wheel.dispatch import PROBES_AT_ONCE, Dispatch
from duewheel.workflows.wheel.run_leader import Lead


@once
def dispatch() -> Dispatch:
    return Dispatch(
        clock=clock(),
        slices=slices(),
        message_sender=message_sender(),
        aws_ms=aws_time().latest_ms,
        lead_ms=settings().lead_ms,
        probers=ThreadPoolExecutor(PROBES_AT_ONCE),
    )


@once
def lead() -> Lead:
    return Lead(clock=clock(), pointers=pointers(), dispatch=dispatch(), origin=origin())
