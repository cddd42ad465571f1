"""Catching up with an hour's outage: messages sent and pages begun, minute by minute.

Counted on moto with a movable clock, so it measures the load, not the speed: in a deployed stack
all available environments share the messages of a minute.

    make bench-catch-up
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from bench.cost.counted import new_world
from duewheel.rules.tasks.task import Status
from tests.support.minutes import DYNAMODB, LAMBDA, SQS, Minutes
from tests.support.world import World

HOUR = 60
EVERY_SECONDS = 12  # a task
CATCH_UP_MINUTES_MAX = 40

Outage = Callable[[Minutes], AbstractContextManager[None]]


@contextmanager
def without_scheduler(minutes: Minutes) -> Iterator[None]:
    minutes.scheduler = False
    yield
    minutes.scheduler = True


@contextmanager
def without_notifiers(minutes: Minutes) -> Iterator[None]:
    minutes.notifier = False
    yield
    minutes.notifier = True


@contextmanager
def purged(minutes: Minutes) -> Iterator[None]:
    with without_notifiers(minutes):
        yield
    world = minutes.world
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)


def refusing(operations: set[str]) -> Outage:
    @contextmanager
    def outage(minutes: Minutes) -> Iterator[None]:
        minutes.refused = operations
        yield
        minutes.refused = set()

    return outage


OUTAGES: dict[str, Outage] = {
    "no scheduler": without_scheduler,
    "no notifiers": without_notifiers,
    "queue purged after it": purged,
    "neither link": refusing(SQS | LAMBDA),
    "no DynamoDB": refusing(DYNAMODB),
}


def measure(outage: Outage) -> list[str]:
    with new_world() as (world, _):
        minutes = Minutes(world)
        minutes.pass_by(1)
        tasks = [
            world.created(in_ms=90_000 + seconds * 1_000)
            for seconds in range(0, (HOUR - 2) * 60, EVERY_SECONDS)
        ]
        with outage(minutes):
            during = minutes.pass_by(HOUR)
        ended = world.clock.now_ms() // 1000
        after = minutes.until_swept(ended, CATCH_UP_MINUTES_MAX)
        if not all(world.read(task).status is Status.DELIVERED for task in tasks):
            raise AssertionError("not everything was delivered")
        return [
            str(len(tasks)),
            str(sum(minute.sent for minute in during)),
            str(sum(minute.sent for minute in after)),
            str(max(minute.sent for minute in after)),
            str(sum(minute.begun for minute in after)),
            str(repeats(world)),
            str(len(after)),
        ]


def repeats(world: World) -> int:
    called = world.receiver.task_ids
    return len(called) - len(set(called))


def main() -> None:
    logging.disable(logging.CRITICAL)
    print(
        "| an hour of | slices | messages sent during it | after it | most in a minute "
        "| pages begun after it | calls repeated | minutes until swept |"
    )
    print("|---" * 8 + "|")
    for name, outage in OUTAGES.items():
        print(f"| {name} | {' | '.join(measure(outage))} |", flush=True)


if __name__ == "__main__":
    main()
