"""State that the calls of one page share, and the calls of one business in it."""

import asyncio

from msgspec import Struct, field

from duewheel.log import logger
from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.named_secrets import filled, names_in
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.tasks.task import Task
from duewheel.stores.businesses.signing_secrets import KeyUnavailable, SealedSecrets
from duewheel.workflows.delivery.hold import Hold
from duewheel.workflows.delivery.settle_batch import Settler
from duewheel.workflows.timers.check_occurrences import Firing

Secrets = tuple[bytes, ...]


class Delivery(Struct, frozen=True):
    """State that all calls of a page share."""

    deadline_ms: int
    settler: Settler
    hold: Hold | None

    @property
    def is_sure(self) -> bool:
        return self.hold is None or self.hold.is_sure

    async def is_sure_before(self, latest_ms: int) -> bool:
        return self.hold is None or await self.hold.is_sure_before(latest_ms)


class Run(Struct, frozen=True):
    """State that the calls of one business in a page share. `page`: its occurrences of timers.
    Tasks that are not called: `overtaken`, whose breaker opened while they waited; `paused` and
    `deleted`, whose business was meanwhile; `unbegun`, whose call could not begin. `asking`: one
    task at a time reads the settings again."""

    business: Business
    secrets: Secrets | None
    call_slots: asyncio.Semaphore
    delivery: Delivery
    page: Firing
    begun_ms: int
    asking: asyncio.Lock
    overtaken: list[Task] = field(default_factory=list)
    paused: list[Task] = field(default_factory=list)
    deleted: list[Task] = field(default_factory=list)
    unbegun: list[Task] = field(default_factory=list)


def secrets_of(business: Business, sealed_secrets: SealedSecrets) -> Secrets | None:
    """None if they cannot be opened: an unsigned call is not made."""
    try:
        return tuple(
            sealed_secrets.open(business.biz_type, secret.sealed)
            for secret in business.own.signing_secrets or ()
        )
    except KeyUnavailable as error:
        logger.error(
            "not opened", action="not-opened", biz_type=business.biz_type, error=str(error)
        )
        return None


def with_named_secrets(
    callback: HttpCallback, business: Business, sealed_secrets: SealedSecrets
) -> HttpCallback | Outcome:
    """With the secrets of the business to which its headers refer. Each process opens a secret
    once; without it the call is not made."""
    names = names_in(callback)
    try:
        values = {
            one.name: sealed_secrets.open(business.biz_type, one.sealed).decode()
            for one in business.own.secrets or ()
            if one.name in names
        }
    except KeyUnavailable as error:
        logger.error(
            "not opened", action="not-opened", biz_type=business.biz_type, error=str(error)
        )
        return Outcome(Verdict.RETRY, "cannot be filled in: the secrets do not open")
    return filled(callback, values)
