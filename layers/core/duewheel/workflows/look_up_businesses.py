"""Read businesses: one by its name, or all of them in pages."""

from dataclasses import dataclass, replace

from duewheel.rules import cursors
from duewheel.rules.business import Business
from duewheel.rules.business_queries import BusinessesRequest
from duewheel.rules.refusals import UnknownBusiness
from duewheel.stores.businesses import BusinessStore
from duewheel.stores.standings import StandingStore

NOT_CONFIGURED = "The business has no settings of its own; its tasks run by the defaults."

_QUESTION = ("businesses",)


@dataclass(frozen=True, slots=True)
class BusinessPage:
    businesses: list[Business]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class LookUpBusinesses:
    store: BusinessStore
    standings: StandingStore
    secret: bytes

    def one(self, biz_type: str) -> Business:
        """As it stands at this moment, also with its calls."""
        business = self.store.read_whole(biz_type)
        if not business.version:
            raise UnknownBusiness(NOT_CONFIGURED, "biz_type")
        return replace(business, standing=self.standings.read(biz_type))

    def page(self, asked: BusinessesRequest) -> BusinessPage:
        """In the order of their names. What somebody has damaged is reported, and left out."""
        after = None
        if asked.cursor is not None:
            after = cursors.opened(asked.cursor, _QUESTION, self.secret)
        found, goes_on = self.store.page(after, asked.limit)
        cursor = cursors.sealed(found[-1].biz_type, _QUESTION, self.secret) if goes_on else None
        return BusinessPage([one for one in found if one.damaged is None], cursor)
