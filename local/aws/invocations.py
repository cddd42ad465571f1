"""Emulates Lambda's asynchronous invocations: `Invoke` with `InvocationType=Event`.

Invariant: an accepted event is invoked until it succeeds or its tries are used up, again after one
minute and after two by the stack's clock, each time with the same request id, as in Lambda. By
chance it is invoked twice from the beginning. At most `ENVIRONMENTS_AWAKE` work at once.
"""

import json
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

from local.aws.environments import Caller, Environments
from local.aws.functions import Function
from local.aws.resources import Resources
from local.control.clock import MovableClock

log = logging.getLogger(__name__)

ENVIRONMENTS_AWAKE = 4
LOOK_EVERY_SECONDS = 0.05
RETRIES_DEFAULT = 2  # if the function has no EventInvokeConfig
RETRY_AFTER_MS = (60_000, 120_000)
_PATH = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")

Answer = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True, slots=True)
class Invocation:
    function: str
    event: Any
    due_ms: int = 0
    tries: int = 0
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    payload: bytes = b""  # the event as it was sent
    is_awaited: bool = False  # the caller waits for the function's answer

    @property
    def function_name(self) -> str:
        """The name in an ARN, or in a name with an alias or a version."""
        return self.function.rpartition(":function:")[2].partition(":")[0]


def invocation_of(
    method: str, url: str, headers: Mapping[str, Any], body: Any
) -> Invocation | None:
    """The invocation that an AWS request requests; None for another request."""
    parts = urlsplit(url)
    path = _PATH.fullmatch(unquote(parts.path))
    if method != "POST" or path is None or not (parts.hostname or "").startswith("lambda."):
        return None
    kind = headers.get("X-Amz-Invocation-Type", b"")
    is_event = (kind.decode() if isinstance(kind, bytes) else kind) == "Event"
    payload = body or b"{}"
    return Invocation(path[1], json.loads(payload), payload=payload, is_awaited=not is_event)


ACCEPTED: Answer = (202, {"Content-Type": "application/json"}, b"")


def retries_of(resources: Resources) -> dict[str, int]:
    """How often an event is retried, by function and alias."""
    configs = resources.template.of_type("AWS::Lambda::EventInvokeConfig")
    properties = [resources.resolve(config.properties) for config in configs]
    return {
        f"{p['FunctionName']}:{p['Qualifier']}": int(p.get("MaximumRetryAttempts", RETRIES_DEFAULT))
        for p in properties
    }


class Invocations:
    def __init__(
        self,
        functions: Mapping[str, Function],
        retries: Mapping[str, int],
        clock: MovableClock,
        caller_here: Callable[[], Caller | None],
        times: Callable[[], int] = lambda: 1,
    ) -> None:
        """`times`: how often an accepted event is run."""
        self._times = times
        self._functions = {function.name: function for function in functions.values()}
        self._retries = retries
        self._clock = clock
        self._environments = Environments(clock, caller_here)
        self._changed = self._environments.changed
        self._waiting: list[Invocation] = []
        self._stopped = False
        self._thread = Thread(target=self._run, name="asynchronous invocations", daemon=True)

    def accept(self, invocation: Invocation) -> None:
        with self._changed:
            accepted = replace(invocation, due_ms=self._clock.now_ms())
            self._waiting += [accepted] * self._times()
            self._changed.notify_all()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(timeout_seconds)
        self._environments.stop(timeout_seconds)

    def nudge(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def is_at_work(self) -> bool:
        return self._environments.is_at_work()

    def has_restless(self) -> bool:
        return self._environments.has_restless()

    def next_ms(self) -> int | None:
        """When the next accepted invocation begins."""
        with self._changed:
            return min((waiting.due_ms for waiting in self._waiting), default=None)

    def _run(self) -> None:
        with self._changed:
            while not self._stopped:
                due = self._next_due()
                if due is None:
                    self._changed.wait(LOOK_EVERY_SECONDS)
                    continue
                self._waiting.remove(due)
                self._environments.begin(partial(self._invoke, due))

    def _next_due(self) -> Invocation | None:
        if self._environments.awake() >= ENVIRONMENTS_AWAKE:
            return None
        now_ms = self._clock.now_ms()
        return next((waiting for waiting in self._waiting if waiting.due_ms <= now_ms), None)

    def _invoke(self, invocation: Invocation) -> None:
        function = self._functions[invocation.function_name]
        try:
            function.invoke_with_timeout(invocation.event, self._clock, invocation.request_id)
        except Exception:  # Lambda, too, logs the exception of a function, and retries later
            log.exception("%s failed", function.name)
            self._try_again(invocation)

    def _try_again(self, failed: Invocation) -> None:
        if failed.tries < self._retries.get(failed.function, RETRIES_DEFAULT):
            due_ms = self._clock.now_ms() + RETRY_AFTER_MS[failed.tries]
            with self._changed:
                self._waiting.append(replace(failed, due_ms=due_ms, tries=failed.tries + 1))
