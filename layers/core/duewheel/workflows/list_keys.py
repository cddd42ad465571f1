"""List API keys: those that the reader could grant, in pages, by their ids."""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules import cursors
from duewheel.rules.access import Access
from duewheel.rules.api_key_request import ApiKeysRequest
from duewheel.rules.api_keys import ApiKey
from duewheel.stores.api_keys import ApiKeyStore
from duewheel.workflows.within_reach import within_reach

_QUESTION = ("api keys",)


class ApiKeyPage(Struct, frozen=True):
    keys: list[ApiKey]
    cursor: str | None


class ListKeys(Struct, frozen=True):
    clock: Clock
    keys: ApiKeyStore
    secret: bytes

    def __call__(self, asked: ApiKeysRequest, by: Access) -> ApiKeyPage:
        after = None
        if asked.cursor is not None:
            after = cursors.opened(asked.cursor, _QUESTION, self.secret)
        if not by.administers:
            return ApiKeyPage([], None)
        now_ms = self.clock.now_ms()
        found, goes_on = within_reach(
            self.keys.page,
            lambda key: by.may_grant(key.grants) and not key.is_gone(now_ms),
            after,
            asked.limit,
        )
        cursor = cursors.sealed(found[-1].key_id, _QUESTION, self.secret) if goes_on else None
        return ApiKeyPage(found, cursor)
