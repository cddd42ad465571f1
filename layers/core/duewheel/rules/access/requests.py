"""The bodies and query strings of calls on API keys."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from duewheel.rules.access.api_keys import is_key_id
from duewheel.rules.access.grants import ALL, BUSINESSES, Grant, Right
from duewheel.rules.fields import Instant, RequestBody, decode, instant_ms, invalid, whole_text
from duewheel.rules.names import AHEAD_DAYS_MAX, name_of, printable_name
from duewheel.rules.refusals import UnknownApiKey

NAME_CHARACTERS_MAX = 100
GRANTS_MAX = 20
OVERLAP_SECONDS_DEFAULT = 86_400
OVERLAP_SECONDS_MAX = 7 * 86_400


class NewApiKey(Struct, frozen=True):
    name: str
    grants: tuple[Grant, ...]
    expires_ms: int | None = None


# The key that creates the others: without one, no caller with a key could create a key.
FIRST_ADMIN = NewApiKey("first admin", (Grant(Right.ADMIN, ALL),))


class GrantBody(RequestBody):
    right: Right
    businesses: Annotated[
        str,
        Meta(
            pattern=whole_text(BUSINESSES),
            description="a business's name, the beginning of names and a *, or * alone",
        ),
    ]


class NewApiKeyBody(RequestBody):
    name: Annotated[str, name_of(NAME_CHARACTERS_MAX)]
    grants: Annotated[tuple[GrantBody, ...], Meta(min_length=1, max_length=GRANTS_MAX)]
    expires_at: Instant | UnsetType = UNSET


class ApiKeyRotationBody(RequestBody):
    """`overlap_seconds`: for how long the secret before it stays valid."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=OVERLAP_SECONDS_MAX)] = OVERLAP_SECONDS_DEFAULT


def new_api_key(body: str, now_ms: int) -> NewApiKey:
    read = decode(body, NewApiKeyBody)
    name = printable_name(read.name, NAME_CHARACTERS_MAX, "name")
    grants = dict.fromkeys(Grant(one.right, one.businesses) for one in read.grants)
    return NewApiKey(name, tuple(grants), _expires_ms(read.expires_at, now_ms))


def overlap_seconds(body: str | None) -> int:
    """Of a rotation, whose body may be left out."""
    return decode(body or "{}", ApiKeyRotationBody).overlap_seconds


def checked_key_id(text: str) -> str:
    """A malformed id gets the same answer as an unknown one."""
    if not is_key_id(text):
        raise no_such_api_key()
    return text


def no_such_api_key() -> UnknownApiKey:
    return UnknownApiKey("There is no API key with this id.", "key_id")


def _expires_ms(text: str | UnsetType, now_ms: int) -> int | None:
    if isinstance(text, UnsetType):
        return None
    expires_ms = instant_ms(text, "expires_at")
    if not now_ms < expires_ms <= now_ms + AHEAD_DAYS_MAX * 86_400_000:
        raise invalid("expires_at", "must be in the future, up to ten years ahead.")
    return expires_ms
