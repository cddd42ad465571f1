"""Starts the whole stack in this process, and stops it.

Invariant: no request leaves the machine. Credentials are invented, AWS is moto (or the server of
`AWS_ENDPOINT_URL`), and the only port is on loopback.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import boto3

from duewheel.interface.http import CONSOLE_PATH
from duewheel.rules.access.grants import ANYTHING, AuthMode
from duewheel.rules.access.requests import FIRST_ADMIN
from duewheel.settings import settings_from
from duewheel.stores.wheel.pointers import PointerStore
from local.aws.calling_function import as_onlooker, asking, pools_keep_the_context
from local.aws.emulator import Emulator
from local.aws.environments import Caller, no_caller
from local.aws.functions import Function, environment_of_all, load_functions, one_at_a_time
from local.aws.http_api import Gateway, Reply, Request, gateway_reply, routes_of
from local.aws.invocations import Invocations, retries_of
from local.aws.loop_watch import LoopWatch
from local.aws.metrics import FilteredLog, Metrics, filters_of
from local.aws.permissions import hold_functions_to_their_roles
from local.aws.policies import Role, roles_of
from local.aws.queue_poller import Mapped, QueuePoller, mapped_queues
from local.aws.resources import Resources, create_resources
from local.aws.schedules import Schedules, schedules_of
from local.aws.template import REGION, load_template
from local.chaos.faults import Faults
from local.control.clock import MovableClock
from local.control.inbox import Inbox
from local.control.inbox_functions import InboxFunctions
from local.control.inbox_resources import ALLOWED, InboxResources
from local.control.ingest_messages import IngestMessages
from local.control.problems import BadInput
from local.control.real_time import RealTime
from local.control.routes import PREFIX, LocalRoutes, Wheelwright
from local.control.time_travel import TimeTravel
from local.control.wheel_pointers import WheelPointers
from local.http_front import HttpFront

if TYPE_CHECKING:
    from duewheel.targets.by_type import Targets

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "template.yaml"
STOP_SECONDS = 5.0
TO_THE_CONSOLE = ("/", "/console/")  # what a browser is likely to be given
OVERRIDES = {
    "AllowedPrivateCidrs": "127.0.0.0/8,::1/128",
    "IngestBusinesses": "*",
}
_FAKE_ACCESS = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}


class LocalStack:
    """Port 0 takes a free one. `overrides` are template parameters beside the usual ones.

    `start_ms`: the beginning of the clock, by default now; with `frozen` it is frozen there.
    `faults` are made only if AWS is emulated in this process. With `asks_for_keys` requests need an
    API key, and `admin_key` is the first.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        start_ms: int | None = None,
        frozen: bool = False,
        faults: Faults | None = None,
        asks_for_keys: bool = False,
        overrides: Mapping[str, str] | None = None,
        template: Path = TEMPLATE,
        log_level: str = "WARN",
    ) -> None:
        self.clock = MovableClock(start_ms, frozen=frozen)
        self.endpoint = os.environ.get("AWS_ENDPOINT_URL")
        self.faults = faults if faults and not self.endpoint else Faults(rate=0, seed=0)
        self._port = port
        targets = "" if self.endpoint else ",".join(ALLOWED)  # the other AWS is not known
        auth = {"AuthMode": (AuthMode.KEYS if asks_for_keys else AuthMode.OFF).value}
        self._parameters = {**OVERRIDES, **auth, "TargetArns": targets, **(overrides or {})}
        self.admin_key: str | None = None
        self.metrics = Metrics()
        self._template = template
        self._log_level = log_level
        self._undo, self._parts = ExitStack(), ExitStack()
        self._creating = Lock()
        self._local_routes: LocalRoutes | None = None
        self._is_up = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._front.port}"

    def start(self) -> None:
        with ExitStack() as started:
            self._front = HttpFront(self._port, self._answer)
            self._front.start()
            started.callback(self._front.stop)
            self._begin()
            started.callback(self._end)
            self._undo = started.pop_all()

    def stop(self) -> None:
        """Signal all parts to end, and wait for them."""
        self._undo.close()

    def __enter__(self) -> "LocalStack":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _begin(self) -> None:
        with ExitStack() as started:
            self._start(started)
            self._parts = started.pop_all()
        self._is_up = True

    def _end(self) -> None:
        self._is_up = False
        with self._creating:
            pass  # the request under way has ended
        self._parts.close()

    def _begin_anew(self) -> None:
        """Without data, in real time, on the same port."""
        if self.admin_key is not None:
            raise BadInput(
                "A clock that is ahead goes back only in an empty stack, "
                "in which your key is unknown. Start the stack again.",
                status=409,
            )
        self._end()
        self.clock, self.metrics = MovableClock(), Metrics()
        self._begin()

    def _start(self, started: ExitStack) -> None:
        started.enter_context(patch.dict(os.environ, _FAKE_ACCESS))
        os.environ.pop("AWS_PROFILE", None)  # restored by the line above
        emulator = None if self.endpoint else started.enter_context(Emulator(self.clock))
        template = load_template(self._template, self._parameters)
        dynamodb, sqs = boto3.client("dynamodb"), boto3.client("sqs")
        resources = create_resources(template, dynamodb, sqs)
        started.enter_context(environment_of_all(resources))
        from duewheel.wiring import process

        _log_at(self._log_level, started)
        started.enter_context(pools_keep_the_context())
        if emulator is not None:  # the other AWS has names and accounts of its own
            hold_functions_to_their_roles()
        roles = roles_of(resources)
        self._collect_metrics(started, resources)
        process.start_anew(self.faults.clock_for_functions(self.clock), self.metrics.take_line)
        # Built before there are threads: boto3's first client is not for two.
        process.dynamodb(), process.sqs()
        if self._parameters["AuthMode"] == AuthMode.KEYS:
            self.admin_key = as_onlooker(_first_admin_key)
        functions = self._functions(resources, roles)
        inbox = Inbox(self.clock.now_ms)
        schedules = Schedules(schedules_of(resources, functions), self.clock)
        caller_here = partial(_caller_here, roles["notifier"])
        mapped = mapped_queues(resources, functions)
        has_visible = emulator.has_visible if emulator else None
        pollers = [self._poller(queue, sqs, caller_here, has_visible) for queue in mapped]
        invocations = Invocations(
            functions, retries_of(resources), self.clock, caller_here, self.faults.events
        )
        wheelwright: Wheelwright = RealTime(self.clock, self.endpoint or "")
        mailbox = None
        if emulator is not None:
            mailbox = InboxResources(inbox, boto3.client)
            played = InboxFunctions(inbox, others=invocations.accept)
            emulator.accept_invocation = played.accept
            emulator.answer_invocation = played.answer
            wheelwright = self._time_travel(emulator, dynamodb, schedules, pollers, invocations)
        self._gateway = Gateway(
            routes_of(resources, functions), self._invoke_api, self.clock.now_ms
        )
        self._local_routes = LocalRoutes(
            inbox,
            wheelwright,
            self.faults,
            mailbox=mailbox,
            ingest=_ingest(sqs),
            metrics=self.metrics,
        )
        started.enter_context(self.faults.at_work())
        self._run_all(started, schedules, [*pollers, invocations], wheelwright)

    def _time_travel(
        self,
        emulator: Emulator,
        dynamodb: Any,
        schedules: Schedules,
        pollers: list[QueuePoller],
        invocations: Invocations,
    ) -> TimeTravel:
        settings = settings_from(os.environ)
        store = PointerStore(dynamodb, settings.registry_table)
        return TimeTravel(
            self.clock,
            emulator,
            schedules,
            pollers,
            invocations,
            WheelPointers(emulator, store, settings.buckets, self.clock.now_ms),
            settings,
            requests_held=self._creating,
            begin_anew=self._begin_anew,
        )

    def _collect_metrics(self, started: ExitStack, resources: Resources) -> None:
        from duewheel.log import logger
        from duewheel.metrics import counts

        counts.take()  # of an earlier stack in this process
        log = FilteredLog(filters_of(resources), self.metrics, self.clock.now_ms)
        started.enter_context(log.attached(logging.getLogger(logger.name)))

    def _functions(self, resources: Resources, roles: Mapping[str, Role]) -> dict[str, Function]:
        loaded = load_functions(resources, roles)
        for arn, function in loaded.items():
            if function.folder == "ingest":
                loaded[arn] = one_at_a_time(function, self._creating)
        return self.faults.functions(loaded, self.clock)

    def _poller(
        self,
        mapped: Mapped,
        sqs: Any,
        caller_here: Callable[[], Caller | None],
        has_visible: Callable[[str], bool] | None,
    ) -> QueuePoller:
        makes_calls = mapped.function.folder == "notifier"
        caller = caller_here if makes_calls else no_caller
        return QueuePoller(mapped, sqs, self.clock, caller, self.faults.batches, has_visible)

    def _run_all(
        self,
        started: ExitStack,
        schedules: Schedules,
        workers: Sequence[QueuePoller | Invocations],
        wheelwright: Wheelwright,
    ) -> None:
        """The part that is started last is stopped first; before that the clock ends all sleeps."""
        for worker in workers:
            worker.start()
            started.callback(worker.stop, STOP_SECONDS)
        if self.clock.is_frozen:
            wheelwright.freeze()
        schedules.start()
        started.callback(schedules.stop, STOP_SECONDS)
        started.callback(self.clock.stop)

    def _answer(self, request: Request) -> Reply:
        if self._local_routes is not None and request.path.startswith(PREFIX):
            return self._local_routes.answer(request)
        if request.path in TO_THE_CONSOLE:
            return Reply(302, headers=(("Location", CONSOLE_PATH),))
        if not self._is_up:
            return gateway_reply(503, "Service Unavailable")
        return self._gateway.answer(request)

    def _invoke_api(self, function: Function, event: dict[str, Any]) -> Any:
        # One execution environment, one request at a time, as in Lambda: the state that a handler
        # keeps between requests is not thread-safe. The ingest function shares it.
        with self._creating:
            return function.invoke_with_timeout(event, self.clock)


def _caller_here(role: Role) -> Caller:
    """A caller of targets for the life of this thread, which runs as a notifier."""
    from duewheel.targets.http.target import KeptConnections
    from duewheel.wiring.notifier import notifier

    asking.set(role)
    wired = notifier()
    targets = wired.deliver.deliver_entries.attempt_call.targets
    return NotifierHere(targets, LoopWatch(wired.loop, {KeptConnections._drop_idle}))


@dataclass(frozen=True, slots=True)
class NotifierHere:
    """What the notifier of an environment is doing."""

    targets: "Targets"
    loop: LoopWatch

    @property
    def calls_in_flight(self) -> int:
        return self.targets.calls_in_flight

    @property
    def is_idle(self) -> bool:
        return self.loop.is_idle and not self.calls_in_flight


def _log_at(level: str, started: ExitStack) -> None:
    from duewheel.log import logger

    started.callback(logger.setLevel, logger.log_level)
    logger.setLevel(level)


def _first_admin_key() -> str:
    from duewheel.wiring import api

    return api.issue_keys().create(FIRST_ADMIN, ANYTHING.access).text


def _ingest(sqs: Any) -> IngestMessages | None:
    settings = settings_from(os.environ)
    if not settings.ingest_queue_url:
        return None
    return IngestMessages(sqs, settings.ingest_queue_url, settings.ingest_dead_letter_queue_url)
