"""Deliver by publishing to an SNS topic, standard or FIFO."""

from typing import Any

from msgspec import Struct

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import SnsCallback
from duewheel.rules.tasks.payload_encoding import text_of
from duewheel.rules.tasks.task import Task
from duewheel.targets.aws.calls import AwsCalls
from duewheel.targets.aws.message_members import message_members


class SnsTarget(Struct, frozen=True):
    calls: AwsCalls

    async def call(self, callback: SnsCallback, task: Task, timeout_seconds: float) -> Outcome:
        text = text_of(task.payload, is_raw=callback.is_raw)
        members = message_members(callback, task)

        def publish(client: Any) -> Outcome:
            answer = client.publish(TopicArn=callback.topic_arn, Message=text, **members)
            status_code = answer["ResponseMetadata"]["HTTPStatusCode"]
            return Outcome(Verdict.DELIVERED, f"message {answer['MessageId']}", status_code)

        return await self.calls(publish, timeout_seconds)
