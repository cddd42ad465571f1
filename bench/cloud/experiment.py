"""One run of the model: a deployment, its due tasks, and the result."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from random import Random

from bench import capacity, limits
from bench.cloud.assumed import CREATE_MS, Knobs, Link
from bench.cloud.calls import Record
from bench.cloud.creates import Creates
from bench.cloud.functions import Functions
from bench.cloud.links import DirectLink, Queue
from bench.cloud.loop import Loop
from bench.cloud.notifier import Notifier
from bench.cloud.provisioned import USE_AIMED_AT, ScaledUnits
from bench.cloud.rates import Bucket, full
from bench.cloud.scheduler import Scheduler
from bench.cloud.sweeper import Sweeper
from bench.cloud.table import Table
from bench.cloud.wheel_state import Entry, WheelState, Writer
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.sharding import SLICE_ENTRIES, shards_for

FIRST_SECOND = 1_000
_BEFORE_SECONDS = 130  # a run of the scheduler, before all that is due
_GIVEN_MS = 600_000  # after this a run is aborted


@dataclass(frozen=True)
class Result:
    tasks: int
    called: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    settled: int
    settled_after_ms: float  # of all tasks, after the last was due
    notifiers_most: int
    runs: int
    gb_seconds: float
    throttled: int
    written: float  # units
    writes: int  # requests
    repeated: int
    retries_p99_ms: float
    resent: int
    high_p50_ms: float = 0  # of tasks of high priority
    high_p99_ms: float = 0
    high_max_ms: float = 0
    refused: int = 0  # creates
    created_after_ms: float = 0  # of the refused one that was repeated longest


def burst(tasks: int) -> dict[int, list[int]]:
    """All at one instant, the beginning of a second, as most callers choose."""
    return {FIRST_SECOND: [FIRST_SECOND * 1000] * tasks}


def steady(rate: int, seconds: int, random: Random) -> dict[int, list[int]]:
    """A number in each second, at random instants in it."""
    return {
        second: [second * 1000 + random.randrange(1000) for _ in range(rate)]
        for second in range(FIRST_SECOND, FIRST_SECOND + seconds)
    }


def swept_in_a_minute(knobs: Knobs, rate: int) -> int:
    """The number of finished seconds, each with so many tasks, that one run of the sweep passes."""
    loop, random = Loop(), Random(1)
    state = WheelState(random)
    last = FIRST_SECOND + 59
    shards, entry = shards_for(rate), Entry(due_ms=0)
    for second in range(FIRST_SECOND, last + 1):
        state.shards[second] = shards
        for shard in range(shards):
            state.slices[second, shard] = [entry] * (rate // shards)
    table = Table(loop, random, full(knobs.table_write_units), full(knobs.table_read_units))
    link = Queue(loop, random, knobs, Functions(loop, random, knobs))
    scheduler = Scheduler(loop, knobs, table, link, state, last)
    loop.now_ms = float((last * 1000) + 10 * knobs.sweep_lag_ms)
    notes = ((last, last * 1000),)
    sweeper = Sweeper(
        loop, knobs, table, link, state, scheduler, FIRST_SECOND - 1, notes, takes_all_as_done=True
    )
    loop.start(sweeper.each_minute())
    loop.run(loop.now_ms + 59_999)
    return sweeper.position - FIRST_SECOND + 1


def run(
    knobs: Knobs,
    due: Mapping[int, list[int]],
    *,
    creates_a_second: int = 0,
    created_before_ms: int | None = None,
    creates: Mapping[int, int] | None = None,
    given_ms: int = _GIVEN_MS,
    high: Mapping[int, list[int]] | None = None,
    below: int = 2,
) -> Result:
    """`creates_a_second`: creates that use the table's writes at the same time. `creates`: those of
    each second, which the table may refuse.
    `created_before_ms`: created singly so long before they are due, when the scheduler has passed
    their seconds. `high`: further tasks, of high priority; then all others are `below` it by
    so many classes."""
    loop, random, record = Loop(), Random(1), Record()
    state = WheelState(random)
    first, last = min(due), max(due)
    is_near = created_before_ms is not None and timing.is_near(
        first, first * 1000 - created_before_ms, knobs.lead_ms
    )
    for second, due_ms in due.items():
        if not is_near:
            entries = [Entry(ms, below=1 if high is None else below) for ms in due_ms]
            entries += [Entry(ms, below=0) for ms in (high or {}).get(second, ())]
            shards = shards_for(len(entries) * SLICE_ENTRIES / knobs.slice_entries)
            state.put(second, shards, entries)
    writes, reads, list_writes = _units(knobs, creates_a_second)
    table = Table(loop, random, writes, reads)
    created = Creates(loop, writes, list_writes, creates or {first: 0})
    loop.start(created.run())
    functions = Functions(loop, random, knobs)
    link = _link(loop, random, knobs, functions)
    slow_link = None
    if high is not None and knobs.has_priorities:
        slow = replace(knobs, messages_per_run=1, notifiers_max=knobs.slow_notifiers_max)
        slow_link = Queue(loop, random, slow, functions)
    notifier = Notifier(loop, random, knobs, table, link, state, record, slow_link)
    functions.handle = notifier.handle
    passed = first - 2 if created_before_ms is None else last
    scheduler = Scheduler(loop, knobs, table, link, state, passed)
    sweeper = Sweeper(loop, knobs, table, link, state, scheduler, first - 2)
    loop.now_ms = float((first - _BEFORE_SECONDS) * 1000)
    loop.start(scheduler.lead(last + 60))
    loop.start(sweeper.each_minute())
    if created_before_ms is not None:
        creators = [Writer() for _ in range(1 + round(creates_a_second * CREATE_MS / 1000))]
        for one_ms in chain.from_iterable(due.values()):
            create = partial(_create_near, loop, state, link, knobs)
            if not is_near:
                create = partial(_announce, loop, random.choice(creators), link, knobs)
            loop.at(one_ms - created_before_ms, create, one_ms)
    all_due = {second: [*ms, *(high or {}).get(second, ())] for second, ms in due.items()}
    tasks = sum(map(len, all_due.values()))
    deadline_ms = loop.now_ms + given_ms
    while record.settled < tasks and loop.now_ms < deadline_ms:
        loop.run(loop.now_ms + 1000)
        loop.now_ms += 1
    result = _result(knobs, all_due, record, functions, table, sweeper)
    return replace(result, refused=created.refused, created_after_ms=created.waited_most_ms)


def _link(loop: Loop, random: Random, knobs: Knobs, functions: Functions) -> Queue | DirectLink:
    if knobs.link is Link.DIRECT:
        return DirectLink(loop, random, knobs, functions)
    return Queue(loop, random, knobs, functions)


def _units(knobs: Knobs, creates_a_second: int) -> tuple[Bucket, Bucket, Bucket]:
    """Writes and reads of the table, writes of the list index."""
    if not knobs.provisioned:
        writes = full(max(knobs.table_write_units - creates_a_second, 1))
        return writes, full(knobs.table_read_units), full(knobs.table_write_units)
    row = capacity.row(knobs.provisioned)
    writes, reads, list_writes = (
        ScaledUnits(row[name], row[f"Most{name}"], load=USE_AIMED_AT * row[name])
        for name in ("Writes", "Reads", "ListWrites")
    )
    reads.of_partition = limits.PARTITION_READ_UNITS.value
    return writes, reads, list_writes


def _result(
    knobs: Knobs,
    due: Mapping[int, list[int]],
    record: Record,
    functions: Functions,
    table: Table,
    sweeper: Sweeper,
) -> Result:
    late, high = sorted(record.lateness_ms), sorted(record.high_late_ms)
    return Result(
        tasks=sum(map(len, due.values())),
        called=len(late),
        p50_ms=_quantile(late, 0.50),
        p99_ms=_quantile(late, 0.99),
        max_ms=_quantile(late, 1),
        settled=record.settled,
        settled_after_ms=record.settled_ms - max(chain.from_iterable(due.values())),
        notifiers_most=functions.running_most,
        runs=functions.runs,
        gb_seconds=functions.busy_ms / 1000 * knobs.notifier_mb / 1024,
        throttled=table.throttled,
        written=table.written,
        writes=table.writes,
        repeated=record.repeated,
        retries_p99_ms=_quantile(sorted(record.retries_late_ms), 0.99),
        resent=sweeper.resent,
        high_p50_ms=_quantile(high, 0.50),
        high_p99_ms=_quantile(high, 0.99),
        high_max_ms=_quantile(high, 1),
    )


def _create_near(
    loop: Loop, state: WheelState, link: Queue | DirectLink, knobs: Knobs, due_ms: int
) -> None:
    message = state.put_again(Entry(due_ms), due_ms, direct=True)
    assert message is not None
    seconds = timing.delay_seconds(due_ms - knobs.lead_ms, int(loop.now_ms))
    loop.start(link.send([message], [seconds * 1000]))


def _announce(
    loop: Loop, creator: Writer, link: Queue | DirectLink, knobs: Knobs, due_ms: int
) -> None:
    announced = creator.announce(due_ms, int(loop.now_ms), knobs.lead_ms)
    if announced:
        loop.start(link.send(list(announced), list(announced.values())))


def _quantile(values: list[float], part: float) -> float:
    if not values:
        return 0
    return values[min(len(values) - 1, int(part * len(values)))]
