"""Keep a process on one core. Its threads run one at a time all the same, the interpreter sees to
that, and a thread that is woken on another core costs more than what it then does."""

import os


def stay_on_core(number: int) -> None:
    """The so-maniest of those that this process may use, counted round."""
    if hasattr(os, "sched_setaffinity"):  # Linux
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})
