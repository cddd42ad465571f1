"""Messages to the notifier: by a queue, or by asynchronous invocation."""

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field, to_builtins
from msgspec.json import Decoder

from duewheel.rules.names import BizType, FlowKey, scope_of
from duewheel.rules.wheel.addresses import (
    PARKED_SLOTS,
    SHARD_MAX,
    SHARDS_MAX,
    Second,
    address_from,
    address_named,
    first_page,
    is_page,
    is_slow_page,
)

MESSAGES_PER_RUN = 10  # by asynchronous invocation, where each run is a request of the sender
_EVENT_MEMBER = "messages"
# Errors that can occur when JSON of another shape is read as a message.
NOT_UNDERSTOOD = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class Lane(StrEnum):
    """Each has a queue and notifiers of its own: `SLOW` for those whose calls hold pages up."""

    MAIN = "main"
    SLOW = "slow"


class PageMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """Deliver one page of a slice: the entries after `after`, or just `places` that were passed on.
    `called`: records of those among them that were delivered, and only have to be settled.
    `shards`: the sender sends the messages of so many shards of the second, this one if not said;
    the run that delivers the first page of shard 0 sends those of the others."""

    second: Second
    shard: Annotated[int, Meta(ge=0, le=SHARD_MAX)]
    page: str = first_page()
    after: str | None = None
    places: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    shards: Annotated[int, Meta(ge=1, le=SHARDS_MAX)] | None = None

    @property
    def lane(self) -> Lane:
        return Lane.SLOW if is_slow_page(self.page) else Lane.MAIN


class DirectMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """Deliver these entries (by name, all of one second), which no read of a slice will see."""

    second: Second
    entries: tuple[str, ...]
    called: tuple[str, ...] = ()

    @property
    def lane(self) -> Lane:
        """Entries of slow businesses become a page of the slow lane there."""
        return Lane.MAIN


class ReleaseMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """Release the parked tasks of this business, or of this flow key; `part`: in one of its slots
    only."""

    biz_type: BizType = field(name="release")
    part: Annotated[int, Meta(ge=0, le=PARKED_SLOTS - 1)] | None = None
    flow_key: FlowKey | None = None

    @property
    def scope(self) -> str:
        return scope_of(self.biz_type, self.flow_key)

    @property
    def lane(self) -> Lane:
        return Lane.MAIN


Message = PageMessage | DirectMessage | ReleaseMessage


class MalformedMessage(Exception):
    """Not a message of this service; it ends in the dead-letter queue."""


class _Head(Struct):
    """Identifies a message."""

    release: Raw | UnsetType = UNSET
    entries: Raw | UnsetType = UNSET
    page: Raw | UnsetType = UNSET


_head, _page, _direct = Decoder(_Head), Decoder(PageMessage), Decoder(DirectMessage)
_release = Decoder(ReleaseMessage)


def encode(message: Message) -> str:
    body = {
        name: value
        for name, value in to_builtins(message).items()
        if name == "entries" or value not in (None, ())
    }
    return json.dumps(body, separators=(",", ":"))  # ASCII: SQS refuses some characters


def decode(text: str) -> Message:
    """Strict: a message that this service would not have sent is not carried out."""
    try:
        return _decoded(text)
    except NOT_UNDERSTOOD:
        # The reason is logged, and the message may contain records of attempts, so it is not
        # quoted. The dead-letter queue has the whole message.
        said = f"no message of this service, {len(text)} characters"
        raise MalformedMessage(said) from None


def _decoded(text: str) -> Message:
    head = _head.decode(text)
    if head.release is not UNSET:
        return _release.decode(text)
    if head.entries is not UNSET:
        direct = _direct.decode(text)
        for name in direct.entries:
            address_named(name)
        return direct
    page = _page.decode(text)
    for place in page.places:
        address_from(page.shard, place)
    if head.page is UNSET or not is_page(page.page):
        raise ValueError("no such page")
    return page


def encode_event(messages: Iterable[Message]) -> str:
    """The event of an asynchronous invocation. It has no `Records`, which events of SQS have."""
    return json.dumps({_EVENT_MEMBER: [encode(message) for message in messages]})


def texts_of_event(event: Mapping[str, object]) -> list[str] | None:
    """The encoded messages of an asynchronous invocation; None for any other event."""
    texts = event.get(_EVENT_MEMBER)
    return list(map(str, texts)) if isinstance(texts, list) else None
