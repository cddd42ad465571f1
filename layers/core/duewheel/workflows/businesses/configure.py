"""Configure, pause and resume a business: read it, change it, write it if it is unchanged.

New secrets are put before the record that names them, and replaced ones deleted after it.

Before a pause begins or ends, a record says that tasks of this business or flow key may be parked.
When it has ended, two messages start their release: one at once, and one when the pause is in no
process's cache any more.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.businesses.settings import Business, SigningSecret, changed
from duewheel.rules.callbacks.secret_headers import NamedSecret
from duewheel.rules.callbacks.signature import hint_of, secret_from
from duewheel.rules.names import parts_of, scope_of
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import Unavailable
from duewheel.rules.wheel.queue_messages import ReleaseMessage
from duewheel.rules.wheel.timing import SKEW_MS
from duewheel.stores.businesses.cache import KEPT_MS, BusinessCache
from duewheel.stores.businesses.parking_state import ParkingRecords
from duewheel.stores.businesses.secret_store import NewSecrets, SecretStore, SecretUnavailable
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.workflows.tries import until_won
from duewheel.workflows.wheel.send_messages import MessageSender

FORGOTTEN_AFTER_SECONDS = -(-(KEPT_MS + SKEW_MS) // 1000) + 1


class Pausing(Struct, frozen=True):
    records: ParkingRecords
    message_sender: MessageSender
    random_text: Callable[[], str]

    def announce(self, before: Business, after: Business | None) -> None:
        """`after` None: the business is deleted."""
        biz_type = before.biz_type
        scopes = [scope_of(biz_type, key) for key in sorted(_paused(before) ^ _paused(after))]
        if before.paused or (after is not None and after.paused):
            scopes.append(biz_type)
        with unavailable_when_throttled():
            for scope in scopes:
                self.records.mark(scope, self.random_text())

    def release_resumed(self, before: Business, after: Business | None) -> None:
        if before.paused and (after is None or not after.paused):
            self.request_release(before.biz_type)
        for flow_key in sorted(_paused(before) - _paused(after)):
            self.request_release(before.biz_type, flow_key)

    def release_all(self, businesses: BusinessStore) -> None:
        """Send a release for each business and flow key that is not paused, so that nothing stays
        parked. The sweeper does so every minute, in case a message was refused or lost, its run
        crashed, or the business of a resumed key was still paused. A business with a damaged record
        may be paused: it is left out."""
        scopes = [parts_of(scope) for scope in self.records.scopes()]
        read = businesses.read_many(dict.fromkeys(biz_type for biz_type, _ in scopes))
        self.message_sender.send(
            ReleaseMessage(biz_type, flow_key=flow_key)
            for biz_type, flow_key in scopes
            if not (read[biz_type].paused or read[biz_type].damaged)
            and not read[biz_type].pauses(flow_key)
        )

    def request_release(self, biz_type: str, flow_key: str | None = None) -> None:
        """If both links refuse, the sweeper sends the messages."""
        release = [ReleaseMessage(biz_type, flow_key=flow_key)]
        self.message_sender.send(release)
        self.message_sender.send(release, lambda _: FORGOTTEN_AFTER_SECONDS)


def _paused(business: Business | None) -> set[str]:
    return set() if business is None else set(business.paused_flow_keys)


# A lost race shows that another writer was first; after a few in a row the call is refused.
_TRIES = 5


class ConfigureBusiness(Struct, frozen=True, kw_only=True):
    clock: Clock
    store: BusinessStore
    known: BusinessCache
    secret_store: SecretStore
    pausing: Pausing

    def __call__(
        self, biz_type: str, change: Mapping[str, Any], precondition: Precondition, *, by: str
    ) -> Business:
        """It has version 1 if this call created it."""
        new = self.secret_store.new(biz_type)
        with _unavailable_when_not_stored():
            change = _with_stored_secrets(change, new)

        def try_once() -> Business | None:
            before = self.store.read_whole(biz_type)
            precondition.check("business", before.version)
            after = changed(before, change, self.clock.now_ms())
            self.pausing.announce(before, after)
            with _unavailable_when_not_stored():
                new.write()
            with unavailable_when_throttled():
                is_written = self.store.write(before, after, by)
            if not is_written:
                return None
            self.known.forget(biz_type)
            delete_secrets(self.secret_store, before, after)
            self.pausing.release_resumed(before, after)
            return after

        lost = Unavailable("Too many requests change this business at once.")
        return until_won(try_once, _TRIES, lost)

    def pause(
        self, biz_type: str, precondition: Precondition, *, paused: bool, by: str
    ) -> Business:
        """Pause it, or resume it. If it is already in this state nothing is written: its version
        stays, and with it the reserved turns of its calls."""
        business = self.store.read_whole(biz_type)
        if not business.version or business.paused != paused:
            return self(biz_type, {"paused": paused or None}, precondition, by=by)
        precondition.check("business", business.version)
        if not paused:
            self.pausing.request_release(biz_type)
        return business


def delete_secrets(store: SecretStore, before: Business, after: Business | None = None) -> None:
    """Those that the current record does not name. If it fails, they stay, and nothing names
    them."""
    named = after.own.secret_ids if after else frozenset()
    try:
        store.delete(before.biz_type, before.own.secret_ids - named)
    except SecretUnavailable as error:
        logger.warning("secrets not deleted", action="not-deleted", error=str(error))


@contextmanager
def _unavailable_when_not_stored() -> Iterator[None]:
    try:
        yield
    except SecretUnavailable as error:
        logger.error("secrets not stored", action="not-stored", error=str(error))
        raise Unavailable("The secrets cannot be stored now. Try it again.") from error


def _with_stored_secrets(change: Mapping[str, Any], new: NewSecrets) -> Mapping[str, Any]:
    signing, named = change.get("signing_secrets"), change.get("secrets")
    stored: dict[str, Any] = {}
    if signing is not None:
        stored["signing_secrets"] = tuple(
            SigningSecret(hint_of(text), new.add(secret_from(text))) for text in signing
        )
    if named is not None:
        stored["secrets"] = {
            name: None if text is None else NamedSecret(name, new.add(text.encode()))
            for name, text in named.items()
        }
    return {**change, **stored}
