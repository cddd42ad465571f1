"""The deployed service: its functions, its tables and queues, its schedules and its poller.

Handlers, wiring and template are the real ones. What is played here is what AWS does around
them: it invokes them, ends them at their deadline, hands out messages at least once.
"""

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

import boto3
import botocore.endpoint
from botocore.useragent import UserAgentString

from duewheel.log import logger
from duewheel.rules.messages import texts_of_event
from duewheel.stores.keys import KeyStore
from duewheel.stores.tasks import TaskStore
from duewheel.wiring import api as api_wiring
from duewheel.wiring import notifier as notifier_wiring
from duewheel.wiring import process
from duewheel.wiring import scheduler as scheduler_wiring
from duewheel.wiring import sweeper as sweeper_wiring
from functions.api import app as api
from functions.notifier import app as notifier
from functions.scheduler import app as scheduler
from functions.sweeper import app as sweeper
from local.aws_faults import answered_by
from local.emulator import Emulator
from local.functions import Context, Died
from local.invocations import RETRY_AFTER_MS
from local.invocations import Invocation as AsyncInvocation
from local.resources import Resources, create_resources
from local.template import Template
from tests.simulation.faults import Faults
from tests.simulation.invocation import Ended, Invocation, current
from tests.simulation.receiver import Receiver
from tests.simulation.virtual_time import Turns, VirtualLoop
from tests.simulation.wire import Wire
from tests.support.clock import NOON_MS

HANDLERS = {
    "api": api.handler,
    "notifier": notifier.handler,
    "scheduler": scheduler.handler,
    "sweeper": sweeper.handler,
}
NOTIFIERS_AT_ONCE = 40
LOOK_EVERY_SECONDS = 0.1
_POOLED = (api_wiring, notifier_wiring, scheduler_wiring, sweeper_wiring)


class OneByOne:
    """A pool without threads: the order of things must not depend on them."""

    def __init__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        return map(function, *arguments)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001 - as a pool hands it on
            future.set_exception(error)
        return future


class Service:
    """Also the clock of all functions: one time, and what each process's clock is off by."""

    def __init__(self, template: Template, faults: Faults, *, seed: int) -> None:
        self.loop = VirtualLoop()
        self.turns = Turns()
        self.faults = faults
        self.receiver = Receiver(faults)
        self.emulator = Emulator(self)
        self._template = template
        self._random = random.Random(seed)
        self._wire = Wire(faults, self.turns, self.seconds, self._random)
        self._seed = seed
        self._numbers = count(1)
        self._timeouts: dict[str, int] = {}
        self._busy_notifiers = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    # The clock

    def seconds(self) -> float:
        return self.loop.time()

    def now_ms(self) -> int:
        running = current.get()
        off_ms = running.skew_ms if running else 0
        return NOON_MS + int(self.loop.time() * 1000 + 1e-6) + off_ms

    def sleep(self, seconds: float) -> None:
        self.turns.sleep(seconds)
        self._must_live()

    async def sleep_until_ms(self, instant_ms: int) -> None:
        while (missing_ms := instant_ms - self.now_ms()) > 0:
            await asyncio.sleep(missing_ms / 1000)
        self._must_live()

    def _must_live(self) -> None:
        if (running := current.get()) is not None:
            running.must_live(self.seconds())

    # Up and down

    @contextmanager
    def running(self) -> Iterator["Service"]:
        random.seed(self._seed)  # the SDK waits between its tries by chance
        with ExitStack() as stack:
            for each in (logger, logging.getLogger("asyncio")):
                stack.callback(each.setLevel, each.level)
                each.setLevel("CRITICAL")
            stack.enter_context(self.emulator)
            self.resources = create_resources(
                self._template, boto3.client("dynamodb"), boto3.client("sqs")
            )
            stack.enter_context(patch.dict("os.environ", self.resources.environment("api")))
            for target, name, replacement in self._replacements():
                stack.enter_context(patch.object(target, name, replacement))
            stack.enter_context(answered_by(self._wire.answer))
            self.emulator.accept_invocation = self._accept
            self._timeouts = _timeouts_of(self.resources)
            process.start_anew(self)
            self.settings = process.settings()
            self.queue = boto3.client("sqs")
            yield self
            self._end()

    def _replacements(self) -> Iterator[tuple[Any, str, Any]]:
        yield asyncio, "to_thread", self.turns.run
        yield botocore.endpoint, "time", _Sleeper(self)
        yield UserAgentString, "to_string", lambda _: "simulation"  # a fifth of the SDK's work
        yield notifier_wiring, "HttpTarget", self.receiver.target
        yield notifier_wiring.Notifier, "run", lambda _, work: self.turns.wait_for(work)
        yield notifier_wiring.random, "random", self._random.random
        yield process.secrets, "token_bytes", self._random.randbytes
        for module in _POOLED:
            yield module, "ThreadPoolExecutor", OneByOne
        yield process, "KeyStore", _key_store

    def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self.turns.end()
        self.loop.close()

    def run(self, story: Any) -> Any:
        return self.loop.run_until_complete(story)

    def spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def turn(self) -> None:
        """Let the schedules and the poller run from now on."""
        for function in ("scheduler", "sweeper"):
            self.spawn(self._each_minute(function))
        self.spawn(self._poll())

    # Invocations

    async def invoke(self, function: str, event: Any, request_id: str | None = None) -> Ended:
        timeout = self._timeouts[function]
        run = Invocation(
            function, next(self._numbers), self.seconds() + timeout, self.faults.skew_ms()
        )

        def remaining_ms() -> int:
            return max(0, round((run.deadline_seconds - self.seconds()) * 1000))

        context = Context(
            function, 512, "arn", remaining_ms, aws_request_id=request_id or f"run-{run.number}"
        )
        current.set(run)
        try:
            answer = await self.turns.run(self._in_environment, function, event, context)
        except (Exception, Died) as error:  # noqa: BLE001 - what became of it is the answer
            return Ended(run, error=error)
        return Ended(run, answer)

    def _in_environment(self, function: str, event: Any, context: Context) -> Any:
        try:
            return HANDLERS[function](event, context)
        finally:
            run = current.get()
            if run is not None and run.is_dead and function == "notifier":
                notifier_wiring._threads.notifier = None  # its environment went with it

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any] | None:
        """What a client gets: status and body, or nothing when the answer was lost."""
        event = {
            "rawPath": path.partition("?")[0],
            "rawQueryString": path.partition("?")[2],
            "headers": {},
            "requestContext": {"http": {"method": method, "path": path}, "requestId": "r"},
        }
        if body is not None:
            event["body"] = json.dumps(body)
        ended = await self.spawn(self.invoke("api", event))
        if not ended.is_answered:
            return None
        return ended.answer["statusCode"], json.loads(ended.answer["body"])

    async def _each_minute(self, function: str) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(0, 1))
            minute_over = self.seconds() // 60 * 60 + 60
            down = self.faults.is_down(function, self.seconds())
            if not down and not self.faults.strikes(
                "schedule missed", self.faults.rates.missed_schedule
            ):
                self.spawn(self.invoke(function, {}))
            await asyncio.sleep(minute_over - self.seconds() + self._random.uniform(0, 50))

    # The poller between queue and notifier

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            down = self.faults.is_down("notifier", self.seconds())
            while not down and self._busy_notifiers < NOTIFIERS_AT_ONCE and self._has_message():
                messages = self._receive()
                if not messages:
                    break
                twice = self.faults.strikes("duplicate", self.faults.rates.duplicate)
                for _ in range(2 if twice else 1):
                    self._busy_notifiers += 1
                    self.spawn(self._hand_over(messages, is_copy=twice))

    def _has_message(self) -> bool:
        now_ms = self.now_ms()
        url = self.settings.slice_queue_url
        return any(ms <= now_ms for ms in self.emulator.messages_visible_at_ms(url))

    def _receive(self) -> list[dict[str, Any]]:
        answer = self.queue.receive_message(
            QueueUrl=self.settings.slice_queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=0
        )
        messages = list(answer.get("Messages", []))
        self._random.shuffle(messages)
        return messages

    async def _hand_over(self, messages: list[dict[str, Any]], *, is_copy: bool) -> None:
        try:
            if self.faults.strikes("delayed", self.faults.rates.delay):
                await asyncio.sleep(self._random.uniform(0, 40))
            records = [
                {
                    "messageId": m["MessageId"],
                    "receiptHandle": m["ReceiptHandle"],
                    "body": m["Body"],
                }
                for m in messages
            ]
            ended = await self.spawn(self.invoke("notifier", {"Records": records}))
            if is_copy or not self._wire.sent_twice.isdisjoint(m["Body"] for m in messages):
                ended.invocation.troubles.append("duplicate")
            if ended.is_answered:
                failed = {f["itemIdentifier"] for f in ended.answer["batchItemFailures"]}
                self._delete(ended, [m for m in messages if m["MessageId"] not in failed])
        finally:
            self._busy_notifiers -= 1

    def _delete(self, ended: Ended, messages: list[dict[str, Any]]) -> None:
        if self.faults.is_down("sqs", self.seconds()):
            ended.invocation.troubles.append("messages not deleted")
            return
        if messages:
            self.queue.delete_message_batch(
                QueueUrl=self.settings.slice_queue_url,
                Entries=[
                    {"Id": str(position), "ReceiptHandle": message["ReceiptHandle"]}
                    for position, message in enumerate(messages)
                ],
            )

    # The second link: asynchronous invocations of the notifier

    def _accept(self, invocation: AsyncInvocation) -> None:
        # From a worker's turn: the loop stands still meanwhile, so this is safe.
        self.spawn(self._carry_out(invocation))

    async def _carry_out(self, invocation: AsyncInvocation) -> None:
        """Lambda tries again after one minute and after two, with the same request id."""
        for wait_ms in (*RETRY_AFTER_MS, None):
            while self.faults.is_down("notifier", self.seconds()):
                await asyncio.sleep(1)
            work = self.invoke("notifier", invocation.event, invocation.request_id)
            ended = await self.spawn(work)
            if not self._wire.sent_twice.isdisjoint(texts_of_event(invocation.event) or ()):
                ended.invocation.troubles.append("duplicate")
            if ended.is_answered or wait_ms is None:
                return
            await asyncio.sleep(wait_ms / 1000)


class _Sleeper:
    """Stands where the SDK looks for `time`: it waits between its tries."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def sleep(self, seconds: float) -> None:
        self._service.sleep(seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def _key_store(tasks: TaskStore) -> KeyStore:
    return KeyStore(tasks, OneByOne())  # type: ignore[arg-type]


def _timeouts_of(resources: Resources) -> dict[str, int]:
    return {
        resources.template.code_folders[function.logical_id].name: int(
            resources.resolve(function.properties)["Timeout"]
        )
        for function in resources.template.of_type("AWS::Lambda::Function")
    }
