"""An API key in an answer. Only the answer that created it has its text."""

from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from duewheel.rules.access.api_keys import DAY_MS, PATTERN, ApiKey, ApiKeyId, State
from duewheel.rules.access.grants import Grant
from duewheel.rules.fields import Count, Cursor, Date, Instant, says
from duewheel.rules.instants import rfc3339, rfc3339_or_none

_Text = Annotated[
    str,
    Meta(
        description="Shown in this answer and in no other.",
        extra_json_schema={"pattern": f"^{PATTERN}$"},
    ),
]
_Until = Annotated[Instant, says("Until when the secret before the latest rotation is good.")]


class ApiKeyView(Struct, kw_only=True):
    key_id: ApiKeyId
    key: str | UnsetType = UNSET
    name: str
    grants: tuple[Grant, ...]
    state: State
    version: Count
    created_at: Instant
    created_by: str
    expires_at: Instant | None
    previous_until: _Until | None
    last_used_on: Date | None
    revoked_at: Instant | None


class IssuedApiKeyView(ApiKeyView, kw_only=True):
    key: _Text


class ApiKeysView(Struct):
    keys: list[ApiKeyView]
    cursor: Cursor


def api_key_view(key: ApiKey, now_ms: int, text: str | None = None) -> ApiKeyView:
    is_overlapping = key.previous_digest is not None and now_ms < key.previous_until_ms
    day = key.last_used_day
    view = ApiKeyView if text is None else partial(IssuedApiKeyView, key=text)
    return view(
        key_id=key.key_id,
        name=key.name,
        grants=key.grants,
        state=key.state(now_ms),
        version=key.version,
        created_at=rfc3339(key.created_ms),
        created_by=key.created_by,
        expires_at=rfc3339_or_none(key.expires_ms),
        previous_until=rfc3339(key.previous_until_ms) if is_overlapping else None,
        last_used_on=None if day is None else rfc3339(day * DAY_MS)[:10],
        revoked_at=rfc3339_or_none(key.revoked_ms),
    )
