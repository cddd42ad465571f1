"""The receivers of local callbacks of AWS types, and their way into the inbox.

A queue, a topic, a bus and a state machine are made here, and of the first two a FIFO one. A topic
has a queue for its subscriber, a bus has one by a rule. The messages of these queues, and the input
of the executions, are moved to the inbox when it is read.
"""

import json
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from local.aws.template import ACCOUNT_ID, REGION
from local.control.inbox import Inbox

ALLOWED = [
    f"arn:aws:{target.service}:{REGION}:{ACCOUNT_ID}:{target.kind}inbox-*" for target in AWS_TARGETS
]
MACHINE = "inbox-machine"
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
    """`queues`: by the name of the called resource, the queue with its messages."""

    def __init__(self, inbox: Inbox, client: Callable[[str], Any]) -> None:
        """`client`: of a service, by its name in the SDK."""
        self._inbox = inbox
        self._sqs = client("sqs")
        self._states = client("stepfunctions")
        sns, events = client("sns"), client("events")
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
        self._machine = self._states.create_state_machine(
            name=MACHINE,
            definition=json.dumps(
                {"StartAt": "Received", "States": {"Received": {"Type": "Succeed"}}}
            ),
            roleArn=f"arn:aws:iam::{ACCOUNT_ID}:role/inbox",
        )["stateMachineArn"]
        self._executions: set[str] = set()  # already in the inbox

    def __contains__(self, name: str) -> bool:
        return name in self._queues or name == MACHINE

    def collect(self, name: str) -> None:
        """Move arrived messages to the inbox."""
        if name not in self:
            return
        with self._one_at_a_time:
            if name == MACHINE:
                self._collect_executions()
                return
            while messages := self._received(self._queues[name]):
                for message in messages:
                    self._keep(name, message)

    def _collect_executions(self) -> None:
        listed = self._states.list_executions(stateMachineArn=self._machine)["executions"]
        for execution in sorted(listed, key=lambda one: one["startDate"]):
            if execution["name"] in self._executions:
                continue
            self._executions.add(execution["name"])
            started = self._states.describe_execution(executionArn=execution["executionArn"])
            headers = {"execution-name": execution["name"]}
            at_ms = round(execution["startDate"].timestamp() * 1000)
            self._inbox.take(MACHINE, "StartExecution", MACHINE, headers, started["input"], at_ms)

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
