"""Deliver by invoking a Lambda function, and waiting for its answer or not."""

from typing import Any

from msgspec import Struct

from duewheel.rules.callbacks.aws_outcome import ANSWER_BYTES_MAX, outcome_of_function
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import LambdaCallback
from duewheel.rules.tasks.payload_encoding import envelope
from duewheel.rules.tasks.task import Task
from duewheel.targets.aws.calls import AwsCalls


class LambdaTarget(Struct, frozen=True):
    calls: AwsCalls

    async def call(self, callback: LambdaCallback, task: Task, timeout_seconds: float) -> Outcome:
        request = {"FunctionName": callback.function, "Payload": envelope(task).encode()}

        def invoke(client: Any) -> Outcome:
            if not callback.waits:
                accepted = client.invoke(InvocationType="Event", **request)
                return Outcome(Verdict.DELIVERED, "", accepted["StatusCode"])
            answered = client.invoke(InvocationType="RequestResponse", **request)
            with answered["Payload"] as payload:
                answer = payload.read(ANSWER_BYTES_MAX)
            has_failed = "FunctionError" in answered
            return outcome_of_function(answer, answered["StatusCode"], has_failed=has_failed)

        return await self.calls(invoke, timeout_seconds)
