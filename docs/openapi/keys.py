"""The calls on API keys."""

import re

from docs.openapi.operation import CURSOR, Kind, Operation, limit
from docs.openapi.schemas import (
    COUNT,
    DATE,
    INSTANT,
    TEXT,
    Schema,
    body,
    described,
    matching,
    nullable,
    one_of,
    page,
    ref,
    shown,
    some,
    text,
    whole,
)
from duewheel.rules.access import api_keys, grants
from duewheel.rules.access.api_keys import State
from duewheel.rules.access.grants import Right
from duewheel.rules.access.requests import (
    GRANTS_MAX,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    NAME_CHARACTERS_MAX,
    OVERLAP_SECONDS_DEFAULT,
    OVERLAP_SECONDS_MAX,
)
from duewheel.rules.names import BIZ_TYPE
from duewheel.rules.refusals import ApiKeyEnded, TooManyApiKeys, UnknownApiKey

_RIGHT = one_of(Right)
_SHOWN: dict[str, Schema] = {
    "key_id": ref("ApiKeyId"),
    "name": TEXT,
    "grants": some(shown({"right": _RIGHT, "businesses": TEXT})),
    "state": one_of(State),
    "version": COUNT,
    "created_at": INSTANT,
    "created_by": TEXT,
    "expires_at": nullable(INSTANT),
    "previous_until": nullable(
        described(INSTANT, "Until when the secret before the latest rotation is good.")
    ),
    "last_used_on": nullable(DATE),
    "revoked_at": nullable(INSTANT),
}

_SCHEMAS: dict[str, Schema] = {
    "ApiKeyId": matching(api_keys._ID),
    "Grant": body(
        {
            "right": _RIGHT,
            "businesses": {
                "type": "string",
                "pattern": f"^(?:{BIZ_TYPE.pattern}|{grants._NAME_BEGINNING.pattern})$",
                "description": "One by its name, the beginning of names and a `*`, or `*`.",
            },
        },
        ("right", "businesses"),
    ),
    "NewApiKey": body(
        {
            "name": described(text(1, NAME_CHARACTERS_MAX), "Printable, no blank first or last."),
            "grants": some(ref("Grant"), 1, GRANTS_MAX),
            "expires_at": INSTANT,
        },
        ("name", "grants"),
    ),
    "ApiKeyRotation": body(
        {"overlap_seconds": whole(0, OVERLAP_SECONDS_MAX, default=OVERLAP_SECONDS_DEFAULT)}
    ),
    "ApiKey": shown(_SHOWN),
    "IssuedApiKey": shown(
        {
            "key_id": ref("ApiKeyId"),
            "key": described(
                matching(re.compile(api_keys.PATTERN)), "Shown in this answer and in no other."
            ),
            **_SHOWN,
        }
    ),
    "ApiKeys": page("keys", ref("ApiKey")),
}

_KEY = {200: ref("ApiKey")}
_ITS = "/v1/keys/{key_id}"
_UNKNOWN = (UnknownApiKey,)

KEYS = Kind(
    "keys",
    "API keys, and what is granted to whoever brings one.",
    {
        ("POST", "/v1/keys"): Operation(
            "create_key",
            {201: ref("IssuedApiKey")},
            body=ref("NewApiKey"),
            refusals=(TooManyApiKeys,),
            headers=("Location",),
        ),
        ("GET", "/v1/keys"): Operation(
            "list_keys",
            {200: ref("ApiKeys")},
            parameters=(CURSOR, limit(LIMIT_DEFAULT, LIMIT_MAX)),
        ),
        ("GET", _ITS): Operation("read_key", _KEY, refusals=_UNKNOWN),
        ("POST", f"{_ITS}/rotate"): Operation(
            "rotate_key",
            {200: ref("IssuedApiKey")},
            body=ref("ApiKeyRotation"),
            body_required=False,
            refusals=(UnknownApiKey, ApiKeyEnded),
        ),
        ("DELETE", _ITS): Operation("revoke_key", _KEY, refusals=_UNKNOWN),
        ("GET", f"{_ITS}/changes"): Operation(
            "list_key_changes", {200: ref("Changes")}, refusals=_UNKNOWN
        ),
    },
    _SCHEMAS,
)
