"""API keys: list, create, rotate, revoke. Only the answer that created a secret has it.

A caller grants no more than it has, and changes no key that has more. A list shows the keys that
its reader could grant. A caller may have been admitted with a key that has ended since, or with a
secret from before a rotation. So a caller's own key is read again before it makes another.
"""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules import cursors
from duewheel.rules.access import api_keys
from duewheel.rules.access.api_keys import ApiKey, State, digest_of, id_text, key_text, secret_text
from duewheel.rules.access.change_records import key_revoked, key_rotated
from duewheel.rules.access.grants import ALL, ANYTHING, Access, Right, key_caller, key_id_of
from duewheel.rules.access.requests import NewApiKey, no_such_api_key
from duewheel.rules.history.changes import Change
from duewheel.rules.query_string import PageQuery
from duewheel.rules.refusals import ApiKeyEnded, NotPermitted, TooManyApiKeys, Unavailable
from duewheel.stores.access.api_key_changes import ApiKeyChanges
from duewheel.stores.access.api_keys import ApiKeyStore
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.workflows.tries import until_won

KEYS_MAX = 1_000
_READ_AT_ONCE = 100
# A random id is taken once in 10^18 times; a lost race shows that another writer was first.
_TRIES = 3

T = TypeVar("T")


class Issued(Struct, frozen=True):
    """A key with its text, which cannot be read again."""

    key: ApiKey
    text: str


class IssueKeys(Struct, frozen=True, kw_only=True):
    clock: Clock
    keys: ApiKeyStore
    changes: ApiKeyChanges
    random_number: Callable[[], int]  # below `ID_RANGE`
    random_bytes: Callable[[], bytes]  # a secret's

    def create(self, new: NewApiKey, by: Access) -> Issued:
        if not by.may_grant(new.grants):
            raise NotPermitted("Nobody grants more than they have as an admin.", "grants")
        self._check_good(by)
        # Admins of a part must not be able to block an admin of all businesses.
        if not by.may(Right.ADMIN, ALL) and self.keys.is_full(KEYS_MAX):
            raise TooManyApiKeys(f"There are {KEYS_MAX:,} already, ended ones included.")

        def try_once() -> Issued | None:
            secret = secret_text(self.random_bytes())
            key = ApiKey(
                key_id=id_text(self.random_number()),
                name=new.name,
                grants=new.grants,
                digest=digest_of(secret),
                created_ms=self.clock.now_ms(),
                created_by=by.caller,
                expires_ms=new.expires_ms,
            )
            with unavailable_when_throttled():
                is_stored = self.changes.create(key)
            return Issued(key, key_text(key.key_id, secret)) if is_stored else None

        return until_won(try_once, _TRIES, Unavailable("The key was not stored. Try it again."))

    def rotate(self, key_id: str, overlap_seconds: int, by: Access) -> Issued:
        secret = secret_text(self.random_bytes())

        def rotated(key: ApiKey, now_ms: int) -> ApiKey:
            _check_may_have_secret(key, by)
            if (state := key.state(now_ms)) is not State.LIVE:
                raise ApiKeyEnded(f"The key is {state}; make a new one.", "key_id")
            return api_keys.rotated(key, digest_of(secret), now_ms, overlap_seconds)

        return Issued(self._changed(key_id, rotated, key_rotated, by), key_text(key_id, secret))

    def revoke(self, key_id: str, by: Access) -> ApiKey:
        """Revoking twice is revoking once."""

        def revoked(key: ApiKey, now_ms: int) -> ApiKey:
            return key if key.revoked_ms is not None else api_keys.revoked(key, now_ms)

        return self._changed(key_id, revoked, key_revoked, by)

    def find(self, key_id: str, by: Access) -> ApiKey:
        """A key with more than `by` may grant is answered like an unknown one."""
        key = self.keys.read(key_id)
        if key is None or key.is_gone(self.clock.now_ms()) or not by.may_grant(key.grants):
            raise no_such_api_key()
        return key

    def _changed(
        self,
        key_id: str,
        alter: Callable[[ApiKey, int], ApiKey],
        change_record: Callable[[ApiKey, str, int], Change],
        by: Access,
    ) -> ApiKey:
        self._check_good(by)

        def try_once() -> ApiKey | None:
            before, now_ms = self.find(key_id, by), self.clock.now_ms()
            after = alter(before, now_ms)
            if after is before:
                return after
            record = change_record(after, by.caller, now_ms)
            with unavailable_when_throttled():
                return after if self.changes.change(before, after, record) else None

        lost = Unavailable("Too many requests change this key at once.")
        return until_won(try_once, _TRIES, lost)

    def _check_good(self, by: Access) -> None:
        key_id = key_id_of(by.caller)
        if key_id is None:
            return
        key = self.keys.read(key_id)
        is_live = key is not None and key.state(self.clock.now_ms()) is State.LIVE
        if key is None or not is_live or key.version != by.key_version:
            raise NotPermitted("The caller's own key has ended, or was changed a moment ago.")


def _check_may_have_secret(key: ApiKey, by: Access) -> None:
    """Only the key itself, or a caller with wider grants, may get a new secret. Otherwise one of
    two equal admins could act in the name of the other. A stack without access control has one
    caller."""
    if by.caller in (key_caller(key.key_id), ANYTHING.access.caller):
        return
    if not by.is_above(key.grants):
        raise NotPermitted(
            "A key that administers is rotated by itself, or by an admin of more. Revoke it, and "
            "make another.",
            "key_id",
        )


_QUESTION = ("api keys",)


class ApiKeyPage(Struct, frozen=True):
    keys: list[ApiKey]
    cursor: str | None


class ListKeys(Struct, frozen=True):
    clock: Clock
    keys: ApiKeyStore
    secret: bytes

    def __call__(self, query: PageQuery, by: Access) -> ApiKeyPage:
        after = cursors.opened(query.cursor, _QUESTION, self.secret)
        if not by.administers:
            return ApiKeyPage([], None)
        now_ms = self.clock.now_ms()
        found, last = _within_reach(
            self.keys.page,
            lambda key: by.may_grant(key.grants) and not key.is_gone(now_ms),
            lambda key: key.key_id,
            after,
            query.limit,
        )
        return ApiKeyPage(found, cursors.sealed(last, _QUESTION, self.secret))


def _within_reach(
    read: Callable[[str | None, int], tuple[list[T], str | None]],
    reaches: Callable[[T], bool],
    name_of: Callable[[T], str],
    after: str | None,
    limit: int,
) -> tuple[list[T], str | None]:
    """At most `limit` items, and the name of the last one if there are more. `read`: the items
    behind a position, and the position reached, or None at the end.

    Neither the number of items nor the cursor shows what was left out: the cursor, which its holder
    can read, names the last item shown, and there is one only if there is more to show."""
    shown: list[T] = []
    while True:
        found, after = read(after, _READ_AT_ONCE)
        shown += [one for one in found if reaches(one)]
        if len(shown) > limit or after is None:
            return shown[:limit], name_of(shown[limit - 1]) if len(shown) > limit else None
