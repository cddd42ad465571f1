"""What invokes the functions besides callers: the schedules, the queue's poller, the second link.

As in AWS a schedule may be missed, and messages are handed out at least once, in any order, some
of them late. What an invocation did not answer for comes again.
"""

import asyncio
from typing import Any

import boto3

from duewheel.rules.messages import texts_of_event
from local.invocations import RETRY_AFTER_MS
from local.invocations import Invocation as AsyncInvocation
from tests.simulation.invocation import Ended
from tests.simulation.service import Service

NOTIFIERS_AT_ONCE = 40
LOOK_EVERY_SECONDS = 0.1


class EventSources:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._faults = service.faults
        self._chance = service.chance
        self._queue_url = service.settings.slice_queue_url
        self._sqs = boto3.client("sqs")
        self._busy_notifiers = 0

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
                self._service.spawn(self._service.invoke(function, {}))
            wait = minute_over - self._service.seconds() + self._chance.uniform(0, 50)
            await asyncio.sleep(wait)

    # The poller between queue and notifier

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            down = self._faults.is_down("notifier", self._service.seconds())
            while not down and self._busy_notifiers < NOTIFIERS_AT_ONCE and self._has_message():
                messages = self._receive()
                if not messages:
                    break
                twice = self._faults.strikes("duplicate", self._faults.rates.duplicate)
                for _ in range(2 if twice else 1):
                    self._busy_notifiers += 1
                    self._service.spawn(self._hand_over(messages, is_copy=twice))

    def _has_message(self) -> bool:
        now_ms = self._service.now_ms()
        visible_at_ms = self._service.emulator.messages_visible_at_ms(self._queue_url)
        return any(ms <= now_ms for ms in visible_at_ms)

    def _receive(self) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(
            QueueUrl=self._queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=0
        )
        messages = list(answer.get("Messages", []))
        self._chance.shuffle(messages)
        return messages

    async def _hand_over(self, messages: list[dict[str, Any]], *, is_copy: bool) -> None:
        try:
            if self._faults.strikes("delayed", self._faults.rates.delay):
                await asyncio.sleep(self._chance.uniform(0, 40))
            records = [
                {
                    "messageId": m["MessageId"],
                    "receiptHandle": m["ReceiptHandle"],
                    "body": m["Body"],
                }
                for m in messages
            ]
            work = self._service.invoke("notifier", {"Records": records})
            ended = await self._service.spawn(work)
            if is_copy or self._service.wire.has_sent_twice(m["Body"] for m in messages):
                ended.invocation.troubles.append("duplicate")
            if ended.is_answered:
                failed = {f["itemIdentifier"] for f in ended.answer["batchItemFailures"]}
                self._delete(ended, [m for m in messages if m["MessageId"] not in failed])
        finally:
            self._busy_notifiers -= 1

    def _delete(self, ended: Ended, messages: list[dict[str, Any]]) -> None:
        if self._faults.is_down("sqs", self._service.seconds()):
            ended.invocation.troubles.append("messages not deleted")
            return
        if messages:
            self._sqs.delete_message_batch(
                QueueUrl=self._queue_url,
                Entries=[
                    {"Id": str(position), "ReceiptHandle": message["ReceiptHandle"]}
                    for position, message in enumerate(messages)
                ],
            )

    # The second link: asynchronous invocations of the notifier

    def _accept(self, invocation: AsyncInvocation) -> None:
        # From a worker's turn: the loop stands still meanwhile, so this is safe.
        self._service.spawn(self._carry_out(invocation))

    async def _carry_out(self, invocation: AsyncInvocation) -> None:
        """Lambda tries again after one minute and after two, with the same request id."""
        for wait_ms in (*RETRY_AFTER_MS, None):
            while self._faults.is_down("notifier", self._service.seconds()):
                await asyncio.sleep(1)
            work = self._service.invoke("notifier", invocation.event, invocation.request_id)
            ended = await self._service.spawn(work)
            if self._service.wire.has_sent_twice(texts_of_event(invocation.event) or ()):
                ended.invocation.troubles.append("duplicate")
            if ended.is_answered or wait_ms is None:
                return
            await asyncio.sleep(wait_ms / 1000)
