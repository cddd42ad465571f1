"""Lets minutes pass in a world, with failing parts, and counts messages and leases."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from duewheel.rules.wheel.queue_messages import texts_of_event
from tests.support.recorder import Call
from tests.support.world import World

DYNAMODB = {
    *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"),
    *("BatchGetItem", "BatchWriteItem", "TransactWriteItems"),
}
SQS = {
    *("SendMessageBatch", "ReceiveMessage", "DeleteMessage"),
    *("ChangeMessageVisibility", "ChangeMessageVisibilityBatch"),
}
LAMBDA = {"Invoke"}


@dataclass
class Minute:
    """The counts of one minute."""

    sent: int = 0  # messages that either link accepted
    begun: int = 0  # leases of pages taken
    called: int = 0


@dataclass
class Minutes:
    """`refused`: the AWS operations that fail. The three functions run while they are switched
    on."""

    world: World
    refused: set[str] = field(default_factory=set)
    scheduler: bool = True
    notifier: bool = True
    sweeper: bool = True
    passed: list[Minute] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world.recorder.before = self._refuse
        self.world.recorder.after = self._count
        self._now = Minute()

    def pass_by(self, minutes: int) -> list[Minute]:
        """Run each function once a minute, up to its first failure."""
        for _ in range(minutes):
            self._now = Minute()
            called = len(self.world.receiver.received)
            self.world.clock.advance_ms(60_000)
            for is_on, run in (
                (self.scheduler, self.world.lead_once),
                (self.notifier, self.world.drain),
                (self.sweeper, self.world.sweep_once),
                (self.notifier, self.world.drain),
            ):
                if is_on:
                    self._run(run)
            self._now.called = len(self.world.receiver.received) - called
            self.passed.append(self._now)
        return self.passed[-minutes:]

    def until_swept(self, second: int, minutes_max: int) -> list[Minute]:
        """Let minutes pass until the sweep pointer has passed a second; returns their number."""
        before = len(self.passed)
        while self.world.swept_second < second:
            assert len(self.passed) - before < minutes_max, "the sweep makes no progress"
            self.pass_by(1)
        return self.passed[before:]

    def _run(self, run: Callable[[], None]) -> None:
        try:
            run()
        except (ClientError, BotoCoreError):
            return  # like a failed invocation: the next minute runs again

    def _refuse(self, call: Call) -> None:
        if call.operation in self.refused:
            raise ClientError({"Error": {"Code": "ServiceUnavailable"}}, call.operation)

    def _count(self, call: Call) -> None:
        response = call.response or {}
        match call.operation:
            case "SendMessageBatch":
                self._now.sent += len(response.get("Successful", []))
            case "Invoke":
                self._now.sent += len(texts_of_event(json.loads(call.request["Payload"])) or [])
            case "UpdateItem" if "#tries = " in call.request["UpdateExpression"]:
                self._now.begun += 1


def minutes_pass(world: World, minutes: int) -> None:
    """Let minutes pass without failures."""
    for _ in range(minutes):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        world.drain()
        world.sweep_once()
        world.drain()
