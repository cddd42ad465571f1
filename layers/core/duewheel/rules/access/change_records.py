"""The record of a change of an API key. It holds nothing of a secret, not even its hash."""

from duewheel.rules.access.api_keys import ApiKey
from duewheel.rules.access.grants import grants_text
from duewheel.rules.history.changes import Change, ChangeAction, Subject, differences
from duewheel.rules.instants import rfc3339

API_KEY = "api-key"


def key_named(key: ApiKey) -> Subject:
    return Subject(API_KEY, key.key_id, owner=key.key_id, gone_ms=key.gone_ms)


def key_created(key: ApiKey) -> Change:
    settings = {
        "name": key.name,
        "grants": grants_text(key.grants),
        "expires_at": None if key.expires_ms is None else rfc3339(key.expires_ms),
    }
    found = differences({}, settings)
    return Change(
        version=key.version,
        at_ms=key.created_ms,
        by=key.created_by,
        did=ChangeAction.CREATED,
        differences=found,
    )


def key_rotated(key: ApiKey, by: str, now_ms: int) -> Change:
    return Change(version=key.version, at_ms=now_ms, by=by, did=ChangeAction.ROTATED)


def key_revoked(key: ApiKey, by: str, now_ms: int) -> Change:
    return Change(version=key.version, at_ms=now_ms, by=by, did=ChangeAction.REVOKED)
