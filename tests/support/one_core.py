"""Keep a process on one core. The interpreter runs one thread at a time anyway, and waking a thread
on another core costs more than its work."""

import os


def stay_on_core(number: int) -> None:
    """Use the core of this number, modulo the number of cores that this process may use."""
    if hasattr(os, "sched_setaffinity"):  # Linux
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})
