"""What the sweeper runs on."""

from duewheel.wiring.process import (
    clock,
    once,
    origin,
    pages,
    pointers,
    reenter,
    settings,
    slice_queue,
    slices,
    tasks,
)
from duewheel.workflows.sweep import Sweep
from duewheel.workflows.sweep_second import SweepSecond


@once
def sweep() -> Sweep:
    sweep_second = SweepSecond(
        clock(), tasks(), slices(), pages(), slice_queue(), reenter(), settings().page_size
    )
    return Sweep(clock(), pointers(), sweep_second, origin(), settings().sweep_delay_seconds * 1000)
