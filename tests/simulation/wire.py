"""What lies between the functions and AWS: every call of theirs passes it, late, or not at all."""

import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any

from botocore.exceptions import ConnectionClosedError

from duewheel.rules.wheel.queue_messages import texts_of_event
from local.chaos.aws_faults import Fault, Handle, Reply, do, operation_of
from tests.simulation.faults import Faults
from tests.simulation.invocation import Invocation, current
from tests.simulation.past import LAG_SECONDS_MAX, Past, may_lag
from tests.simulation.virtual_time import ReservedTurns
from tests.support.governor import Governor

REFUSED = "refused by a partition"
AND_YET_DONE = (Fault.FAILED_AFTER, Fault.LOST_AFTER)  # which the SDK then does once more


class Wire:
    def __init__(
        self, faults: Faults, turns: ReservedTurns, seconds: Callable[[], float], chance: Random
    ) -> None:
        self._sent_twice: set[str] = set()  # messages, by what they say
        self._faults = faults
        self._turns = turns
        self._seconds = seconds
        self._chance = chance
        self._past = Past(seconds)
        self.governor: Governor | None = None

    def has_sent_twice(self, texts: Iterable[str]) -> bool:
        return not self._sent_twice.isdisjoint(texts)

    def answer(self, request: Any, handle: Handle) -> Reply | None:
        run = current.get()
        if run is None:
            return handle(request)  # the poller's, or one that looks on
        self._await_turn(run)
        is_slow_there = self._chance.random() < 0.5  # or on the way back
        if is_slow_there:
            self._pass_latency(run)
        if self._faults.strikes("death before", self._faults.rates.death):
            run.die("died")
        reply = self._faulty(run, request, handle)
        if self._faults.strikes("death after", self._faults.rates.death):
            run.die("died")
        if not is_slow_there and self._pass_latency(run) and self._chance.random() < 0.5:
            # The other side has hung up meanwhile; the SDK sends it once more.
            raise ConnectionClosedError(endpoint_url=request.url)
        return reply

    def _pass_latency(self, run: Invocation) -> bool:
        """Whether it was frozen on the way."""
        if latency_seconds := self._faults.latency_seconds():
            self._turns.sleep(latency_seconds)
        return self._await_turn(run)

    def _await_turn(self, run: Invocation) -> bool:
        """What is frozen goes on when it is thawed; whether it was."""
        was_frozen = run.environment.is_frozen
        if was_frozen:
            self._turns.wait_for(run.environment.thawed())
        run.must_live(self._seconds())
        return was_frozen

    def _faulty(self, run: Invocation, request: Any, handle: Handle) -> Reply | None:
        handle = partial(self._by_the_tables, run, handle)
        service = re.sub(r".*?(sqs|lambda|dynamodb).*", r"\1", request.url)
        if self._faults.is_down(service, self._seconds()):
            run.troubles.append(f"{service} down")
            return do(Fault.FAILED, request, handle, self._chance)
        fault = self._faults.aws_fault(operation_of(request))
        if fault is None:
            return handle(request)
        run.troubles.append(fault.value)
        if fault in AND_YET_DONE:
            self._sent_twice.update(_messages_of(service, request))
        return do(fault, request, handle, self._chance)

    def _by_the_tables(self, run: Invocation, handle: Handle, request: Any) -> Reply | None:
        """A partition takes so much and no more; a read may be behind."""
        if self._faults.rates.lag and "dynamodb" in request.url:
            self._past.note(request)
            if may_lag(request) and self._faults.strikes("read behind", self._faults.rates.lag):
                with self._past.as_it_was(self._chance.uniform(0, LAG_SECONDS_MAX)):
                    return handle(request)
        if self.governor is None or not self._faults.rates.partition_units:
            return handle(request)
        refused = self.governor.refused.total()
        reply = self.governor.answer(request, handle)
        if number := self.governor.refused.total() - refused:
            run.troubles.append(REFUSED)
            self._faults.injected[REFUSED] += number
        return reply


def _messages_of(service: str, request: Any) -> list[str]:
    if service == "lambda":
        return texts_of_event(json.loads(request.body)) or []
    if operation_of(request) == "SendMessageBatch":
        return [entry["MessageBody"] for entry in json.loads(request.body)["Entries"]]
    return []
