"""Read businesses: one by its name, or all of them in pages, with their health."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules import cursors
from duewheel.rules.access.grants import Access
from duewheel.rules.businesses.settings import Business
from duewheel.rules.query_string import PageQuery
from duewheel.rules.refusals import UnknownBusiness
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.workflows.filtered_page import within_reach

NOT_CONFIGURED = "The business has no settings of its own; its tasks run by the defaults."

_QUESTION = ("businesses",)


class BusinessPage(Struct, frozen=True):
    businesses: list[Business]
    cursor: str | None


class ReadBusinesses(Struct, frozen=True):
    """`store` reads the health as well."""

    store: BusinessStore
    secret: bytes

    def one(self, biz_type: str) -> Business:
        """By its current record, with its health."""
        business = self.store.read_whole(biz_type)
        if not business.version:
            raise UnknownBusiness(NOT_CONFIGURED, "biz_type")
        return self.with_health([business])[0]

    def with_health(self, businesses: Sequence[Business]) -> list[Business]:
        read = self.store.read_many(business.biz_type for business in businesses)
        return [replace(business, health=read[business.biz_type].health) for business in businesses]

    def page(self, query: PageQuery, access: Access) -> BusinessPage:
        """In the order of their names, those within reach. Damaged records are reported and left
        out."""
        found, last = within_reach(
            self._page,
            lambda business: access.reaches(business.biz_type),
            lambda business: business.biz_type,
            cursors.opened(query.cursor, _QUESTION, self.secret),
            query.limit,
        )
        readable = [business for business in found if business.damaged is None]
        cursor = cursors.sealed(last, _QUESTION, self.secret)
        return BusinessPage(self.with_health(readable), cursor)

    def _page(self, after: str | None, limit: int) -> tuple[list[Business], str | None]:
        found, goes_on = self.store.page(after, limit)
        return found, found[-1].biz_type if goes_on else None
