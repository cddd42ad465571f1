"""What invokes the functions besides callers: schedules, the queues' pollers, the second link.

As in AWS a schedule may be missed, and messages are handed out at least once, in any order, some
of them late. What an invocation did not answer for comes again.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import boto3

from duewheel.rules.wheel.addresses import address_named
from duewheel.rules.wheel.queue_messages import DirectMessage, decode, texts_of_event
from duewheel.stores.tasks import codec
from local.aws.invocations import RETRY_AFTER_MS
from local.aws.invocations import Invocation as AsyncInvocation
from local.aws.queue_poller import record_of
from tests.simulation.faults import BUT_ONE
from tests.simulation.invocation import DUPLICATE, Ended
from tests.simulation.service import Service

NOTIFIERS_AT_ONCE = 40
SLOW_NOTIFIERS_AT_ONCE = 40
INGESTING_AT_ONCE = 20
LOOK_EVERY_SECONDS = 0.1
LATE_COPY_SECONDS = (1.0, 12.0)  # after half a minute no notifier heeds a direct message
COPY_GOES_ON = "late copy of a task that goes on"
HELD_TO_ONE = "looks at a queue while the one notifier works"


@dataclass
class Mapping:
    """Between one queue and its function."""

    function: str
    queue: str
    queue_url: str
    batch_size: int
    runs_max: int
    busy: int = 0


class EventSources:
    def __init__(
        self,
        service: Service,
        *,
        notifiers: int = NOTIFIERS_AT_ONCE,
        slow_notifiers: int = SLOW_NOTIFIERS_AT_ONCE,
    ) -> None:
        self._service = service
        self._faults = service.faults
        self._chance = service.chance
        settings = service.settings
        self._mappings = [
            Mapping("notifier", "main", settings.slice_queue_url, 2, notifiers),
            Mapping("notifier", "slow", settings.slow_queue_url, 1, slow_notifiers),
        ]
        if settings.ingest_queue_url:
            ingest = Mapping("ingest", "ingest", settings.ingest_queue_url, 10, INGESTING_AT_ONCE)
            self._mappings.append(ingest)
        self._sqs = boto3.client("sqs")

    def begin(self) -> None:
        self._service.emulator.accept_invocation = self._accept
        for function in ("scheduler", "sweeper"):
            self._service.spawn(self._each_minute(function))
        self._service.spawn(self._poll())

    async def _each_minute(self, function: str) -> None:
        while True:
            await asyncio.sleep(self._chance.uniform(0, 1))
            minute_over = self._service.seconds() // 60 * 60 + 60
            down = self._faults.is_down(function, self._service.seconds())
            if not down and not self._faults.strikes(
                "schedule missed", self._faults.rates.missed_schedule
            ):
                self._service.spawn(self._run(function))
            wait = minute_over - self._service.seconds() + self._chance.uniform(0, 50)
            await asyncio.sleep(wait)

    async def _run(self, function: str) -> None:
        began = self._service.seconds()
        ended = await self._service.spawn(self._service.invoke(function, {}))
        if ended.is_answered:
            self._service.succeeded[function].append(began)

    # The pollers between queues and functions

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            for mapping in self._mappings:
                if not self._faults.is_down(mapping.function, self._service.seconds()):
                    self._look(mapping)

    def _look(self, mapping: Mapping) -> None:
        while not self._is_full(mapping) and self._has_message(mapping):
            messages = self._receive(mapping)
            if not messages:
                break
            twice = self._faults.strikes("duplicate", self._faults.rates.duplicate)
            late = (
                mapping.function == "notifier"
                and _are_direct(m["Body"] for m in messages)
                and self._faults.strikes("late copy", self._faults.rates.late_copy)
            )
            for _ in range(2 if twice else 1):
                mapping.busy += 1
                self._service.spawn(self._hand_over(mapping, messages, is_copy=twice or late))
            if late:
                self._service.spawn(self._hand_over_late(mapping, messages))

    def _is_full(self, mapping: Mapping) -> bool:
        if mapping.busy >= mapping.runs_max:
            return True
        if mapping.function != "notifier":
            return False
        is_held = self._faults.is_down(BUT_ONE, self._service.seconds()) and any(
            each.busy for each in self._mappings if each.function == "notifier"
        )
        self._faults.injected[HELD_TO_ONE] += is_held
        return is_held

    async def _hand_over_late(self, mapping: Mapping, messages: list[dict[str, Any]]) -> None:
        """When the task may have been retried, answered 202, redriven or changed."""
        await asyncio.sleep(self._chance.uniform(*LATE_COPY_SECONDS))
        while self._is_full(mapping):
            await asyncio.sleep(LOOK_EVERY_SECONDS)
        for message in messages:
            asked = decode(message["Body"])
            for entry in asked.entries if isinstance(asked, DirectMessage) else ():
                self._faults.injected[COPY_GOES_ON] += self._goes_on(entry)
        mapping.busy += 1
        await self._hand_over(mapping, messages, is_copy=True)

    def _goes_on(self, entry: str) -> bool:
        """Somebody has written it since it was created, and it has not ended."""
        settings = self._service.settings
        key = codec.key(address_named(entry), settings.buckets)
        item = self._service.emulator.item(settings.wheel_table, key) or {}
        is_pending = item.get("status", {}).get("S") == "pending"
        return is_pending and int(item["version"]["N"]) > 1

    def _has_message(self, mapping: Mapping) -> bool:
        late_seconds = self._faults.late_seconds(mapping.queue, self._service.seconds())
        now_ms = self._service.now_ms() - late_seconds * 1000
        visible_at_ms = self._service.emulator.messages_visible_at_ms(mapping.queue_url)
        return any(ms <= now_ms for ms in visible_at_ms)

    def _receive(self, mapping: Mapping) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(
            QueueUrl=mapping.queue_url,
            MaxNumberOfMessages=mapping.batch_size,
            WaitTimeSeconds=0,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        messages = list(answer.get("Messages", []))
        self._chance.shuffle(messages)
        return messages

    async def _hand_over(
        self, mapping: Mapping, messages: list[dict[str, Any]], *, is_copy: bool
    ) -> None:
        try:
            if self._faults.strikes("delayed", self._faults.rates.delay):
                await asyncio.sleep(self._chance.uniform(0, 40))
            records = [record_of(message, "arn") for message in messages]
            work = self._service.invoke(mapping.function, {"Records": records})
            ended = await self._service.spawn(work)
            if is_copy or self._service.wire.has_sent_twice(m["Body"] for m in messages):
                ended.invocation.troubles.append(DUPLICATE)
            if ended.is_answered:
                failed = {f["itemIdentifier"] for f in ended.answer["batchItemFailures"]}
                done = [m for m in messages if m["MessageId"] not in failed]
                self._delete(mapping, ended, done)
        finally:
            mapping.busy -= 1

    def _delete(self, mapping: Mapping, ended: Ended, messages: list[dict[str, Any]]) -> None:
        if self._faults.is_down("sqs", self._service.seconds()):
            ended.invocation.troubles.append("messages not deleted")
            return
        if messages:
            self._sqs.delete_message_batch(
                QueueUrl=mapping.queue_url,
                Entries=[
                    {"Id": str(position), "ReceiptHandle": message["ReceiptHandle"]}
                    for position, message in enumerate(messages)
                ],
            )

    # Asynchronous invocations: the second link to the notifier, and workers of bulk operations

    def _accept(self, invocation: AsyncInvocation) -> None:
        """Lambda runs an event at least once, whatever it answers."""
        # From a worker's turn: the loop stands still meanwhile, so this is safe.
        self._service.spawn(self._carry_out(invocation, 0))
        if self._faults.strikes("event twice", self._faults.rates.invoked_twice):
            later_seconds = self._chance.choice((0.0, 0.0, 1.0, 30.0))
            self._service.spawn(self._carry_out(invocation, later_seconds, is_copy=True))

    async def _carry_out(
        self, invocation: AsyncInvocation, later_seconds: float, *, is_copy: bool = False
    ) -> None:
        """Lambda tries again after one minute and after two, with the same request id; a worker of
        bulk operations not at all."""
        await asyncio.sleep(later_seconds)
        if invocation.function == self._service.settings.bulk_function:
            await self._service.spawn(self._service.invoke("bulk", {}, invocation.request_id))
            return
        for wait_ms in (*RETRY_AFTER_MS, None):
            while self._faults.is_down("notifier", self._service.seconds()):
                await asyncio.sleep(1)
            work = self._service.invoke("notifier", invocation.event, invocation.request_id)
            ended = await self._service.spawn(work)
            texts = texts_of_event(invocation.event) or ()
            if self._service.wire.has_sent_twice(texts) or (is_copy and _are_direct(texts)):
                ended.invocation.troubles.append(DUPLICATE)
            if ended.is_answered or wait_ms is None:
                return
            await asyncio.sleep(wait_ms / 1000)


def _are_direct(texts: Iterable[str]) -> bool:
    """Without a lease, which would tell one run from another."""
    return any(isinstance(decode(text), DirectMessage) for text in texts)
