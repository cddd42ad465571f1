"""Deliver by putting an event on an EventBridge bus."""

from typing import Any

from msgspec import Struct

from duewheel.rules.callbacks.aws_outcome import outcome_of_refusal
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import EventBridgeCallback
from duewheel.rules.tasks.payload_encoding import envelope
from duewheel.rules.tasks.task import Task
from duewheel.targets.aws.calls import AwsCalls


class EventBridgeTarget(Struct, frozen=True):
    calls: AwsCalls

    async def call(
        self, callback: EventBridgeCallback, task: Task, timeout_seconds: float
    ) -> Outcome:
        event = {
            "EventBusName": callback.event_bus,
            "Source": callback.source,
            "DetailType": callback.detail_type,
            "Detail": envelope(task),
        }

        def put(client: Any) -> Outcome:
            answer = client.put_events(Entries=[event])
            status_code = answer["ResponseMetadata"]["HTTPStatusCode"]
            (entry,) = answer["Entries"]
            if "EventId" in entry:  # a refused entry is answered with 200 all the same
                return Outcome(Verdict.DELIVERED, f"event {entry['EventId']}", status_code)
            code, reason = entry.get("ErrorCode", ""), entry.get("ErrorMessage", "")
            return outcome_of_refusal(code, reason, status_code, "", now_ms=0)

        return await self.calls(put, timeout_seconds)
