"""Those who send messages to the ingest queue: each sends, by chance, one of the things that it may
be sent, and again what it does not know to have arrived."""

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import boto3

from duewheel.rules.callbacks.payload_encoding import ATTEMPT
from duewheel.rules.ingest.message import KEY_ATTRIBUTE
from tests.simulation.messages import Message, Messages, Wanted
from tests.simulation.service import Service
from tests.simulation.wire import AND_YET_DONE

# What IngestBusinesses says.
MAY_CREATE_FOR = "orders,invoices,par*,rationed,limited,narrow,keyed"
ELSEWHERE = "elsewhere"
RATIONED = "rationed"  # by a limit, which lets a batch in by and by
RATION = 10  # creates a second
TRIES_MAX = 6
TASKS_MAX = 15
TOGETHER_MAX = 8

NewTask = Callable[[], dict[str, Any]]


class Senders:
    def __init__(self, service: Service, chance: Random, new_task: NewTask) -> None:
        self.messages = Messages()
        self._service = service
        self._chance = chance
        self._new_task = new_task
        self._keys = 0
        self._sqs = boto3.client("sqs")

    async def send_some(self) -> None:
        for _ in range(self._chance.randint(1, TOGETHER_MAX)):
            await self._send_any()
            await asyncio.sleep(self._chance.choice((0.0, 0.0, 3.0)))

    async def _send_any(self) -> None:
        kinds = (self._single, self._batch, self._batch, self._named, self._rationed)
        flawed = (self._flawed_batch, self._refused, self._rubbish, self._of_a_callback)
        kind = self._chance.choice((*kinds, *flawed, self._rivals))
        for message in kind():
            self.messages.sent.append(message)
            await self._send(message)

    # What they send

    def _single(self) -> list[Message]:
        return [_single(self._new_task(), self._maybe_a_key())]

    def _batch(self) -> list[Message]:
        tasks = [self._new_task() for _ in range(self._chance.randint(1, TASKS_MAX))]
        return [_batch(tasks, [None] * len(tasks), self._maybe_a_key())]

    def _named(self) -> list[Message]:
        """Under a key of its own for the task, besides that of the message."""
        return [_single({**self._new_task(), "key": self._key()}, self._maybe_a_key())]

    def _rationed(self) -> list[Message]:
        number = self._chance.randint(1, TASKS_MAX)
        tasks = [{**self._new_task(), "biz_type": RATIONED} for _ in range(number)]
        return [_batch(tasks, [None] * len(tasks), self._maybe_a_key())]

    def _flawed_batch(self) -> list[Message]:
        """Some are good; of the last two one may have the key that they both want."""
        flaws: list[str | None] = [None, "invalid-field", "not-permitted"]
        problems = self._chance.choices(flaws, k=self._chance.randint(1, TASKS_MAX))
        tasks = [_flawed(self._new_task(), problem) for problem in problems]
        clash = {"key": self._key()}
        tasks += [{**self._new_task(), **clash} for _ in range(2)]
        return [_batch(tasks, [*problems, "key-taken", "key-taken"], self._maybe_a_key())]

    def _refused(self) -> list[Message]:
        problem = self._chance.choice(("invalid-field", "not-permitted"))
        task = _flawed(self._new_task(), problem)
        return [_single(task, self._maybe_a_key(), problem)]

    def _rubbish(self) -> list[Message]:
        text = self._chance.choice(("{rubbish", "[]", '"tasks"', "{}}"))
        wanted = Wanted(0, problem="malformed-body", may_be_made=False)
        return [Message(text, (wanted,), self._maybe_a_key())]

    def _of_a_callback(self) -> list[Message]:
        return [_single(self._new_task(), {ATTEMPT: "1"}, "callback-refused")]

    def _rivals(self) -> list[Message]:
        """Two bodies under one key: whichever is worked off first is the request."""
        key = {KEY_ATTRIBUTE: self._key()}
        one, other = (
            _single(self._new_task(), key, "idempotency-key-reused", may_be_made=True)
            for _ in range(2)
        )
        one.rival, other.rival = other, one
        return [one, other]

    def _maybe_a_key(self) -> dict[str, str]:
        return {KEY_ATTRIBUTE: self._key()} if self._chance.random() < 0.5 else {}

    def _key(self) -> str:
        self._keys += 1
        return f"message-{self._keys}"

    # How they send it

    async def _send(self, message: Message) -> None:
        """Under a key until SQS is heard to have it, and by chance once more."""
        if KEY_ATTRIBUTE not in message.attributes:
            self._try_to_send(message)
            return
        for _ in range(TRIES_MAX):
            if self._try_to_send(message):
                break
            await asyncio.sleep(2)
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._chance.uniform(0, 30))
            self._try_to_send(message)

    def _try_to_send(self, message: Message) -> bool:
        """Whether SQS is heard to have it."""
        faults = self._service.faults
        if faults.is_down("sqs", self._service.seconds()):
            return False
        fault = faults.aws_fault("SendMessage")
        if fault is None or fault in AND_YET_DONE:
            answer = self._sqs.send_message(
                QueueUrl=self._service.settings.ingest_queue_url,
                MessageBody=message.body,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value}
                    for name, value in message.attributes.items()
                },
            )
            message.copies[answer["MessageId"]] = self._service.now_ms()
        return fault is None


def _single(
    task: dict[str, Any],
    attributes: dict[str, str],
    problem: str | None = None,
    *,
    may_be_made: bool = False,
) -> Message:
    wanted = _wanted(task, problem, may_be_made=may_be_made or problem is None)
    return Message(json.dumps(task), (wanted,), attributes)


def _batch(
    tasks: list[dict[str, Any]], problems: list[str | None], attributes: dict[str, str]
) -> Message:
    wanted = tuple(
        _wanted(task, problem, may_be_made=problem in (None, "key-taken"))
        for task, problem in zip(tasks, problems, strict=True)
    )
    return Message(json.dumps({"tasks": tasks}), wanted, attributes)


def _wanted(task: dict[str, Any], problem: str | None, *, may_be_made: bool) -> Wanted:
    delay_ms = round(task["delay_seconds"] * 1000)
    return Wanted(task["payload"]["n"], delay_ms, problem, may_be_made)


def _flawed(task: dict[str, Any], problem: str | None) -> dict[str, Any]:
    match problem:
        case None:
            return task
        case "invalid-field":
            return {**task, "retry": 1}
        case _:
            return {**task, "biz_type": ELSEWHERE}
