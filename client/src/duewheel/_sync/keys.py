# Made of _async/keys.py by make_sync.py; change that.
"""API keys, and the grants of their callers."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from duewheel._sync.transport import Transport
from duewheel.calls import ALWAYS, changing, part, reading
from duewheel.instants import Seconds, plain
from duewheel.values import ApiKey, Change, Grant, read_changes


class Keys:
    """The key's text is shown once, by `create` and `rotate`: keep it then. If that answer is lost
    (`OutcomeUnknown`), the text is lost, too: revoke the key or rotate it again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self, name: str, grants: Iterable[Grant], *, expires_at: datetime | None = None
    ) -> ApiKey:
        granted = [{"right": each.right, "businesses": each.businesses} for each in grants]
        body: dict[str, Any] = {"name": name, "grants": granted}
        if expires_at is not None:
            body["expires_at"] = plain(expires_at)
        return ApiKey.read(self._transport.send(changing("POST", "/v1/keys", body)))

    def list(self, *, page_size: int = 100) -> Iterator[ApiKey]:
        for page in self._transport.pages("/v1/keys", {"limit": page_size}):
            for key in page["keys"]:
                yield ApiKey.read(key)

    def get(self, key_id: str) -> ApiKey:
        return ApiKey.read(self._transport.send(reading(_path(key_id))))

    def rotate(self, key_id: str, *, overlap: Seconds | None = None) -> ApiKey:
        """Make a new secret under the same id. The old one stays valid for `overlap`, a day by
        default."""
        body = {} if overlap is None else {"overlap_seconds": plain(overlap)}
        return ApiKey.read(self._transport.send(changing("POST", _path(key_id, "/rotate"), body)))

    def revoke(self, key_id: str) -> ApiKey:
        """End a key for good. Requests with it may still be accepted for a minute."""
        call = changing("DELETE", _path(key_id), repeatable_seconds=ALWAYS)
        return ApiKey.read(self._transport.send(call))

    def changes(self, key_id: str) -> tuple[Change, ...]:
        """The last ten changes, the latest first: who made, rotated and revoked it."""
        answer = self._transport.send(reading(_path(key_id, "/changes")))
        return read_changes(answer)


def _path(key_id: str, below: str = "") -> str:
    return f"/v1/keys/{part(key_id)}{below}"
