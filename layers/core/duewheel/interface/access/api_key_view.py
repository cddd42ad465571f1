"""An API key in an answer; its text only in the one that made it."""

from duewheel.rules.access.api_keys import DAY_MS, ApiKey
from duewheel.rules.instants import rfc3339


def api_key_view(key: ApiKey, now_ms: int, text: str | None = None) -> dict[str, object]:
    is_overlapping = key.previous_digest is not None and now_ms < key.previous_until_ms
    return {
        "key_id": key.key_id,
        **({} if text is None else {"key": text}),
        "name": key.name,
        "grants": [{"right": grant.right, "businesses": grant.businesses} for grant in key.grants],
        "state": key.state(now_ms),
        "version": key.version,
        "created_at": rfc3339(key.created_ms),
        "created_by": key.created_by,
        "expires_at": _instant(key.expires_ms),
        "previous_until": rfc3339(key.previous_until_ms) if is_overlapping else None,
        "last_used_on": _day(key.last_used_day),
        "revoked_at": _instant(key.revoked_ms),
    }


def _instant(instant_ms: int | None) -> str | None:
    return None if instant_ms is None else rfc3339(instant_ms)


def _day(day: int | None) -> str | None:
    return None if day is None else rfc3339(day * DAY_MS)[:10]
