"""Counts on moto the units that DynamoDB and SQS would bill, by means of creation and density.

The whole service runs on a movable clock; the meter of the budget tests computes sizes. The bill
adds random costs as expectations; they are not counted here.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

import boto3

from duewheel.log import logger
from duewheel.rules.delivery.page_lease import PageLease, needs_done_mark
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tolerance import Window, shared_ms
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.rules.wheel.sharding import Placement, shards_for
from local.aws.emulator import Emulator
from local.aws.patches.item_sizes import size_of
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template
from tests.support import timers
from tests.support.clock import ManualClock
from tests.support.recorder import Call
from tests.support.units import Meter
from tests.support.world import LAMBDA_MS, World

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"
PAYLOAD = '{"order": "' + "x" * 380 + '"}'
TASKS_PER_BATCH = 100
STORED_OVERHEAD_BYTES = 100  # the overhead of each item, and of each entry of an index
IDLE_MINUTES = 5
MINUTES_TO_SETTLE = 4  # until the sweep follows at its lag
KNOWN_MS = 180_000  # so long before tasks are created whose pages the scheduler announces
DUE_SPREAD_MS = 617  # between the places of consecutive seconds' tasks in their seconds
ANNOUNCED_MS = 60_000  # and so long those whose pages their writers announce
ANNOUNCED_TOGETHER = 10  # tasks of one second, by one process
TOLERANCE_SECONDS = 60  # of tasks that share seconds

logger.setLevel("ERROR")


class Means(Enum):
    """The means of creation."""

    SINGLE = "created one by one"
    BATCH = f"in batches of {TASKS_PER_BATCH}"
    KEYED = "one by one, with a key"
    TIMER = "by timers that fire each minute"


@dataclass(frozen=True)
class Units:
    write: float = 0
    read: float = 0
    dynamodb_requests: float = 0
    sqs_requests: float = 0
    pages: float = 0
    task_bytes: float = 0
    listed_bytes: float = 0  # of their entries in the list index
    lease_bytes: float = 0
    registry_write: float = 0  # of `write`; the rest is of the Wheel
    registry_read: float = 0

    def __add__(self, other: "Units") -> "Units":
        return self.plus(other, 1)

    def plus(self, other: "Units", times: float) -> "Units":
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(Units))
        return Units(*(mine + times * theirs for mine, theirs in pairs))

    def __truediv__(self, number: float) -> "Units":
        return Units().plus(self, 1 / number)


class Ledger:
    """The billed units while this is open: of both tables and both queues."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._wheel = Meter(world.settings.wheel_table)
        self._registry = Meter(world.settings.registry_table)

    @contextmanager
    def open(self) -> Iterator[None]:
        def bill(call: Call) -> None:
            self._wheel(call)
            self._registry(call)

        self._world.recorder.after = bill
        yield
        self._world.recorder.after = None

    @property
    def wheel(self) -> Units:
        """With the queues, which each meter counts completely."""
        meter = self._wheel
        return Units(
            meter.write_units, meter.read_units, meter.dynamodb_requests, meter.sqs_requests
        )

    @property
    def registry(self) -> Units:
        meter = self._registry
        return Units(
            meter.write_units,
            meter.read_units,
            meter.dynamodb_requests,
            registry_write=meter.write_units,
            registry_read=meter.read_units,
        )

    @property
    def both(self) -> Units:
        return self.wheel + self.registry


@contextmanager
def new_world(*, list_index: bool = True) -> Iterator[tuple[World, Resources]]:
    clock = ManualClock()
    with Emulator(clock) as emulator:
        clients = boto3.client("dynamodb"), boto3.client("sqs")
        resources = create_resources(load_template(TEMPLATE), *clients)
        world = World(emulator, resources, clock)
        world.wire(list_index=list_index)
        yield world, resources
        world.close()


def count_creation(means: Means, per_second: int, *, list_index: bool, tolerance: int = 0) -> Units:
    """For one task that the scheduler announces, if so many are due in each second. A batch covers
    as many seconds as it needs."""
    if means is Means.TIMER:
        return _count_planning(list_index=list_index)
    number = max(TASKS_PER_BATCH, per_second) if means is Means.BATCH else 1
    created = _count_creates(
        means, number, per_second, KNOWN_MS, list_index=list_index, tolerance=tolerance
    )
    return created / number


def count_announcement() -> Units:
    """What it adds to the creation of all tasks of one second, one by one in one process, if they
    are known a minute before."""
    announced, known = (
        _count_creates(Means.SINGLE, ANNOUNCED_TOGETHER, ANNOUNCED_TOGETHER, before_ms)
        for before_ms in (ANNOUNCED_MS, KNOWN_MS)
    )
    return announced.plus(known, -1)


@dataclass(frozen=True)
class SharedSeconds:
    """How many seconds of a tolerance the tasks share, and how many tasks share one."""

    seconds: int
    tasks: int


def shared_seconds(per_second: int, tolerance: int) -> SharedSeconds:
    """As the rules of a crowd spread the tasks of one business."""
    base = shared_ms(Window(0, "orders"), tolerance) // 1000
    number = per_second * tolerance
    shards = {base + tolerance: shards_for(number)} if shards_for(number) > 1 else {}
    placement = Placement(now_ms=0, lead_ms=0, shards=shards)
    dues_ms = {
        placement.due_ms(Window(second * 1_000 + 1, "orders", tolerance), bytes([token]))
        for second in range(base, base + tolerance)
        for token in range(256)
    }
    found = {due_ms // 1_000 % tolerance for due_ms in dues_ms}
    return SharedSeconds(len(found), number // len(found))


def _count_creates(
    means: Means,
    number: int,
    per_second: int,
    before_ms: int,
    *,
    list_index: bool = True,
    tolerance: int = 0,
) -> Units:
    with new_world(list_index=list_index) as (world, _):
        ledger = Ledger(world)
        with ledger.open():
            create(world, means, _spread(number, per_second, before_ms), tolerance)
        return ledger.both


def _spread(number: int, per_second: int, before_ms: int) -> list[int]:
    return [before_ms + n * 1_000 // per_second for n in range(number)]


def count_delivery(
    means: Means, per_second: int, *, announced: bool = False, tolerance: int = 0
) -> Units:
    """One second's tasks, from the tick that probes it until the sweep has passed them. The list
    index adds storage alone: its keys never change. `announced`: known a minute before, after that
    tick. With a tolerance it is a second that so many tasks share."""
    with new_world() as (world, _):
        delivery, sweep = Ledger(world), Ledger(world)
        if announced:
            due_second = (world.clock.now_ms() + KNOWN_MS) // 1000
            dispatch_ahead(world, due_second, delivery.open())
            world.clock.set_ms(due_second * 1000 - ANNOUNCED_MS)
            create(world, means, _spread(per_second, per_second, ANNOUNCED_MS))
        else:
            due_second = _created_ahead(world, means, per_second, tolerance)
            dispatch_ahead(world, due_second, delivery.open())
        world.clock.set_ms(due_second * 1000)
        with delivery.open():
            world.drain()
        world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
        with sweep.open():
            if not world.sweep_second_once(due_second):
                raise AssertionError("the second is not finished")
        # Statistics are in the Registry, and are written once for many seconds.
        return delivery.both + sweep.wheel + _left_behind(world, due_second, per_second)


def count_repeat(per_second: int) -> Units:
    """Of a further message of a page of so many tasks, once it is sent: it finds the page's lease,
    comes again, and finds a mark, or begins the page again and finds no pending task."""
    with new_world() as (world, _):
        tasks = create(world, Means.BATCH, _spread(per_second, per_second, KNOWN_MS))
        for task in tasks:
            world.cancel(task.task_id)  # they read like delivered ones
        page, ledger = PageMessage(tasks[0].due_ms // 1000, 0), Ledger(world)
        world.clock.set_ms(page.second * 1000)
        now_ms = world.clock.now_ms()
        lease = world.pages.take(
            PageLease(page.second, page.shard), "another", now_ms, world.settings.page_lease_ms
        )
        if not isinstance(lease, PageLease):
            raise AssertionError("another run has the lease")
        world.entry_writer.message_sender.send_or_raise(page)
        refused = _refused_updates(world, ledger)
        if needs_done_mark(lease, per_second, per_second, shards=1):
            world.pages.mark_done(lease)
        world.clock.set_ms(lease.until_ms + 2_000)
        refused += _refused_updates(world, ledger)
        if world.emulator.messages_visible_at_ms(world.settings.slice_queue_url):
            raise AssertionError("the message is not deleted")
        return ledger.both + Units(write=refused, dynamodb_requests=refused)


def _refused_updates(world: World, ledger: Ledger) -> int:
    """Lets notifiers work. The meter does not count what is refused."""
    world.recorder.clear()
    with ledger.open():
        world.drain()
    calls = world.recorder.calls
    return sum(call.operation == "UpdateItem" and call.response is None for call in calls)


def count_sends() -> float:
    """Requests of a run of the scheduler for each of its messages, one for each second of a minute.
    Those that are sent in the same tenth of a second share requests."""
    with new_world() as (world, _):
        seconds = timing.RUN_EVERY_SECONDS
        spread = [KNOWN_MS + n * 1_000 + n * DUE_SPREAD_MS % 1_000 for n in range(seconds)]
        first = create(world, Means.SINGLE, spread)[0].due_ms // 1000
        opens_ms = timing.opens_ms(first + seconds - 1, world.settings.lead_ms)
        world.clock.set_ms(opens_ms - timing.AHEAD_MS)
        world.pointer()
        ledger = Ledger(world)
        with ledger.open():
            world.dispatch.tick(first - 1, timing.AHEAD_MS)
        return ledger.both.sqs_requests / seconds


def _created_ahead(world: World, means: Means, per_second: int, tolerance: int) -> int:
    """The second in which they are due."""
    if means is Means.TIMER:
        return _timers_due_together(world, per_second)
    in_ms = _spread(per_second, per_second, KNOWN_MS)
    if tolerance:
        from_ms = world.clock.now_ms() + KNOWN_MS
        behind_ms = shared_ms(Window(from_ms, "orders"), tolerance) + 1 - from_ms
        step_ms = tolerance * 1_000 // per_second
        in_ms = [KNOWN_MS + behind_ms + n * step_ms for n in range(per_second)]
    tasks = create(world, means, in_ms, tolerance)
    if len({task.home.second for task in tasks}) != 1:
        raise AssertionError("they are due in several seconds")
    return tasks[0].home.second


def dispatch_ahead(
    world: World, second: int, counting: AbstractContextManager[None] | None = None
) -> None:
    """As the last second of a run of the scheduler."""
    ahead_ms = timing.AHEAD_MS
    opens_ms = timing.opens_ms(second, world.settings.lead_ms)
    if world.clock.now_ms() > opens_ms - ahead_ms:
        raise AssertionError("the scheduler has passed the second")
    world.clock.set_ms(opens_ms - ahead_ms)
    world.pointer()  # a reply has AWS's time, which bounds the tick
    with counting or nullcontext():
        if world.dispatch.tick(second - 1, ahead_ms) != second:
            raise AssertionError("the second is not dispatched")


def create(world: World, means: Means, in_ms: list[int], tolerance: int = 0) -> list[Task]:
    more: dict[str, Any] = {"tolerance_seconds": tolerance} if tolerance else {}
    match means:
        case Means.SINGLE:
            return [world.created(in_ms=one, payload=PAYLOAD, **more) for one in in_ms]
        case Means.KEYED:
            keyed = (
                world.new(in_ms=one, payload=PAYLOAD, key=f"order-{number}", digest="d")
                for number, one in enumerate(in_ms)
            )
            return [world.created_by_key(new).task for new in keyed]
        case _:
            news = [world.new(in_ms=one, payload=PAYLOAD, **more) for one in in_ms]
            batches = (news[n : n + TASKS_PER_BATCH] for n in range(0, len(news), TASKS_PER_BATCH))
            results = [result for batch in batches for result in world.created_many(batch)]
            made = [result for result in results if isinstance(result, Task)]
            if len(made) < len(in_ms):
                raise AssertionError("not everything was created")
            return made


def _count_planning(*, list_index: bool) -> Units:
    """Of one run of a timer: its planning and its share of the fixed cost of a step, when the timer
    has been planned before. The entry of its chain is on the page of a run, which pays for it. Runs
    are planned minutes ahead, so none is announced by its planner."""
    with new_world(list_index=list_index) as (world, _):
        timer = timers.made(world, 60, payload=PAYLOAD)
        world.drain()
        before = len(timers.occurrences(world, timer))
        chain = timers.chain_of(world, timer)
        if chain is None or chain.plan is None:
            raise AssertionError("the timer is not planned")
        world.clock.set_ms(chain.next_ms)
        world.pointer()
        ledger = Ledger(world)
        with ledger.open():
            deadline_ms = chain.next_ms + LAMBDA_MS
            world.deliver.deliver_entries.plan_timers([(chain, chain.plan)], deadline_ms)
        return ledger.both / (len(timers.occurrences(world, timer)) - before)


def _timers_due_together(world: World, number: int) -> int:
    """So many timers that fire in the same second, each a few times in a step of its planning."""
    made = [timers.made(world, 1_800, payload=PAYLOAD) for _ in range(number)]
    world.drain()
    first = timers.occurrences(world, made[0])[0]
    return first.due_ms // 1000


def _left_behind(world: World, second: int, tasks_expected: int) -> Units:
    """Settled tasks, their entries in the indexes, and leases."""
    tasks = listed = leases = pages = delivered = 0
    for item in world.items():
        if not item["place"]["S"].startswith(f"{second:011d}"):
            continue
        bytes_here = size_of(item) + STORED_OVERHEAD_BYTES
        if "status" not in item:
            leases += bytes_here
            pages += "tries" in item
            continue
        tasks += bytes_here + _entry_bytes(item, ("timer",))
        listed += _entry_bytes(item, ("biz_part", "due_ms"))
        delivered += item["status"]["S"] == Status.DELIVERED.value
    if delivered != tasks_expected:
        raise AssertionError(f"{delivered} of {tasks_expected} tasks were delivered")
    return Units(pages=pages, task_bytes=tasks, listed_bytes=listed, lease_bytes=leases)


def _entry_bytes(item: Mapping[str, Any], index: tuple[str, ...]) -> int:
    if not all(name in item for name in index):
        return 0
    keys = {name: item[name] for name in {"slot", "place", *index}}
    return size_of(keys) + STORED_OVERHEAD_BYTES


def count_idle() -> tuple[Units, Units]:
    """A second without tasks, probed and swept, and the cost of pointers and leases in any
    second."""
    with new_world() as (world, _):
        for _ in range(MINUTES_TO_SETTLE):
            idle_minute(world)
        ledger = Ledger(world)
        with ledger.open():
            for _ in range(IDLE_MINUTES):
                idle_minute(world)
    seconds = IDLE_MINUTES * 60
    return ledger.wheel / seconds, ledger.registry / seconds


def idle_minute(world: World) -> None:
    """A scheduler dispatches ahead and ends; then a sweeper."""
    minute_ends_ms = world.clock.now_ms() + 60_000
    world.lead.run("", lambda: 1_000_000)
    world.clock.set_ms(max(world.clock.now_ms(), minute_ends_ms))
    world.sweep_once()
