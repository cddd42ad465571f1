"""Deliver by publishing to an SNS topic, standard or FIFO."""

from dataclasses import dataclass
from typing import Any

from duewheel.rules.message_text import attributes_of, deduplication_id, text_of
from duewheel.rules.outcome import Outcome, Verdict
from duewheel.rules.task import SnsCallback, Task
from duewheel.targets.aws_calls import AwsCalls


@dataclass(frozen=True, slots=True)
class SnsTarget:
    calls: AwsCalls

    async def call(self, callback: SnsCallback, task: Task, timeout_seconds: float) -> Outcome:
        attributes = dict(callback.attributes) | attributes_of(task)
        request: dict[str, Any] = {
            "TopicArn": callback.topic_arn,
            "Message": text_of(task.payload, is_raw=callback.is_raw),
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value}
                for name, value in attributes.items()
            },
        }
        if callback.group_id is not None:
            request["MessageGroupId"] = callback.group_id
            request["MessageDeduplicationId"] = deduplication_id(callback, task)

        def publish(client: Any) -> Outcome:
            answer = client.publish(**request)
            status_code = answer["ResponseMetadata"]["HTTPStatusCode"]
            return Outcome(Verdict.DELIVERED, f"message {answer['MessageId']}", status_code)

        return await self.calls(publish, timeout_seconds)
