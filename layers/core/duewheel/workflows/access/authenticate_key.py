"""Authenticate the API key of a request.

For a key that is unknown, ended or has a wrong secret, reads and answer are the same. A text with a
wrong checksum is refused without a read.
"""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.access.api_keys import DAY_MS, ApiKey, brought_by, opens
from duewheel.rules.refusals import UnreadableItem
from duewheel.stores.access.api_keys import ApiKeyStore


class AuthenticateKey(Struct, frozen=True):
    clock: Clock
    keys: ApiKeyStore

    def __call__(self, authorization: str) -> ApiKey | None:
        """`authorization`: the header's value, scheme and all."""
        brought = brought_by(authorization)
        if brought is None:
            return None
        try:
            key = self.keys.read(brought.key_id)
        except UnreadableItem:
            return None
        now_ms = self.clock.now_ms()
        if not opens(brought.secret, key, now_ms) or key is None:
            return None
        today = now_ms // DAY_MS
        if key.last_used_day is None or key.last_used_day < today:
            self.keys.mark_used(key.key_id, today)
        return key
