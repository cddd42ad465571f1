"""Emulates Lambda's event source mapping: polls a queue and invokes a function with batches.

Invariant: successful messages are deleted; reported or failed ones stay in the queue until their
visibility ends; the queue's own redrive policy moves them to the dead-letter queue. At most
`ENVIRONMENTS_AWAKE` invocations of a mapping work at once, fewer if it says so; those that only
wait for the clock do not count.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from local.aws.environments import Caller, Environments, no_caller
from local.aws.functions import Function
from local.aws.intrinsics import TemplateError
from local.aws.resources import Resources
from local.aws.template import REGION
from local.control.clock import MovableClock

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

log = logging.getLogger(__name__)

ENVIRONMENTS_AWAKE = 4
LOOK_EVERY_SECONDS = 0.05
LONG_POLL_SECONDS = 1  # of queues in another process, where each look is a request
SQS_BATCH = 10
INVOCATIONS_OF_A_PROVISIONED_POLLER = 10
_EVENT_ATTRIBUTES = (
    "ApproximateReceiveCount",
    "SentTimestamp",
    "SenderId",
    "ApproximateFirstReceiveTimestamp",
)

Message = Mapping[str, Any]
Hide = Callable[["Message", int], None]  # seconds
Batches = Callable[[list["Message"], Hide], list[list["Message"]]]


@dataclass(frozen=True, slots=True)
class Mapped:
    """One event source mapping of the template."""

    function: Function
    queue_url: str
    queue_arn: str
    batch_size: int
    reports_item_failures: bool
    concurrency_max: int = ENVIRONMENTS_AWAKE


def mapped_queues(resources: Resources, functions: Mapping[str, Function]) -> list[Mapped]:
    return [
        _mapped(mapping.logical_id, resources.resolve(mapping.properties), resources, functions)
        for mapping in resources.template.of_type("AWS::Lambda::EventSourceMapping")
    ]


def _mapped(
    logical_id: str,
    properties: dict[str, Any],
    resources: Resources,
    functions: Mapping[str, Function],
) -> Mapped:
    known = {"BatchSize", "EventSourceArn", "FunctionName", "FunctionResponseTypes", "Enabled"}
    known |= {"MaximumBatchingWindowInSeconds", "ScalingConfig", "Tags"}
    known |= {"ProvisionedPollerConfig"}
    unknown = set(properties) - known
    batch_size = int(properties.get("BatchSize", SQS_BATCH))
    if unknown or batch_size > SQS_BATCH or properties.get("MaximumBatchingWindowInSeconds"):
        raise TemplateError(
            f"{logical_id}: the local stack polls batches of up to {SQS_BATCH} without a window, "
            f"and does not handle: {', '.join(sorted(unknown)) or 'nothing else'}"
        )
    queue = resources.with_arn(properties["EventSourceArn"])
    return Mapped(
        function=functions[properties["FunctionName"]],
        queue_url=resources.queue_url(queue.logical_id),
        queue_arn=properties["EventSourceArn"],
        batch_size=batch_size,
        reports_item_failures=(
            "ReportBatchItemFailures" in properties.get("FunctionResponseTypes", [])
        ),
        concurrency_max=min(_concurrency_max(properties), ENVIRONMENTS_AWAKE),
    )


def _concurrency_max(properties: dict[str, Any]) -> int:
    if provisioned := properties.get("ProvisionedPollerConfig"):
        return int(provisioned["MaximumPollers"]) * INVOCATIONS_OF_A_PROVISIONED_POLLER
    return int(properties.get("ScalingConfig", {}).get("MaximumConcurrency", ENVIRONMENTS_AWAKE))


def as_they_are(messages: list[Message], _: Hide) -> list[list[Message]]:
    return [messages] if messages else []


class QueuePoller:
    """`batches` splits the messages of one poll into invocations. A queue without a visible message
    is not asked for one; without `has_visible` it is asked by long polls."""

    def __init__(
        self,
        mapped: Mapped,
        sqs: "SQSClient",
        clock: MovableClock,
        caller_here: Callable[[], Caller | None] = no_caller,
        batches: Batches = as_they_are,
        has_visible: Callable[[str], bool] | None = None,
    ) -> None:
        self._batches = batches
        self._has_visible = has_visible
        self.mapped = mapped
        self._sqs = sqs
        self._clock = clock
        self._environments = Environments(clock, caller_here)
        self._changed = self._environments.changed
        self._is_receiving = False
        self._stopped = False
        self._thread = Thread(target=self._run, name="queue poller", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(timeout_seconds)
        self._environments.stop(timeout_seconds)

    def nudge(self) -> None:
        """Poll the queue now."""
        with self._changed:
            self._changed.notify_all()

    def is_at_work(self) -> bool:
        """Whether an invocation works or is about to begin; one that only waits for the clock does
        not count."""
        with self._changed:
            return self._is_receiving or self._environments.is_at_work()

    def has_restless(self) -> bool:
        """Whether an invocation waits for the clock that may do something before."""
        return self._environments.has_restless()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                if self._environments.awake() >= self.mapped.concurrency_max:
                    self._changed.wait(LOOK_EVERY_SECONDS)
                    continue
                self._is_receiving = True
            messages = self._receive()
            batches = self._batches(messages, self._hide)
            with self._changed:
                for batch in batches:
                    self._environments.begin(partial(self._handle, batch))
                self._is_receiving = False
                if not messages and not self._stopped:
                    self._changed.wait(LOOK_EVERY_SECONDS)

    def _receive(self) -> list[Message]:
        if self._has_visible is not None and not self._has_visible(self.mapped.queue_url):
            return []
        try:
            answer = self._sqs.receive_message(
                QueueUrl=self.mapped.queue_url,
                MaxNumberOfMessages=self.mapped.batch_size,
                WaitTimeSeconds=LONG_POLL_SECONDS if self._has_visible is None else 0,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        except Exception:  # like Lambda's poller: retry at the next poll
            log.exception("receiving from %s failed", self.mapped.queue_url)
            return []
        return list(answer.get("Messages", []))

    def _hide(self, message: Message, seconds: int) -> None:
        self._sqs.change_message_visibility(
            QueueUrl=self.mapped.queue_url,
            ReceiptHandle=message["ReceiptHandle"],
            VisibilityTimeout=seconds,
        )

    def _handle(self, messages: list[Message]) -> None:
        """One invocation, and the deletion of its successful messages."""
        try:
            event = {"Records": [record_of(message, self.mapped.queue_arn) for message in messages]}
            answer = self.mapped.function.invoke_with_timeout(event, self._clock)
            failed = _failed_ids(answer, messages) if self.mapped.reports_item_failures else set()
            self._delete([m for m in messages if m["MessageId"] not in failed])
        except Exception:  # Lambda logs it; the messages come back when their visibility ends
            log.exception("%s failed", self.mapped.function.name)

    def _delete(self, done: list[Message]) -> None:
        if done:
            self._sqs.delete_message_batch(
                QueueUrl=self.mapped.queue_url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                    for number, message in enumerate(done)
                ],
            )


def record_of(message: Message, queue_arn: str) -> dict[str, Any]:
    attributes = message.get("Attributes", {})
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": {name: attributes[name] for name in _EVENT_ATTRIBUTES if name in attributes},
        "messageAttributes": {
            name: _message_attribute(value)
            for name, value in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    }
    if "MD5OfMessageAttributes" in message:
        record["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    return record


def _message_attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dataType": value["DataType"],
        "stringListValues": [],
        "binaryListValues": [],
        **{name[0].lower() + name[1:]: value[name] for name in value if name != "DataType"},
    }


def _failed_ids(answer: Any, messages: list[Message]) -> set[str]:
    """The failed messages of a partial batch response: an unreadable one fails the whole batch."""
    everything = {m["MessageId"] for m in messages}
    if not answer:
        return set()
    failures = answer.get("batchItemFailures") if isinstance(answer, dict) else None
    if failures is None:
        return set() if isinstance(answer, dict) else everything
    identifiers = {failure.get("itemIdentifier") for failure in failures}
    return identifiers if identifiers <= everything else everything
