"""Messages to the notifier: by a queue, or by asynchronous invocation."""

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from duewheel.rules.names import BIZ_TYPE
from duewheel.rules.wheel.addresses import (
    PARKED_SLOTS,
    SECOND_MAX,
    SHARD_MAX,
    address_from,
    address_named,
    first_page,
    is_page,
    is_slow_page,
)

MESSAGES_PER_RUN = 10  # by asynchronous invocation, where each run is a request of the sender
_EVENT_MEMBER = "messages"
# What reading JSON of any shape as if it were ours can raise.
NOT_UNDERSTOOD = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class Lane(StrEnum):
    """`SLOW` has a queue and notifiers of its own, for those whose calls hold pages up."""

    MAIN = "main"
    SLOW = "slow"


class PageMessage(Struct, frozen=True):
    """Deliver one page of a slice: the entries after `after`, or just `places` that were passed on.
    `called`: records of those among them that were delivered, and only have to be settled."""

    second: int
    shard: int
    page: str = first_page()
    after: str | None = None
    places: tuple[str, ...] = ()
    called: tuple[str, ...] = ()

    @property
    def lane(self) -> Lane:
        return Lane.SLOW if is_slow_page(self.page) else Lane.MAIN


class DirectMessage(Struct, frozen=True):
    """Deliver these entries (by name, all of one second), which no read of a slice will see."""

    second: int
    entries: tuple[str, ...]
    called: tuple[str, ...] = ()

    @property
    def lane(self) -> Lane:
        """The main lane; entries of slow businesses become a page of the slow lane there."""
        return Lane.MAIN


class ReleaseMessage(Struct, frozen=True):
    """Release the parked tasks of this business; `part`: in one of its slots only."""

    biz_type: str
    part: int | None = None

    @property
    def lane(self) -> Lane:
        return Lane.MAIN


Message = PageMessage | DirectMessage | ReleaseMessage


class MalformedMessage(Exception):
    """Not a message of this service; it ends in the dead-letter queue."""


def encode(message: Message) -> str:
    match message:
        case PageMessage():
            body: dict[str, object] = {
                "v": 1,
                "second": message.second,
                "shard": message.shard,
                "page": message.page,
            }
            if message.after is not None:
                body["after"] = message.after
            if message.places:
                body["places"] = message.places
        case DirectMessage():
            body = {"v": 1, "second": message.second, "entries": message.entries}
        case ReleaseMessage():
            body = {"v": 1, "release": message.biz_type}
            if message.part is not None:
                body["part"] = message.part
    if not isinstance(message, ReleaseMessage) and message.called:
        body["called"] = message.called
    return json.dumps(body, separators=(",", ":"))


def decode(text: str) -> Message:
    """Strict: a message that this service would not have sent is not carried out."""
    try:
        body = json.loads(text)
        if body["v"] != 1:
            raise MalformedMessage("a message of an unknown version")
        if "release" in body:
            return _checked_release(ReleaseMessage(body["release"], body.get("part")))
        if "entries" in body:
            entries = tuple(body["entries"])
            return _checked_direct(DirectMessage(body["second"], entries, _called(body)))
        return _checked_page(
            PageMessage(
                body["second"],
                body["shard"],
                page=body["page"],
                after=body.get("after"),
                places=tuple(body.get("places", ())),
                called=_called(body),
            )
        )
    except NOT_UNDERSTOOD as error:
        # It may hold records of attempts, and this is logged: the dead-letter queue has it whole.
        raise MalformedMessage(f"no message of this service, {len(text)} characters") from error


def encode_event(messages: Iterable[Message]) -> str:
    """The event of an asynchronous invocation. It has no `Records`, which events of SQS have."""
    return json.dumps({_EVENT_MEMBER: [encode(message) for message in messages]})


def texts_of_event(event: Mapping[str, object]) -> list[str] | None:
    """The encoded messages of an asynchronous invocation; None for any other event."""
    texts = event.get(_EVENT_MEMBER)
    return list(map(str, texts)) if isinstance(texts, list) else None


def _checked_release(message: ReleaseMessage) -> ReleaseMessage:
    if BIZ_TYPE.fullmatch(message.biz_type) is None:
        raise ValueError("no such business")
    if message.part is not None:
        _check_whole(message.part, PARKED_SLOTS - 1)
    return message


def _checked_direct(message: DirectMessage) -> DirectMessage:
    _check_whole(message.second, SECOND_MAX)
    for name in message.entries:
        address_named(name)
    return message


def _checked_page(message: PageMessage) -> PageMessage:
    _check_whole(message.second, SECOND_MAX)
    _check_whole(message.shard, SHARD_MAX)
    for place in message.places:
        address_from(message.shard, place)
    if not is_page(message.page) or not isinstance(message.after, str | None):
        raise ValueError("no such page")
    return message


def _called(body: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    called = tuple(body.get("called", ()))
    if not all(isinstance(text, str) for text in called):
        raise ValueError("no such records")
    return called


def _check_whole(number: object, largest: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= largest:
        raise ValueError("no such number")
