"""Units and requests per task of the local stack, from created to swept, counted with a movable
clock.

They do not depend on the machine, and counting would slow down the timed runs, so they are counted
separately. `make cost` prints their cost by density and means of creation.
"""

import boto3

from bench.cost.counted import KNOWN_MS, dispatch_ahead
from bench.one_machine.processes import ROOT
from duewheel.log import logger
from local.aws.emulator import Emulator
from local.aws.resources import create_resources
from local.aws.template import load_template
from tests.support.clock import ManualClock
from tests.support.units import Meter
from tests.support.world import World

CROWDS = (1, 100, 1_000)
PAYLOAD = '{"order": 17, "note": "' + "x" * 250 + '"}'


def counted_seconds() -> dict[int, dict[str, float]]:
    """By the number of tasks due at the same instant; created singly, list index on."""
    logger.setLevel("WARNING")
    return {tasks: counted_second(tasks) for tasks in CROWDS}


def counted_second(tasks: int) -> dict[str, float]:
    clock = ManualClock()
    with Emulator(clock) as emulator:
        clients = boto3.client("dynamodb"), boto3.client("sqs")
        resources = create_resources(load_template(ROOT / "template.yaml"), *clients)
        world = World(emulator, resources, clock)
        world.wire()
        meter = Meter(world.settings.wheel_table)
        world.recorder.after = meter
        _live_through(world, tasks)
        world.close()
        return {
            "write units": meter.write_units / tasks,
            "read units": meter.read_units / tasks,
            "DynamoDB requests": meter.dynamodb_requests / tasks,
            "SQS requests": meter.sqs_requests / tasks,
        }


def _live_through(world: World, tasks: int) -> None:
    made = [world.created(in_ms=KNOWN_MS, payload=PAYLOAD) for _ in range(tasks)]
    second = made[0].due_ms // 1000
    dispatch_ahead(world, second)
    world.clock.set_ms(second * 1000)
    world.drain()
    world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
    if not world.sweep_second_once(second):
        raise AssertionError("the second is not finished")
