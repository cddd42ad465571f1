"""The deployed service: its functions, its tables and queues, and whoever calls its API.

Handlers, wiring and template are the real ones. What is played here is Lambda: it invokes them,
each on a clock of its own, and ends them at their deadline.
"""

import asyncio
import json
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from itertools import count
from typing import Any
from unittest.mock import patch

import boto3
from moto.moto_api._internal import mock_random

from bench.limits import TABLE_WRITE_UNITS
from duewheel.log import logger
from duewheel.rules.wheel.queue_messages import texts_of_event
from duewheel.stores import aws_clients
from duewheel.stores.businesses.health import HealthStore
from duewheel.wiring import notifier, process
from local.aws.calling_function import asking
from local.aws.emulator import Emulator
from local.aws.functions import Context, Died
from local.aws.permissions import hold_functions_to_their_roles, taken_refusals
from local.aws.policies import Role, roles_of
from local.aws.resources import Resources, create_resources
from local.aws.template import Template
from local.chaos.aws_faults import answered_by
from tests.simulation.environments import Environments
from tests.simulation.faults import Faults
from tests.simulation.invocation import Ended, Invocation, current
from tests.simulation.receiver import Receiver
from tests.simulation.seams import replaced
from tests.simulation.virtual_time import ReservedTurns, VirtualLoop
from tests.simulation.wire import Wire
from tests.support.clock import NOON_MS
from tests.support.governor import Governor

FUNCTIONS = ("api", "bulk", "ingest", "notifier", "scheduler", "sweeper")
NO_HEADERS: Mapping[str, str] = {}


class AwsClock:
    """What AWS itself goes by: the time, whatever the clocks of the functions are off by."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return NOON_MS + int(self._loop.time() * 1000 + 1e-6)


class Service:
    """Also the clock of all functions: one time, and what each process's clock is off by."""

    def __init__(self, template: Template, faults: Faults, *, seed: int) -> None:
        self.loop = VirtualLoop()
        self.turns = ReservedTurns()
        self.faults = faults
        self.receiver = Receiver(faults)
        self.emulator = Emulator(AwsClock(self.loop))
        self._template = template
        handlers()  # imports the modules whose parts are replaced
        self.chance = random.Random(seed)
        self.wire = Wire(faults, self.turns, self.seconds, self.chance)
        self._seed = seed
        self._numbers = count(1)
        self._timeouts: dict[str, int] = {}
        self._roles: dict[str, Role] = {}
        # When those began that run each minute, of what succeeded:
        self.succeeded: dict[str, list[float]] = defaultdict(list)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.environments = Environments(faults, self.seconds)

    # The clock

    def seconds(self) -> float:
        return self.loop.time()

    def now_ms(self) -> int:
        running = current.get()
        off_ms = running.skew_ms if running else 0
        return NOON_MS + int(self.loop.time() * 1000 + 1e-6) + off_ms

    def found_slow(self, biz_type: str) -> None:
        """As if calls of the business had been observed to be slow, for a day."""
        store = HealthStore(boto3.client("dynamodb"), self.settings.registry_table)
        store.note_slow(biz_type, self.now_ms() + 86_400_000)

    def sleep(self, seconds: float) -> None:
        self.turns.wait_for(self._slept(seconds))

    async def sleep_until_ms(self, instant_ms: int) -> None:
        await self._slept_until(instant_ms)

    async def sleep_beside_until_ms(self, instant_ms: int) -> None:
        await self._slept_until(instant_ms)

    async def _slept_until(self, instant_ms: int) -> None:
        while (missing_ms := instant_ms - self.now_ms()) > 0:
            await asyncio.sleep(missing_ms / 1000)
        await self._slept(0)

    async def _slept(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)
        if (running := current.get()) is not None:
            await running.environment.thawed()
            running.must_live(self.seconds())

    # Up and down

    @contextmanager
    def running(self) -> Iterator["Service"]:
        random.seed(self._seed)  # the SDK waits between its tries by chance
        mock_random.seed(self._seed)  # and moto names messages by chance
        with ExitStack() as stack:
            for each in (logger, logging.getLogger("asyncio")):
                stack.callback(each.setLevel, each.level)
                each.setLevel("CRITICAL")
            stack.enter_context(self.emulator)
            stack.enter_context(replaced(self.turns, self.sleep, self.chance, self.receiver))
            stack.enter_context(answered_by(self.wire.answer))
            asking.set(None)  # outside of invocations somebody looks on
            self._begin()
            self.settings = process.settings()
            if self.faults.rates.partition_units:
                self._limit_partitions(self.faults.rates.partition_units)
            yield self
            self._end()
            assert taken_refusals() == []

    def _begin(self) -> None:
        """Wired by the environment that the template gives it."""
        resources = create_resources(self._template, boto3.client("dynamodb"), boto3.client("sqs"))
        self._roles = roles_of(resources)
        self._timeouts = _timeouts_of(resources)
        variables = resources.environment("api")
        if "ingest" in self._roles:  # which has what the others have, and some of its own
            variables |= resources.environment("ingest")
        hold_functions_to_their_roles(aws_clients)
        without_access = {"AUTH_MODE": "off", "METRICS": "off"}
        with patch.dict("os.environ", variables | without_access):
            process.start_anew(self)
            process.settings()

    def _limit_partitions(self, units: float) -> None:
        self.wire.governor = Governor(
            lambda: self.seconds() * 1000,
            [self.settings.wheel_table, self.settings.registry_table],
            TABLE_WRITE_UNITS.value,
            partition_write_units=units,
            partition_read_units=3 * units,
            is_down=lambda key: self.faults.is_partition_down(key, self.seconds()),
        )

    def _end(self) -> None:
        tasks = [*self._tasks, *self.turns.tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks))
        self.turns.end()
        self.loop.close()

    def run(self, story: Any) -> Any:
        return self.loop.run_until_complete(story)

    def spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Invocations

    async def invoke(self, function: str, event: Any, request_id: str | None = None) -> Ended:
        """In an environment that ran before, if there is one, or in a new one. With the answer it
        is frozen, whatever its threads are at."""
        deadline_seconds = self.seconds() + self._timeouts[function]
        environment = self.environments.taken(function, deadline_seconds)
        messages = len(texts_of_event(event) or event.get("Records", ()))
        run = Invocation(
            function, next(self._numbers), environment, self.faults.skew_ms(), messages
        )

        def remaining_ms() -> int:
            return max(0, round((environment.deadline_seconds - self.seconds()) * 1000))

        context = Context(
            function, 512, "arn", remaining_ms, aws_request_id=request_id or f"run-{run.number}"
        )
        current.set(run)
        asking.set(self._roles[function])
        try:
            answer = await self.turns.run(self._in_environment, function, event, context)
            return Ended(run, answer)
        except (Exception, Died) as error:  # noqa: BLE001 - what became of it is the answer
            return Ended(run, error=error)
        finally:
            run.is_dead = environment.is_dead
            self.environments.left(environment, run)

    def _in_environment(self, function: str, event: Any, context: Context) -> Any:
        run = current.get()
        assert run is not None
        threads = notifier._threads
        threads.notifier = run.environment.notifier
        try:
            return handlers()[function](event, context)
        finally:
            run.environment.notifier = threads.notifier

    async def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> tuple[int, Any] | None:
        """What a client gets: status and body, or nothing when the answer was lost."""
        event = {
            "rawPath": path.partition("?")[0],
            "rawQueryString": path.partition("?")[2],
            "headers": dict(headers),
            "requestContext": {"http": {"method": method, "path": path}, "requestId": "r"},
        }
        if body is not None:
            event["body"] = json.dumps(body)
        ended = await self.spawn(self.invoke("api", event))
        if not ended.is_answered:
            return None
        return ended.answer["statusCode"], json.loads(ended.answer["body"])


@cache
def handlers() -> dict[str, Callable[[Any, Any], Any]]:
    """Of the functions."""
    return {name: import_module(f"functions.{name}.app").handler for name in FUNCTIONS}


def _timeouts_of(resources: Resources) -> dict[str, int]:
    return {
        resources.template.code_folders[function.logical_id].name: int(
            resources.resolve(function.properties)["Timeout"]
        )
        for function in resources.template.functions()
    }
