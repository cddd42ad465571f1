"""The experiments as Markdown tables: loads, parameters, the table's limits, failures, the
sweep."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

from bench import limits
from bench.cloud.assumed import Knobs, Link
from bench.cloud.experiment import Result, burst, run, steady, swept_in_a_minute

NEW = Knobs(
    table_write_units=limits.NEW_TABLE_WRITE_UNITS.value,
    table_read_units=limits.NEW_TABLE_READ_UNITS.value,
)
DEFAULT = Knobs()
WARM = replace(DEFAULT, is_warm=True)
RAISED = Knobs(
    table_write_units=400_000,
    table_read_units=400_000,
    account_concurrency=3_000,
    notifiers_max=1_000,
)
COLUMNS = (
    "late p50",
    "p99",
    "most",
    "all settled after",
    "notifiers at once",
    "runs",
    "throttled",
    "called again",
    "GB-seconds a million",
)

Due = Mapping[int, list[int]]


def loads() -> Iterator[str]:
    yield "Load, with the deployment's defaults; notifiers and pollers are there, unless cold:"
    yield from head("load", *COLUMNS)
    yield _row("1,000 a second", _run(WARM, _steady(1_000, 20)))
    yield _row("1,000 a second, cold", _run(DEFAULT, _steady(1_000, 20)))
    yield _row("10,000 a second", _run(WARM, _steady(10_000, 6)))
    yield _row("10,000 a second, cold", _run(DEFAULT, _steady(10_000, 20)))
    raised = replace(RAISED, is_warm=True)
    yield _row("100,000 a second, quotas raised", _run(raised, _steady(100_000, 3)))
    for tasks in (1_000, 10_000, 100_000, 1_000_000):
        yield _row(f"{tasks:,} on one second, cold", _run(DEFAULT, burst(tasks)))
    knobs = replace(RAISED, provisioned_pollers=100, notifier_mb=1_024)
    yield _row(
        "1,000,000 on one second, quotas raised, 100 provisioned pollers, 1 GB",
        _run(knobs, burst(1_000_000)),
    )


def knobs_for_a_burst() -> Iterator[str]:
    yield "\n100,000 on one second, cold, by what is turned:"
    yield from head("knob", *COLUMNS)
    for name, knobs in (
        ("as deployed", DEFAULT),
        ("1 message a run", replace(DEFAULT, messages_per_run=1)),
        ("5 messages a run", replace(DEFAULT, messages_per_run=5)),
        ("10 messages a run", replace(DEFAULT, messages_per_run=10)),
        ("pages of 50", replace(DEFAULT, page_size=50)),
        ("lead of 1 s", replace(DEFAULT, lead_ms=1_000)),
        ("slices of 125", replace(DEFAULT, slice_entries=125)),
        ("slices of 500", replace(DEFAULT, slice_entries=500)),
        ("notifiers of 1,769 MB", replace(DEFAULT, notifier_mb=1_769)),
        ("scheduler of 512 MB", replace(DEFAULT, scheduler_mb=512)),
        ("by asynchronous invocation", replace(DEFAULT, link=Link.DIRECT)),
        ("10 provisioned pollers", replace(DEFAULT, provisioned_pollers=10)),
        ("50 provisioned pollers", replace(DEFAULT, provisioned_pollers=50)),
        (
            "50 provisioned pollers, scheduler of 512 MB",
            replace(DEFAULT, provisioned_pollers=50, scheduler_mb=512),
        ),
    ):
        yield _row(name, _run(knobs, burst(100_000)))


def knobs_for_a_steady_load() -> Iterator[str]:
    yield "\n10,000 a second, warm, by what is turned:"
    yield from head("knob", *COLUMNS)
    for name, knobs in (
        ("as deployed", WARM),
        ("1 message a run", replace(WARM, messages_per_run=1)),
        ("5 messages a run", replace(WARM, messages_per_run=5)),
        ("10 messages a run", replace(WARM, messages_per_run=10)),
        ("pages of 50", replace(WARM, page_size=50)),
        ("lead of 1 s", replace(WARM, lead_ms=1_000)),
        ("no lead", replace(WARM, lead_ms=0)),
        ("slices of 125", replace(WARM, slice_entries=125)),
        ("slices of 500", replace(WARM, slice_entries=500)),
        ("notifiers of 1,024 MB", replace(WARM, notifier_mb=1_024)),
        ("notifiers of 1,769 MB", replace(WARM, notifier_mb=1_769)),
    ):
        yield _row(name, _run(knobs, _steady(10_000, 6)))


def near_tasks() -> Iterator[str]:
    yield "\nNear tasks, created singly 3 s before they are due, a message each, warm:"
    yield from head("load", *COLUMNS)
    for rate in (300, 1_000, 2_000):
        result = run(WARM, _steady(rate, 4), creates_a_second=rate, created_before_ms=3_000)
        yield _row(f"{rate:,} a second", result)


def announced_tasks() -> Iterator[str]:
    yield (
        "\nCreated singly a minute before they are due, so that their creators send the messages "
        "of their pages, warm:"
    )
    yield from head("load", *COLUMNS)
    for rate in (1_000, 10_000):
        seconds = 20 if rate == 1_000 else 6
        result = run(WARM, _steady(rate, seconds), creates_a_second=rate, created_before_ms=60_000)
        yield _row(f"{rate:,} a second", result)


def limits_of_the_table() -> Iterator[str]:
    yield "\n100,000 on one second, by what the table takes:"
    yield from head("table", *COLUMNS)
    yield _row("new: 4,000 writes a second", _run(NEW, burst(100_000)))
    for units in (10_000, 40_000, 400_000):
        knobs = replace(DEFAULT, table_write_units=units, table_read_units=max(units, 40_000))
        yield _row(f"{units:,} writes a second", _run(knobs, burst(100_000)))
    one_shard = replace(DEFAULT, slice_entries=10**9)
    yield _row("40,000, and a second with one shard", _run(one_shard, burst(100_000)))


def failures() -> Iterator[str]:
    yield "\n1,000 a second while things fail:"
    yield from head("what fails", *COLUMNS, "retries late, p99", "pages sent again")
    for name, knobs in (
        ("nothing", WARM),
        ("1 callback in 100", replace(WARM, failing_callbacks=0.01)),
        ("1 run in 100 dies before its calls", replace(WARM, dying_notifiers=0.01)),
        ("1 message in 100 is lost", replace(WARM, lost_messages=0.01)),
    ):
        result = _run(knobs, _steady(1_000, 20))
        yield _row(name, result, time_of(result.retries_p99_ms), f"{result.resent}")


def priorities() -> Iterator[str]:
    yield (
        "\n20 tasks of high priority a second for 60 s beside a flood of the same business, cold. "
        "Few notifiers are a tenth of those that the flood needs, 10 for both lanes:"
    )
    yield from head("flood", "served by", "high late p50", "p99", "most", "all settled after")
    few = replace(DEFAULT, account_concurrency=10, notifiers_max=10)
    high = _steady(20, 60)
    crowd = {second: [] for second in high} | burst(100_000)
    by_instant = "instant", 1, {"has_priorities": False}
    low = "priority, the flood is low", 2, dict[str, bool]()
    bounded = "the same, 2 notifiers in the slow lane", 2, {"slow_notifiers_max": 2}
    for name, knobs, flood in (
        ("100,000 on the first second", DEFAULT, crowd),
        ("100,000 on the first second, few notifiers", few, crowd),
        ("3,000 a second, few notifiers", few, _steady(3_000, 60)),
    ):
        ways = [by_instant, low, bounded] if knobs is few else [by_instant, low]
        for served_by, below, changed in ways:
            result = run(replace(knobs, **changed), flood, high=high, below=below)
            late = result.high_p50_ms, result.high_p99_ms, result.high_max_ms
            cells = name, served_by, *map(time_of, (*late, result.settled_after_ms))
            yield "| " + " | ".join(cells) + " |"


def sweep() -> Iterator[str]:
    yield "\nSeconds that the sweep gets through in a minute, by tasks a second:"
    rates = (100, 300, 1_000, 3_000, 10_000)
    yield from head("sweeper", *(f"{rate:,}" for rate in rates))
    for memory_mb in (256, 512, 1_024, 1_769):
        swept = (swept_in_a_minute(Knobs(sweeper_mb=memory_mb), rate) for rate in rates)
        yield "| " + " | ".join([f"{memory_mb:,} MB", *(f"{n}" for n in swept)]) + " |"


def _steady(rate: int, seconds: int) -> Due:
    return steady(rate, seconds, Random(2))


def _run(knobs: Knobs, due: Due) -> Result:
    """Under a steady load as many tasks are created as delivered, and share the table's writes."""
    creates = len(next(iter(due.values()))) if len(due) > 1 else 0
    return run(knobs, due, creates_a_second=creates)


def _row(name: str, result: Result, *more: str) -> str:
    settled = time_of(result.settled_after_ms)
    if result.settled < result.tasks:
        settled = f"{result.settled:,} of {result.tasks:,} in {settled}"
    cells = (
        name,
        time_of(result.p50_ms),
        time_of(result.p99_ms),
        time_of(result.max_ms),
        settled,
        f"{result.notifiers_most:,}",
        f"{result.runs:,}",
        f"{result.throttled:,}",
        f"{result.repeated:,}",
        f"{result.gb_seconds / result.tasks * 1e6:,.0f}",
        *more,
    )
    return "| " + " | ".join(cells) + " |"


def time_of(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1_000 else f"{ms / 1000:,.1f} s"


def head(*cells: str) -> Iterator[str]:
    yield ""
    yield "| " + " | ".join(cells) + " |"
    yield "| " + " | ".join(["---"] * len(cells)) + " |"
