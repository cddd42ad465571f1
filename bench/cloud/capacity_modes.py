"""A stack under provisioned capacity, beside the same stack on demand."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from bench.cloud.assumed import Knobs
from bench.cloud.experiment import FIRST_SECOND, run
from bench.cloud.tables import NEW, Due, head, time_of

LOAD = 100  # Capacity
HERD_SECOND = FIRST_SECOND + 60
_GIVEN_MS = 7_200_000
_ON_DEMAND = replace(NEW, is_warm=True)
MODES = {"on-demand": _ON_DEMAND, str(LOAD): replace(_ON_DEMAND, provisioned=LOAD)}


def table() -> Iterator[str]:
    yield (
        f"\nA stack that had {LOAD} tasks a second before, by `Capacity`; on demand the table "
        "takes 4,000 writes a second. Lateness is that of all tasks:"
    )
    yield from head(
        "load",
        "`Capacity`",
        "late p50",
        "p99",
        "most",
        "creates refused",
        "repeated for",
        "notifiers at once",
        "throttled",
        "called again",
        "GB-seconds a million",
    )
    steady = f"{LOAD} a second"
    for name, due in (
        (f"{steady}, ten minutes", loads((LOAD, 600))),
        (f"{steady}, from the second minute on {3 * LOAD}", loads((LOAD, 60), (3 * LOAD, 840))),
        (f"{steady}, and 50,000 on one second", herd(50_000, 600)),
        (f"{steady}, and 1,000,000 on one second", herd(1_000_000, 1_800)),
    ):
        # As many are created as are due, but for the herd, which was created before.
        creates = {second: min(len(tasks), 3 * LOAD) for second, tasks in due.items()}
        creates |= {HERD_SECOND: creates[HERD_SECOND + 1]}
        for mode, knobs in MODES.items():
            yield _row(name, mode, knobs, due, creates)


def loads(*parts: tuple[int, int]) -> Due:
    """Each so many tasks a second, for so many seconds."""
    random, second, due = Random(2), FIRST_SECOND, dict[int, list[int]]()
    for rate, seconds in parts:
        for _ in range(seconds):
            due[second] = [second * 1000 + random.randrange(1000) for _ in range(rate)]
            second += 1
    return due


def herd(tasks: int, seconds: int) -> Due:
    """On one instant of a steady load."""
    due = dict(loads((LOAD, seconds)))
    due[HERD_SECOND] = due[HERD_SECOND] + [HERD_SECOND * 1000] * tasks
    return due


def _row(name: str, mode: str, knobs: Knobs, due: Due, creates: dict[int, int]) -> str:
    result = run(knobs, due, creates=creates, given_ms=_GIVEN_MS)
    called = f"{result.repeated:,}"
    if result.called < result.tasks:
        called += f"; {result.tasks - result.called:,} never"
    cells = (
        name,
        f"`{mode}`",
        *(time_of(ms) for ms in (result.p50_ms, result.p99_ms, result.max_ms)),
        f"{result.refused:,}",
        time_of(result.created_after_ms),
        f"{result.notifiers_most:,}",
        f"{result.throttled:,}",
        called,
        f"{result.gb_seconds / result.tasks * 1e6:,.0f}",
    )
    return "| " + " | ".join(cells) + " |"
