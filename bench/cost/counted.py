"""Counts on moto the units that DynamoDB and SQS would bill, by means of creation and density.

The whole service runs on a movable clock; the meter of the budget tests computes sizes. The bill
adds random costs as expectations; they are not counted here.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

import boto3

from duewheel.log import logger
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel import leader_election
from duewheel.rules.wheel.profile import PRECISE, Profile
from local.aws.emulator import Emulator
from local.aws.patches.item_sizes import size_of
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template
from tests.support import timers
from tests.support.clock import ManualClock
from tests.support.recorder import Call
from tests.support.units import Meter
from tests.support.world import World

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"
PAYLOAD = '{"order": "' + "x" * 380 + '"}'
TASKS_PER_BATCH = 100
STORED_OVERHEAD_BYTES = 100  # the overhead of each item, and of each entry of an index
IDLE_MINUTES = 5
MINUTES_TO_SETTLE = 4  # until the sweep follows at its lag
EACH_MINUTE = 60  # a timer's runs in an hour, which is one step of its planning

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
        return Units(meter.write_units, meter.read_units, meter.dynamodb_requests)

    @property
    def both(self) -> Units:
        return self.wheel + self.registry


@contextmanager
def new_world(
    *, list_index: bool = True, profile: Profile = PRECISE
) -> Iterator[tuple[World, Resources]]:
    clock = ManualClock()
    with Emulator(clock) as emulator:
        clients = boto3.client("dynamodb"), boto3.client("sqs")
        resources = create_resources(load_template(TEMPLATE), *clients)
        world = World(emulator, resources, clock)
        world.wire(list_index=list_index, profile=profile)
        yield world, resources
        world.close()


def count_creation(means: Means, per_second: int, *, list_index: bool) -> Units:
    """For one task, if so many are due in each second. A batch covers as many seconds as it
    needs."""
    if means is Means.TIMER:
        return _count_planning(list_index=list_index)
    number = max(TASKS_PER_BATCH, per_second) if means is Means.BATCH else 1
    with new_world(list_index=list_index) as (world, _):
        ledger = Ledger(world)
        with ledger.open():
            create(world, means, [60_000 + n * 1_000 // per_second for n in range(number)])
        return ledger.both / number


def count_delivery(means: Means, per_second: int) -> Units:
    """One second's tasks, from the tick that finds them until the sweep has passed them. The
    list index adds storage alone: its keys never change."""
    with new_world() as (world, _):
        if means is Means.TIMER:
            due_second = _timers_due_together(world, per_second)
        else:
            spread = [60_000 + n * 1_000 // per_second for n in range(per_second)]
            tasks = create(world, means, spread)
            due_second = tasks[0].due_ms // 1000
        world.clock.set_ms(due_second * 1000)
        world.pointer()  # a reply has AWS's time, which bounds the tick
        delivery, sweep = Ledger(world), Ledger(world)
        with delivery.open():
            world.dispatch.tick(due_second - 1)
            world.drain()
        world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
        with sweep.open():
            if not world.sweep_second_once(due_second):
                raise AssertionError("the second is not finished")
        # Statistics are in the Registry, and are written once for many seconds.
        return delivery.both + sweep.wheel + _left_behind(world, due_second, per_second)


def create(world: World, means: Means, in_ms: list[int]) -> list[Task]:
    match means:
        case Means.SINGLE:
            return [world.created(in_ms=one, payload=PAYLOAD) for one in in_ms]
        case Means.KEYED:
            news = (
                world.new(in_ms=one, payload=PAYLOAD, key=f"order-{number}", digest="d")
                for number, one in enumerate(in_ms)
            )
            return [world.created_by_key(new).task for new in news]
        case _:
            news = [world.new(in_ms=one, payload=PAYLOAD) for one in in_ms]
            batches = (news[n : n + TASKS_PER_BATCH] for n in range(0, len(news), TASKS_PER_BATCH))
            results = [result for batch in batches for result in world.created_many(batch)]
            made = [result for result in results if isinstance(result, Task)]
            if len(made) < len(in_ms):
                raise AssertionError("not everything was created")
            return made


def _count_planning(*, list_index: bool) -> Units:
    """Of one run of a timer: the planning of each run, and its share of the fixed planning cost.
    Two timers, one with twice as many runs, separate the two."""
    counted = {}
    for every_seconds in (60, 120):
        with new_world(list_index=list_index) as (world, _):
            timer = timers.made(world, every_seconds, payload=PAYLOAD)
            ledger = Ledger(world)
            with ledger.open():
                world.drain()
            counted[len(timers.occurrences(world, timer))] = ledger.both
    (many, of_many), (few, of_few) = sorted(counted.items(), reverse=True)
    each = of_many.plus(of_few, -1) / (many - few)
    rest = of_few.plus(each, -few)
    return each + rest / EACH_MINUTE


def _timers_due_together(world: World, number: int) -> int:
    """So many timers that fire in the same second, each once an hour."""
    made = [timers.made(world, 3_600, payload=PAYLOAD) for _ in range(number)]
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
            pages += "done" in item
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


def count_idle(profile: Profile) -> tuple[Units, Units]:
    """A second without tasks, probed and swept, and the cost of pointers and leases in any
    second."""
    with new_world(profile=profile) as (world, _):
        for _ in range(MINUTES_TO_SETTLE):
            idle_minute(world)
        ledger = Ledger(world)
        with ledger.open():
            for _ in range(IDLE_MINUTES):
                idle_minute(world)
    seconds = IDLE_MINUTES * 60
    # The standby reads the lease each second, and each candidate registers.
    standby = Units(write=1 / 60, read=0.5 / leader_election.WATCH_SECONDS)
    pointers = ledger.registry / seconds
    return ledger.wheel / seconds, pointers + standby if profile.stays else pointers


def idle_minute(world: World) -> None:
    """A scheduler runs for a minute and steps down, or ends when it is done; then a sweeper."""
    minute_ends_ms = world.clock.now_ms() + 60_000
    world.lead.run("", lambda: 1_000_000 if world.clock.now_ms() < minute_ends_ms else 0)
    world.clock.set_ms(max(world.clock.now_ms(), minute_ends_ms))
    world.sweep_once()
