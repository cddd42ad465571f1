"""The bodies and query strings of calls on API keys."""

from msgspec import Struct

from duewheel.rules.access.api_keys import is_key_id
from duewheel.rules.access.grants import ALL, Grant, Right, are_businesses
from duewheel.rules.fields import Fields, invalid
from duewheel.rules.instants import NoInstant, ms_from_rfc3339
from duewheel.rules.names import AHEAD_DAYS_MAX
from duewheel.rules.query_string import Parameters
from duewheel.rules.refusals import UnknownApiKey

NAME_CHARACTERS_MAX = 100
GRANTS_MAX = 20
OVERLAP_SECONDS_DEFAULT = 86_400
OVERLAP_SECONDS_MAX = 7 * 86_400
LIMIT_DEFAULT = 50
LIMIT_MAX = 100


class NewApiKey(Struct, frozen=True):
    name: str
    grants: tuple[Grant, ...]
    expires_ms: int | None = None


# The key that makes others; a caller that has only a key could not make it.
FIRST_ADMIN = NewApiKey("first admin", (Grant(Right.ADMIN, ALL),))


class ApiKeysRequest(Struct, frozen=True):
    cursor: str | None
    limit: int


def new_api_key(body: str, now_ms: int) -> NewApiKey:
    fields = Fields.of(body)
    fields.refuse_unknown(("name", "grants", "expires_at"))
    name = fields.text("name")
    if not 1 <= len(name) <= NAME_CHARACTERS_MAX or not name.isprintable() or name != name.strip():
        raise fields.invalid(
            "name",
            f"must be 1 to {NAME_CHARACTERS_MAX} printable characters, no blank first or last.",
        )
    expires_ms = _expires_ms(fields, now_ms) if "expires_at" in fields else None
    return NewApiKey(name, _grants(fields), expires_ms)


def overlap_seconds(body: str | None) -> int:
    """Of a rotation, whose body may be left out."""
    fields = Fields.of(body or "{}")
    fields.refuse_unknown(("overlap_seconds",))
    if "overlap_seconds" not in fields:
        return OVERLAP_SECONDS_DEFAULT
    return fields.whole_number("overlap_seconds", 0, OVERLAP_SECONDS_MAX)


def api_keys_request(query_string: str) -> ApiKeysRequest:
    parameters = Parameters.of(query_string, ("cursor", "limit"))
    limit = parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT
    return ApiKeysRequest(parameters.text("cursor"), limit)


def checked_key_id(text: str) -> str:
    """A malformed id is answered as an unknown one."""
    if not is_key_id(text):
        raise no_such_api_key()
    return text


def no_such_api_key() -> UnknownApiKey:
    return UnknownApiKey("There is no API key with this id.", "key_id")


def _grants(fields: Fields) -> tuple[Grant, ...]:
    elements = fields.elements("grants", GRANTS_MAX)
    if not 1 <= len(elements) <= GRANTS_MAX:
        raise fields.invalid("grants", f"must have from 1 to {GRANTS_MAX} elements.")
    grants = []
    for index, element in enumerate(elements):
        where = f"{fields.where('grants')}[{index}]"
        if not element.is_object:
            raise invalid(where, "must be an object.")
        grants.append(_grant(Fields.of(element.text, where)))
    return tuple(dict.fromkeys(grants))


def _grant(fields: Fields) -> Grant:
    fields.refuse_unknown(("right", "businesses"))
    right, businesses = fields.text("right"), fields.text("businesses")
    if right not in [one.value for one in Right]:
        raise fields.invalid("right", f"must be one of {', '.join(Right)}.")
    if not are_businesses(businesses):
        raise fields.invalid(
            "businesses", "must be a business's name, the beginning of names and a *, or * alone."
        )
    return Grant(Right(right), businesses)


def _expires_ms(fields: Fields, now_ms: int) -> int:
    try:
        expires_ms = ms_from_rfc3339(fields.text("expires_at"))
    except NoInstant as error:
        raise fields.invalid("expires_at", f"{error}.") from error
    if not now_ms < expires_ms <= now_ms + AHEAD_DAYS_MAX * 86_400_000:
        raise fields.invalid("expires_at", "must be in the future, up to ten years ahead.")
    return expires_ms
