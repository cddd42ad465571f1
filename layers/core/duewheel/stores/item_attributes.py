"""Reads of attributes that anyone with access to the table may have edited.

A value is of its kind and within its bounds, or the whole item is unreadable. Errors name the
attribute and never its value.
"""

import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Generic, TypeVar, final

from msgspec import Meta, Raw, Struct, ValidationError, convert, to_builtins
from msgspec.json import Decoder, encode

from duewheel.log import report_unreadable
from duewheel.rules.fields import whole_text
from duewheel.rules.labels import LABELS_MAX, NAME, VALUE_CHARACTERS_MAX, Labels
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.wheel.addresses import SECOND_MAX
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores.dynamodb import Item

INSTANT_MS_MAX = SECOND_MAX * 1000 + 999
TEXT_BYTES_MAX = 2_048
SOURCE_BYTES_MAX = 32_768  # of JSON: twice what a create can bring

InstantMs = Annotated[int, Meta(ge=0, le=INSTANT_MS_MAX)]
Text = Annotated[str, Meta(max_length=TEXT_BYTES_MAX)]
Source = Annotated[str, Meta(max_length=SOURCE_BYTES_MAX)]
_LabelName = Annotated[str, Meta(pattern=whole_text(NAME))]
_LabelValue = Annotated[str, Meta(min_length=1, max_length=VALUE_CHARACTERS_MAX)]
StoredLabels = Annotated[dict[_LabelName, _LabelValue], Meta(min_length=1, max_length=LABELS_MAX)]
_labels = Decoder(StoredLabels)

T = TypeVar("T")

_AT = re.compile(r" - at `\$\.(\w+)[^`]*`$")
_MISSING = re.compile(r"Object missing required field `(\w+)`$")
_json = Decoder()
_unread = Decoder(Raw)


@final
class S(Struct, Generic[T], frozen=True):
    """A text, as DynamoDB writes the value of an attribute."""

    S: T


@final
class N(Struct, Generic[T], frozen=True):
    """A number, which DynamoDB writes as a text."""

    N: T


class Flag(Struct, frozen=True):
    BOOL: bool


class InvalidAttribute(Exception):
    """The attribute is missing, or holds what this service does not write."""

    def __init__(self, attribute: str) -> None:
        super().__init__(attribute)
        self.attribute = attribute


def reads_an_item(read: Callable[[Item], T]) -> Callable[[Item], T]:
    """A reader raises UnreadableItem for an item that it does not understand."""

    @wraps(read)
    def reader(item: Item) -> T:
        try:
            return read(item)
        except InvalidAttribute as error:
            raise unreadable(item, error.attribute) from error

    return reader


def unreadable(item: Item, wrong: str) -> UnreadableItem:
    return UnreadableItem(item["slot"]["S"], item["place"]["S"], wrong)


def reported(record: Item, wrong: str) -> UnreadableItem:
    """A record of the Registry that is not understood; the log says so."""
    damaged = UnreadableItem(record["kind"]["S"], record["record"]["S"], wrong)
    report_unreadable(damaged)
    return damaged


def readable(items: list[Item], read: Callable[[Item], T]) -> tuple[list[T], list[UnreadableItem]]:
    """The items that are readable, in order, and those that are not."""
    found: list[T] = []
    damaged: list[UnreadableItem] = []
    for item in items:
        try:
            found.append(read(item))
        except UnreadableItem as one:
            damaged.append(one)
    return found, damaged


def readable_ones(items: list[Item], read: Callable[[Item], T]) -> list[T]:
    """The items that are readable; the others are reported."""
    found, damaged = readable(items, read)
    for one in damaged:
        report_unreadable(one)
    return found


def attributes(item: Item, kind: type[T]) -> T:
    """A Struct whose fields are the attributes that it knows."""
    try:
        return convert(item, kind, strict=False)  # numbers are texts
    except ValidationError as error:
        said = str(error)
        found = _AT.search(said) or _MISSING.match(said)
        raise InvalidAttribute(found[1] if found else "") from None


def text(item: Item, name: str, bytes_max: int = TEXT_BYTES_MAX) -> str:
    value = item.get(name, {}).get("S")
    if not isinstance(value, str) or len(value.encode()) > bytes_max:
        raise InvalidAttribute(name)
    return value


def number(item: Item, name: str, largest: int = INSTANT_MS_MAX) -> int:
    """A whole number from 0."""
    return built(item, name, lambda: integer(int(item[name]["N"]), largest))


def decoded(name: str, source: S[str] | None, decode: Callable[[str], T]) -> T | None:
    """What this attribute says in JSON."""
    if source is None:
        return None
    try:
        return decode(source.S)
    except NOT_UNDERSTOOD as error:
        raise InvalidAttribute(name) from error


def parsed(
    item: Item, name: str, build: Callable[[Any], T], bytes_max: int = SOURCE_BYTES_MAX
) -> T:
    """What `build` makes of the JSON in this attribute."""
    source = text(item, name, bytes_max)
    return built(item, name, lambda: build(_json.decode(source)))


def built(item: Item, name: str, build: Callable[[], T]) -> T:
    try:
        return build()
    except NOT_UNDERSTOOD as error:
        raise InvalidAttribute(name) from error


# Values within: each raises ValueError for what is none of its kind.


def integer(value: Any, largest: int = INSTANT_MS_MAX, smallest: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
        raise ValueError("no such whole number")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


def string(value: Any) -> str:
    """A text that can be written again: half a surrogate pair cannot."""
    if not isinstance(value, str):
        raise ValueError("no text")
    value.encode()
    return value


def json_text(value: Any) -> str:
    """A record of the Registry in ASCII, always the same for the same value: conditions compare
    it."""
    return json.dumps(to_builtins(value), separators=(",", ":"))


def is_json(text: str) -> bool:
    """Whether the text is one JSON value. As in a request, a number may be larger than any that can
    be read. A value that is nested too deeply to parse on this thread counts as one: it was checked
    when it was stored."""
    try:
        _unread.decode(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


# Labels: an attribute of JSON text, absent without labels.


def labels_attribute(labels: Labels) -> dict[str, Any]:
    return {"labels": {"S": encode(dict(labels)).decode()}} if labels else {}


def labels_of_text(source: str) -> Labels:
    """Raises one of `NOT_UNDERSTOOD` for a text that is never written here."""
    return tuple(sorted(_labels.decode(source).items()))
