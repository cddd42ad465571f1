"""The secrets of a business that its calls need. A call whose secrets do not open is not made."""

from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.secret_headers import filled, names_in
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.stores.businesses.signing_secrets import KeyUnavailable, SealedSecrets


class CallSecrets(Struct, frozen=True):
    """Each process opens a secret once."""

    sealed_secrets: SealedSecrets

    def signing(self, business: Business) -> tuple[bytes, ...] | None:
        """None if they cannot be opened."""
        try:
            return tuple(
                self.sealed_secrets.open(business.biz_type, secret.sealed)
                for secret in business.own.signing_secrets or ()
            )
        except KeyUnavailable as error:
            _log(business, error)
            return None

    def filled(self, callback: HttpCallback, business: Business) -> HttpCallback | Outcome:
        """With the named secrets to which its headers refer."""
        names = names_in(callback)
        try:
            values = {
                one.name: self.sealed_secrets.open(business.biz_type, one.sealed).decode()
                for one in business.own.secrets or ()
                if one.name in names
            }
        except KeyUnavailable as error:
            _log(business, error)
            return Outcome(Verdict.RETRY, "cannot be filled in: the secrets do not open")
        return filled(callback, values)


def _log(business: Business, error: KeyUnavailable) -> None:
    logger.error("not opened", action="not-opened", biz_type=business.biz_type, error=str(error))
