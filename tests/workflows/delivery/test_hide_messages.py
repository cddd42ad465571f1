"""Each message of a run is hidden on its own, whatever SQS answers for the receipts of the
others."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from botocore.exceptions import EndpointConnectionError

from duewheel.rules.delivery.page_lease import HIDDEN_MS, LeaseLost
from duewheel.rules.wheel.queue_messages import Lane
from duewheel.stores.wheel.page_queue import SliceQueue
from duewheel.workflows.delivery.hold import TRIED_AGAIN_MS, HideMessages, KeepHold
from tests.support.clock import ManualClock

T = TypeVar("T")
GONE, THROTTLED = "ReceiptHandleIsInvalid", "RequestThrottled"
ITS_END_MS = HIDDEN_MS  # the first end, passed unless it is renewed


class Sqs:
    """`refusing`: the error codes of receipts, and whether the sender is at fault."""

    def __init__(self) -> None:
        self.refusing: dict[str, tuple[str, bool]] = {}
        self.is_down = False
        self.requests: list[list[str]] = []

    def change_message_visibility_batch(
        self, QueueUrl: str, Entries: list[dict[str, Any]]
    ) -> dict[str, Any]:
        self.requests.append([entry["ReceiptHandle"] for entry in Entries])
        if self.is_down:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        failed = [
            {"Id": entry["Id"], "Code": code, "SenderFault": is_senders}
            for entry in Entries
            if (refusal := self.refusing.get(entry["ReceiptHandle"]))
            for code, is_senders in [refusal]
        ]
        return {"Failed": failed} if failed else {}


class Run:
    """One run with its messages. Its clock advances by half a second at a time."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.main, self.slow = Sqs(), Sqs()
        queues: Any = {
            Lane.MAIN: SliceQueue(self.main, "main"),
            Lane.SLOW: SliceQueue(self.slow, "slow"),
        }  # type: ignore[arg-type]
        self.hide = HideMessages(self.clock, queues, KeepHold(self.clock, at_once))

    async def passes_ms(self, ms: int) -> None:
        for _ in range(ms // TRIED_AGAIN_MS):
            self.clock.advance_ms(TRIED_AGAIN_MS)
            await turns()


async def at_once(request: Callable[[], T]) -> T:
    return request()


async def turns() -> None:
    """As many turns of the event loop as a renewal takes; it only waits for its clock."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("refusal", "is_repeated"),
    [((GONE, True), False), ((THROTTLED, True), True), (("InternalError", False), True)],
)
def test_a_refused_receipt_ends_the_hold_of_its_own_message_only(
    refusal: tuple[str, bool], is_repeated: bool
) -> None:
    async def lived() -> None:
        run = Run()
        run.main.refusing["bad"] = refusal
        messages = {
            Lane.MAIN: {"first": ["bad"], "second": ["good"]},
            Lane.SLOW: {"third": ["far"]},
        }
        async with run.hide(messages) as hidden:
            await run.passes_ms(ITS_END_MS)
            sure = {text for text, hold in hidden.holds.items() if hold.is_sure}
            assert sure == {"second", "third"}
            assert ("bad" in run.main.requests[-1]) is is_repeated
            run.main.refusing.clear()
            await run.passes_ms(TRIED_AGAIN_MS)
            assert hidden.holds["first"].is_sure is is_repeated

    asyncio.run(lived())


def test_no_call_begins_for_a_message_whose_receipt_is_refused_for_good() -> None:
    async def lived() -> None:
        run = Run()
        run.main.refusing["bad"] = (GONE, True)
        async with run.hide({Lane.MAIN: {"first": ["bad"]}}) as hidden:
            await run.passes_ms(TRIED_AGAIN_MS)
            latest_ms = run.clock.now_ms() + 60_000
            assert await hidden.holds["first"].is_sure_before(latest_ms), "held until its end"
            await run.passes_ms(ITS_END_MS)
            with pytest.raises(LeaseLost):
                await hidden.holds["first"].is_sure_before(latest_ms)
        assert run.main.requests == [["bad"]]

    asyncio.run(lived())


def test_a_queue_that_does_not_answer_does_not_end_holds_of_the_other_queue() -> None:
    async def lived() -> None:
        run = Run()
        run.main.is_down = True
        async with run.hide(
            {Lane.MAIN: {"first": ["one"]}, Lane.SLOW: {"second": ["two"]}}
        ) as hidden:
            await run.passes_ms(ITS_END_MS)
            assert not hidden.holds["first"].is_sure
            assert hidden.holds["second"].is_sure
            run.main.is_down = False
            await run.passes_ms(TRIED_AGAIN_MS)
            assert hidden.holds["first"].is_sure

    asyncio.run(lived())


def test_a_message_that_was_left_or_refused_for_good_is_not_hidden_again() -> None:
    async def lived() -> None:
        run = Run()
        left: list[str] = []
        run.main.change_message_visibility = lambda **named: left.append(named["ReceiptHandle"])  # type: ignore[attr-defined]
        run.main.refusing["bad"] = (GONE, True)
        messages = {Lane.MAIN: {"first": ["bad"], "second": ["left", "twice"], "third": ["good"]}}
        async with run.hide(messages) as hidden:
            await turns()
            hidden.leave("first", 90)
            hidden.leave("second", 90)
            await run.passes_ms(ITS_END_MS)
        assert left == ["left", "twice"]
        assert run.main.requests[1:] == [["good"]] * len(run.main.requests[1:])

    asyncio.run(lived())
