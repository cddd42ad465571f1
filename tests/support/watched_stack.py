"""A local stack with all metrics of its alarms, minute by minute.

The functions' own metrics are those of the local stack. AWS's metrics are simulated: the depth of a
queue is requested, a switch before each function counts its runs like Lambda, 5xx answers are
counted as they are sent, and the wheel's write units by the size of the written items. The
schedules invoke scheduler and sweeper once a minute in any case, as in AWS.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import boto3

from local.aws.functions import Function
from local.aws.http_api import Reply, Request
from local.aws.metrics import Metrics, Minute
from local.aws.schedules import Schedule, Schedules
from local.chaos.aws_faults import Handle, answered_by, operation_of
from local.chaos.aws_faults import Reply as AwsReply
from local.chaos.faults import Faults, Message
from local.control.clock import MovableClock
from local.control.routes import PREFIX
from local.stack import LocalStack
from tests.support.alarms import Alarm, Metric, alarms_of, observability, with_observability
from tests.support.recorder import Call
from tests.support.service import Service
from tests.support.units import Meter

MINUTE_MS = 60_000
START_MS = (
    1_800_000_030_000  # half past a minute, so that work at a full minute belongs to one minute
)
SCHEDULED = ("scheduler", "sweeper")
DEAD_LETTERS = ("duewheel-DeadLetterQueue", "duewheel-IngestDeadLetterQueue")
WHEEL = "duewheel-Wheel"
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
WRITTEN = Metric("AWS/DynamoDB", "ConsumedWriteCapacityUnits", (("TableName", WHEEL),))
API_ERRORS = Metric("AWS/ApiGateway", "5xx", (("ApiId", "duewheel-HttpApi"),))
TASKS_PER_DAY = 250
SETTINGS = {"AuthMode": "keys", "IngestBusinesses": "*", "TasksPerDayAlarm": str(TASKS_PER_DAY)}
USUAL_MINUTES = 12  # after that, every alarm has the data of a running stack


class Refused(Exception):
    """Raised instead of a run."""


class Happened:
    """The counts of AWS since the last call of `taken`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._noted: list[tuple[Metric, float]] = []

    def note(self, metric: Metric, value: float = 1) -> None:
        with self._lock:
            self._noted.append((metric, value))

    def taken(self) -> list[tuple[Metric, float]]:
        with self._lock:
            taken, self._noted = self._noted, []
            return taken


class Switches(Faults):
    """Switches before the functions, by which they fail, have no concurrency or no time, or do not
    run; one before the pollers, which delays each message; and a meter of writes to the wheel."""

    def __init__(self, happened: Happened) -> None:
        super().__init__(rate=0, seed=0)
        self._happened = happened
        self.failing: set[str] = set()
        self.full: set[str] = set()
        self.stopped: set[str] = set()
        self.without_time: set[str] = set()
        self.late_seconds = 0
        self._delayed: set[str] = set()
        self.behind: dict[str, Function] = {}
        self._metering = Lock()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        meter = Meter(WHEEL)

        def metered(request: Any, handle: Handle) -> AwsReply | None:
            reply = handle(request)
            if (operation := operation_of(request)) in WRITES:
                self._measure(meter, Call(operation, json.loads(request.body)))
            return reply

        with answered_by(metered):
            yield

    def _measure(self, meter: Meter, write: Call) -> None:
        with self._metering:
            before = meter.write_units
            meter(write)
            if written := meter.write_units - before:
                self._happened.note(WRITTEN, written)

    def functions(self, functions: dict[str, Function], clock: MovableClock) -> dict[str, Function]:
        switched = {
            arn: replace(function, handler=partial(self._run_if_on, function))
            for arn, function in functions.items()
        }
        self.behind = {function.folder: function for function in switched.values()}
        return switched

    def _run_if_on(self, function: Function, event: Any, context: Any) -> Any:
        if function.folder in self.stopped:
            return None
        if function.folder in self.full:
            self._note("Throttles", function)
            raise Refused(function.folder)
        self._note("Invocations", function)
        if function.folder in self.failing:
            self._note("Errors", function)
            raise Refused(function.folder)
        if function.folder in self.without_time:
            context = replace(context, get_remaining_time_in_millis=lambda: 0)
        try:
            return function.handler(event, context)
        except Exception:
            self._note("Errors", function)
            raise

    def batches(
        self, messages: list[Message], hide: Callable[[Message, int], None]
    ) -> list[list[Message]]:
        come = []
        for message in messages:
            if not self.late_seconds or message["MessageId"] in self._delayed:
                come.append(message)
            else:
                self._delayed.add(message["MessageId"])
                hide(message, self.late_seconds)
        return [come] if come else []

    def _note(self, metric: str, function: Function) -> None:
        self._happened.note(Metric("AWS/Lambda", metric, (("FunctionName", function.name),)))


class CountingStack(LocalStack):
    """Counts answers like API Gateway."""

    def __init__(self, happened: Happened, **settings: Any) -> None:
        super().__init__(**settings)
        self._happened = happened

    def _answer(self, request: Request) -> Reply:
        reply = super()._answer(request)
        if reply.status >= 500 and not request.path.startswith(PREFIX):
            self._happened.note(API_ERRORS)
        return reply


class WatchedStack:
    """A stack with every function, queue and alarm of any parameter."""

    def __init__(self) -> None:
        self._happened = Happened()
        self.switches = Switches(self._happened)
        self.stack = CountingStack(
            self._happened,
            start_ms=START_MS,
            frozen=True,
            faults=self.switches,
            asks_for_keys=True,
            overrides={"Observability": "full"},
        )
        self._aws: dict[Metric, Metrics] = {}

    def __enter__(self) -> "WatchedStack":
        self.stack.start()
        self.service = Service(self.stack.url, self.stack.admin_key)
        parent = with_observability(**SETTINGS)
        self.alarms: list[Alarm] = alarms_of(parent, observability(parent))
        schedules = [Schedule(self.switches.behind[name], "rule") for name in SCHEDULED]
        self._schedules = Schedules(schedules, self.stack.clock)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.stop()

    @property
    def minute(self) -> int:
        return self.stack.clock.now_ms() // MINUTE_MS

    def passes(self, *, minutes: int) -> None:
        """Let minutes pass while due tasks are called."""
        for _ in range(minutes):
            for _ in range(4):  # so that no single request takes too long
                self.service.advance(15)
            self._end_minute()

    def passes_without_waiting(self, *, minutes: int) -> None:
        """Let minutes pass without waiting for deliveries; the functions run once a minute.
        `passes` would wait forever for a scheduler that makes no progress."""
        for _ in range(minutes):
            self.stack.clock.set_ms(self.stack.clock.now_ms() + MINUTE_MS)
            self._end_minute()

    def skips(self, *, hours: int) -> None:
        """Move the clock over empty hours without metrics, then let minutes pass until no alarm
        reads data from before."""
        self.service.advance(hours * 3_600 - USUAL_MINUTES * 60)
        self.passes(minutes=USUAL_MINUTES)

    def off(self) -> set[str]:
        return {alarm.name for alarm in self.alarms if alarm.is_off(self._read, self.minute)}

    def _end_minute(self) -> None:
        for name in SCHEDULED:
            self._schedules.invoke_once(name)
        now_ms = self.stack.clock.now_ms()
        for metric, value in self._happened.taken():
            self._add(metric, value, now_ms)
        for queue in DEAD_LETTERS:
            depth = Metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", (("QueueName", queue),))
            self._add(depth, _visible(queue), now_ms)

    def _add(self, metric: Metric, value: float, at_ms: int) -> None:
        self._aws.setdefault(metric, Metrics()).add(metric.name, "Count", [value], at_ms)

    def _read(self, metric: Metric) -> Mapping[int, Minute]:
        if metric.namespace == "Duewheel/duewheel":
            return self.stack.metrics.minutes(metric.name)
        return self._aws[metric].minutes(metric.name) if metric in self._aws else {}


def _visible(queue: str) -> int:
    sqs = boto3.client("sqs")
    answer = sqs.get_queue_attributes(
        QueueUrl=sqs.get_queue_url(QueueName=queue)["QueueUrl"],
        AttributeNames=["ApproximateNumberOfMessages"],
    )
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])
