"""Counts on moto what DynamoDB and SQS would bill: one second with tasks, and one without.

The whole service runs, on a clock that is moved by hand; sizes are computed by the meter
of the budget tests.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import boto3

from duewheel.log import logger
from duewheel.rules import leadership
from duewheel.rules.task import Status, Task
from local.emulator import Emulator
from local.resources import Resources, create_resources
from local.template import load_template
from tests.support.clock import ManualClock
from tests.support.recorder import Call
from tests.support.units import Meter, size_of
from tests.support.world import World

TEMPLATE = Path(__file__).resolve().parents[1] / "template.yaml"
PAYLOAD = '{"order": "' + "x" * 380 + '"}'
STORED_OVERHEAD_BYTES = 100  # what DynamoDB adds to each item, and to each entry of an index
IDLE_MINUTES = 5
MINUTES_TO_SETTLE = 4  # until the sweep follows at its distance

logger.setLevel("WARNING")


@dataclass
class Units:
    """Of one second with tasks, or of so many seconds without."""

    write: float = 0
    read: float = 0
    dynamodb_requests: float = 0
    sqs_requests: float = 0
    stored_bytes: int = 0
    lease_bytes: int = 0

    def scaled(self, factor: float) -> "Units":
        return Units(**{name: value * factor for name, value in asdict(self).items()})


class RegistryMeter:
    """The Registry's items are all far below 1 KB."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.write = 0
        self.read = 0.0

    def __call__(self, call: Call) -> None:
        if call.request.get("TableName") != self._table:
            return
        match call.operation:
            case "PutItem" | "UpdateItem":
                self.write += 1
            case "GetItem":
                self.read += 1 if call.request.get("ConsistentRead") else 0.5
            case _:
                raise AssertionError(f"what does {call.operation} cost?")


@contextmanager
def new_world(*, list_index: bool = True) -> Iterator[tuple[World, Resources]]:
    clock = ManualClock()
    with Emulator(clock) as emulator:
        clients = boto3.client("dynamodb"), boto3.client("sqs")
        resources = create_resources(load_template(TEMPLATE), *clients)
        world = World(emulator, resources, clock)
        world.wire(list_index=list_index)
        yield world, resources


def count_second(tasks: int, *, list_index: bool = True) -> Units:
    """One second's tasks, created singly a minute ahead, called back and swept."""
    with new_world(list_index=list_index) as (world, _):
        meter = Meter(world.settings.wheel_table)
        world.recorder.after = meter
        spread = [60_000 + number * 1_000 // tasks for number in range(tasks)]
        made = [world.created(in_ms=in_ms, payload=PAYLOAD) for in_ms in spread]
        second = made[0].due_ms // 1000
        world.clock.set_ms(second * 1000)
        world.pointer()  # a reply tells AWS's time, which bounds the tick
        world.dispatch.tick(second - 1)
        world.drain()
        world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
        if not world.sweep_second_once(second):
            raise AssertionError("the second is not finished")
        world.recorder.after = None
        return Units(
            meter.write_units,
            meter.read_units,
            meter.dynamodb_requests,
            meter.sqs_requests,
            *_stored(world, made),
        )


def _stored(world: World, made: list[Task]) -> tuple[int, int]:
    """What the second leaves behind: its settled tasks with their index entries, its leases."""
    tasks = leases = 0
    for item in world.items():
        bytes_here = size_of(item) + STORED_OVERHEAD_BYTES
        if "status" not in item:
            leases += bytes_here
            continue
        tasks += bytes_here
        if "biz_part" in item:
            keys = {name: item[name] for name in ("slot", "place", "biz_part", "due_ms")}
            tasks += size_of(keys) + STORED_OVERHEAD_BYTES
    if not all(world.read(task).status is Status.DELIVERED for task in made):
        raise AssertionError("not everything was delivered")
    return tasks, leases


def count_idle() -> tuple[Units, Units]:
    """A second without tasks, and what the pointers cost beside it; each for one second."""
    with new_world() as (world, _):
        for _ in range(MINUTES_TO_SETTLE):
            _idle_minute(world)
        wheel = Meter(world.settings.wheel_table)
        registry = RegistryMeter(world.settings.registry_table)

        def bill(call: Call) -> None:
            wheel(call)
            registry(call)

        world.recorder.after = bill
        for _ in range(IDLE_MINUTES):
            _idle_minute(world)
        world.recorder.after = None
    seconds = IDLE_MINUTES * 60
    probes = Units(0, wheel.read_units, wheel.dynamodb_requests).scaled(1 / seconds)
    # The standby looks at the lease each second, and each newcomer registers.
    pointers = Units(registry.write / seconds + 1 / 60, registry.read / seconds)
    pointers.read += 1 / leadership.WATCH_SECONDS
    return probes, pointers


def _idle_minute(world: World) -> None:
    """A scheduler leads for a minute and makes way; then a sweeper runs."""
    minute_ends_ms = world.clock.now_ms() + 60_000
    world.lead.run("", lambda: 1_000_000 if world.clock.now_ms() < minute_ends_ms else 0)
    world.sweep_once()
