"""The secrets of a business that its calls need. A call whose secrets do not open is not made.

A replaced secret is deleted at once, and a cache may have the settings that name it: if a secret is
gone, the settings are read anew.
"""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.secret_headers import filled, names_in
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.refusals import UnreadableItem
from duewheel.stores.businesses.secret_store import SecretGone, SecretStore, SecretUnavailable
from duewheel.stores.businesses.settings import BusinessStore

T = TypeVar("T")


class CallSecrets(Struct, frozen=True):
    """Each process opens a secret once."""

    secret_store: SecretStore
    businesses: BusinessStore

    def signing(self, business: Business) -> tuple[bytes, ...] | None:
        """None if they cannot be opened."""
        return self._opened(business, self._signing)

    def filled(self, callback: HttpCallback, business: Business) -> HttpCallback | Outcome:
        """With the named secrets to which its headers refer."""
        names = names_in(callback)
        values = self._opened(business, lambda current: self._named(current, names))
        if values is None or not names <= values.keys():
            return Outcome(Verdict.RETRY, "cannot be filled in: the secrets do not open")
        return filled(callback, values)

    def _signing(self, business: Business) -> tuple[bytes, ...]:
        return tuple(
            self.secret_store.open(business.biz_type, secret.secret_id)
            for secret in business.own.signing_secrets or ()
        )

    def _named(self, business: Business, names: frozenset[str]) -> dict[str, str]:
        return {
            one.name: self.secret_store.open(business.biz_type, one.secret_id).decode()
            for one in business.own.secrets or ()
            if one.name in names
        }

    def _opened(self, business: Business, read: Callable[[Business], T]) -> T | None:
        """None if they cannot be opened; the log says so."""
        try:
            try:
                return read(business)
            except SecretGone:
                return read(self.businesses.read_whole(business.biz_type))
        except (SecretUnavailable, UnreadableItem) as error:
            logger.error(
                "not opened", action="not-opened", biz_type=business.biz_type, error=str(error)
            )
            return None
