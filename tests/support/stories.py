"""Sequences of steps, each of which can be interrupted at any of its AWS calls by a death or by
another step, and after which all promises must be kept."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import count
from math import inf
from typing import TypeVar

from botocore.exceptions import ClientError

from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.tasks.lifecycle import REDRIVABLE_AFTER_MS
from duewheel.stores.tasks import codec
from local.control.wheel_pointers import WheelPointers
from tests.support.clock import NOON_MS
from tests.support.promises import Promises, Unfinished, is_pending
from tests.support.receiver import OK, Received
from tests.support.recorder import Call, Death
from tests.support.straight import empty
from tests.support.world import World, second_of

SWEEPS_MAX = 60


@dataclass
class Interruption:
    """Another step, or the end of the step, before or after the AWS call of this number."""

    number: int
    by: "Callable[[], object] | End"
    moment: str = "before"


class End(Enum):
    DEATH = "the process is gone"
    OUTAGE = "AWS answers nothing but errors from there on"


class Story(Promises):
    """A sequence of steps that begins with an empty wheel, at noon."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        empty(world.emulator)
        world.recorder.clear()
        world.receiver.received.clear()
        world.receiver.answer = self._answered
        world.clock.set_ms(NOON_MS)
        world.aws_time._latest_ms = 0
        world.wire()
        self._skipping = WheelPointers(
            world.emulator, world.pointers, world.settings.buckets, world.clock.now_ms
        )
        self._sent: list[str] = []  # bodies of all messages that notifiers have received
        self._is_dead = False
        self._new_loop()

    def pass_time(self, seconds: int) -> None:
        """Move from one occupied second to the next, and dispatch and deliver each."""
        world = self.world
        until = world.clock.now_ms() // 1000 + seconds
        while (now := world.clock.now_ms() // 1000) < until:
            position = world.pointer().position
            if self._is_anything_visible():
                self.deliver()
                continue
            occupied = self._occupied()
            ahead = [second for second in occupied if second > min(now, position)]
            following = max(now + 1, min([*ahead, until]))
            world.clock.set_ms(following * 1000)
            undispatched = [second for second in occupied if second > position]
            self._skipping.skip_time_to(min([*undispatched, following]) - 1)
            world.lead_once()
            self.deliver()

    def idle(self, seconds: int) -> None:
        """Let time pass while no function runs."""
        self.world.clock.advance_ms(seconds * 1000)

    def deliver(self) -> None:
        """Deliver messages in the order of their seconds, so that none waits for its second before
        an earlier one."""
        while self._is_anything_visible():
            for message in sorted(self.world.receive(), key=second_of):
                self._sent.append(message["Body"])
                self.world.handle(message)

    def sweep(self) -> None:
        """Run the sweep. It skips empty seconds, except for the last one."""
        swept = self.world.swept_second
        distant = self.world.clock.now_ms() // 1000 - self.world.settings.sweep_delay_seconds
        behind = [second for second in self._occupied() if second > swept]
        self._skipping.skip_sweep_to(min([*behind, distant]) - 1)
        self.world.sweep_once()

    def duplicate(self, number: int) -> None:
        """Send a message again that was processed long ago."""
        if self._sent:
            body = self._sent[number % len(self._sent)]
            self.world.sqs.send_message(
                QueueUrl=self.world.settings.slice_queue_url, MessageBody=body
            )

    def echo(self, number: int) -> None:
        """Carry out a write again that the SDK sent twice, long after it was answered. A delivery
        is written without a condition; AWS refuses it when its signature is older than 5 min."""
        oldest_ms = self.world.clock.now_ms() - REDRIVABLE_AFTER_MS
        writes = [
            call
            for call in self.world.recorder.calls
            if is_write(call) and delivered_ms(call) > oldest_ms
        ]
        if writes:
            call = writes[number % len(writes)]
            client = self.world.unrecorded
            refused = client.exceptions
            with suppress(
                refused.ConditionalCheckFailedException, refused.TransactionCanceledException
            ):
                client._make_api_call(call.operation, call.request)

    def interrupted(self, step: Callable[[], object], by: Interruption | None) -> bool:
        """Take a step; returns False if it made too few calls to be interrupted."""
        recorder, left = self.world.recorder, by.number if by is not None else 0
        happened = False

        def hook(call: Call) -> None:
            nonlocal left, happened
            left -= 1
            if by is None or left:
                return
            happened = True
            recorder.before = recorder.after = None
            self.unfinished += isinstance(by.by, End)
            match by.by:
                case End.DEATH:
                    self._is_dead = True
                    recorder.before = dead
                    raise Death
                case End.OUTAGE:
                    recorder.before = refused
                    if by.moment == "before":
                        refused(call)
                case step:
                    step()

        if by is not None:
            setattr(recorder, by.moment, hook)
        try:
            step()
        except Unfinished:
            self._new_loop()
        finally:
            recorder.before = recorder.after = None
            self._is_dead = False
        return happened

    def settle_all(self) -> None:
        """Let time pass until the sweep has finished all seconds and no call is due."""
        self.answer = OK
        if self.may_be_paused:
            self.resume()
        for _ in range(SWEEPS_MAX):
            last = max(self._occupied(), default=0)
            is_swept = last <= self.world.swept_second
            is_parked = any(is_pending(item) for item in self.health())
            if is_swept and not is_parked and not self.world.messages_waiting():
                return
            self.pass_time(max(1, last + 1 - self.world.clock.now_ms() // 1000))
            self.sweep()  # which only records the time pointer
            self.pass_time(self.world.settings.sweep_delay_seconds)
            self.sweep()
            self.deliver()
        raise AssertionError("a task stays due forever")

    def _is_anything_visible(self) -> bool:
        url = self.world.settings.slice_queue_url
        visible_ms = self.world.emulator.messages_visible_at_ms(url)
        return min(visible_ms, default=inf) <= self.world.clock.now_ms()

    def _answered(self, received: Received) -> Outcome:
        if self._is_dead:
            raise Death
        return self.called(received)

    def _occupied(self) -> set[int]:
        """The seconds with the home of a pending task or with a re-entry."""
        return {
            codec.address_of(item).second
            for item in self.health()
            if is_pending(item) or "home" in item
        }

    def _new_loop(self) -> None:
        """A loop with one thread, so that calls have the same order every time."""
        if unfinished := asyncio.all_tasks(self.world.loop):
            for one in unfinished:
                one.cancel()
            self.world.loop.run_until_complete(asyncio.wait(unfinished))
        self.world.loop.close()
        self.world.loop = asyncio.new_event_loop()
        self.world.loop.set_default_executor(ThreadPoolExecutor(1))


def dead(_: Call) -> None:
    raise Death


def refused(call: Call) -> None:
    error = {"Code": "InternalServerError", "Message": "The request could not be completed"}
    raise ClientError(
        {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 500}},  # type: ignore[typeddict-item]
        call.operation,
    )


def is_write(call: Call) -> bool:
    """Whether the call writes to the wheel. Writes of the Registry are tested elsewhere."""
    return "Write" in call.operation or (
        call.operation in ("PutItem", "UpdateItem", "DeleteItem")
        and "slot" in call.request.get("Key", call.request.get("Item", {}))
    )


OneStory = TypeVar("OneStory", bound=Story)


def after_each_write(
    begun: Callable[[], OneStory],
    step: Callable[[OneStory], object],
    by: Callable[[OneStory], Interruption],
    is_counted: Callable[[Call], bool] = is_write,
    every: int = 1,
) -> Iterator[OneStory]:
    """The same story for each write of `step`, interrupted after that write."""
    story = begun()
    writes: list[bool] = []

    def note(call: Call) -> None:
        writes.append(is_counted(call))

    story.world.recorder.after = note
    step(story)
    story.world.recorder.after = None
    numbers = [number for number, is_one in enumerate(writes, start=1) if is_one]
    for number in numbers[::every]:
        story = begun()
        interruption = by(story)
        interruption.number, interruption.moment = number, "after"
        assert story.interrupted(lambda story=story: step(story), interruption)
        story.settle_all()
        story.check()
        yield story


def delivered_ms(call: Call) -> float:
    """When the earliest of the deliveries that it writes was made."""
    requests = call.request.get("RequestItems", {}).values()
    items = [one["PutRequest"]["Item"] for some in requests for one in some if "PutRequest" in one]
    delivered = [item for item in items if item.get("status") == {"S": "delivered"}]
    return min((int(item["updated_ms"]["N"]) for item in delivered), default=inf)


def begun(world: World, before: Callable[[Story], object]) -> Story:
    story = Story(world)
    before(story)
    return story


def at_each_call(
    begun: Callable[[], OneStory],
    step: Callable[[OneStory], object],
    by: End | Callable[[OneStory], object],
    moment: str = "after",
) -> Iterator[OneStory]:
    """The same story for each AWS call of `step`, interrupted there, and once with the other step
    behind it. Each time the promises must be kept."""
    for number in count(1):
        story = begun()
        between = by if isinstance(by, End) else partial(by, story)
        came_between = story.interrupted(
            partial(step, story), Interruption(number, between, moment)
        )
        if not came_between and not isinstance(between, End):
            between()
        story.settle_all()
        story.check()
        yield story
        if not came_between:
            return


def interleavings(
    world: World,
    begin: Callable[[Story], object],
    first: Callable[[Story], object],
    second: Callable[[Story], object],
) -> Iterator[Story]:
    """Repeat the story with `second` before `first`, after each AWS call of `first`, and after its
    end. Each time the promises must be kept."""
    begins = partial(begun, world, begin)
    yield next(at_each_call(begins, first, second, "before"))
    yield from at_each_call(begins, first, second)
