"""What local callbacks of types sqs, sns and eventbridge go to, and how it gets into the inbox.

A queue, a topic and a bus are made here, and of the first two a FIFO one. A topic has a queue for
its subscriber, a bus has one by a rule, so whatever arrives ends in a queue; what is in there is
moved to the inbox when somebody looks.
"""

import json
from collections.abc import Mapping
from threading import Lock
from typing import Any

from local.aws.template import ACCOUNT_ID, REGION
from local.control.inbox import Inbox

ALLOWED = {
    "TargetFunctionArns": f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:inbox-*",
    "TargetQueueArns": f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:inbox-*",
    "TargetTopicArns": f"arn:aws:sns:{REGION}:{ACCOUNT_ID}:inbox-*",
    "TargetEventBusArns": f"arn:aws:events:{REGION}:{ACCOUNT_ID}:event-bus/inbox-*",
}
_OPERATIONS = {
    "inbox-queue": "SendMessage",
    "inbox-queue.fifo": "SendMessage",
    "inbox-topic": "Publish",
    "inbox-topic.fifo": "Publish",
    "inbox-bus": "PutEvents",
}
_SHOWN = {
    "MessageGroupId": "message-group-id",
    "MessageDeduplicationId": "message-deduplication-id",
}


class InboxResources:
    """`queues`, by the name of what is called: where its messages end."""

    def __init__(self, inbox: Inbox, sqs: Any, sns: Any, events: Any) -> None:
        self._inbox = inbox
        self._sqs = sqs
        self._one_at_a_time = Lock()
        self._queues = {
            "inbox-queue": self._make_queue("inbox-queue"),
            "inbox-queue.fifo": self._make_queue("inbox-queue.fifo"),
            "inbox-topic": self._make_queue("subscriber-of-topic"),
            "inbox-topic.fifo": self._make_queue("subscriber-of-topic.fifo"),
            "inbox-bus": self._make_queue("subscriber-of-bus"),
        }
        self._make_topic(sns, "inbox-topic", "subscriber-of-topic")
        self._make_topic(sns, "inbox-topic.fifo", "subscriber-of-topic.fifo")
        events.create_event_bus(Name="inbox-bus")
        pattern = json.dumps({"account": [ACCOUNT_ID]})  # everything
        events.put_rule(Name="everything", EventBusName="inbox-bus", EventPattern=pattern)
        target = {"Id": "inbox", "Arn": _queue_arn("subscriber-of-bus")}
        events.put_targets(Rule="everything", EventBusName="inbox-bus", Targets=[target])

    def __contains__(self, name: str) -> bool:
        return name in self._queues

    def collect(self, name: str) -> None:
        """Move what has arrived there to the inbox."""
        if name not in self._queues:
            return
        with self._one_at_a_time:
            while messages := self._received(self._queues[name]):
                for message in messages:
                    self._keep(name, message)

    def _received(self, url: str) -> list[Mapping[str, Any]]:
        answer = self._sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=0,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        messages: list[Mapping[str, Any]] = answer.get("Messages", [])
        for message in messages:
            self._sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return messages

    def _keep(self, name: str, message: Mapping[str, Any]) -> None:
        system = message.get("Attributes", {})
        attributes = message.get("MessageAttributes", {})
        headers = {key: value["StringValue"] for key, value in attributes.items()}
        headers |= {shown: system[key] for key, shown in _SHOWN.items() if key in system}
        at_ms = int(system["SentTimestamp"])
        self._inbox.take(name, _OPERATIONS[name], name, headers, message["Body"], at_ms)

    def _make_queue(self, name: str) -> str:
        fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        url: str = self._sqs.create_queue(QueueName=name, Attributes=fifo)["QueueUrl"]
        return url

    def _make_topic(self, sns: Any, name: str, queue: str) -> None:
        fifo = {"FifoTopic": "true"} if name.endswith(".fifo") else {}
        arn = sns.create_topic(Name=name, Attributes=fifo)["TopicArn"]
        sns.subscribe(
            TopicArn=arn,
            Protocol="sqs",
            Endpoint=_queue_arn(queue),
            Attributes={"RawMessageDelivery": "true"},
        )


def _queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}"
