"""The businesses that are known, in the order of their names: those with settings, and those of
which the sweep has counted tasks. Only what the access reaches is read."""

from collections.abc import Iterator

from msgspec import Struct

from duewheel.rules.access.grants import Access
from duewheel.rules.access.name_spans import NameSpan, spans_within
from duewheel.rules.businesses.settings import Business
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.sweep.seen_businesses import SeenBusinesses


class Known(Struct, frozen=True):
    """`day`: the last one on which the sweep counted a task of it, in days since the epoch."""

    business: Business
    day: int | None


class KnownBusinesses(Struct, frozen=True):
    store: BusinessStore
    seen: SeenBusinesses

    def each(self, access: Access, after: str | None, at_once: int) -> Iterator[Known]:
        """Two queries for so many of each sort."""
        for span in spans_within(access, after):
            yield from self._within(span, at_once)

    def names(self, access: Access, after: str | None, at_once: int) -> Iterator[str]:
        """A business that a grant names is there, whether it is known or not."""
        for span in spans_within(access, after):
            if span.is_one_name:
                yield span.low
            else:
                yield from (known.business.biz_type for known in self._within(span, at_once))

    def _within(self, span: NameSpan, at_once: int) -> Iterator[Known]:
        rest: NameSpan | None = span
        while rest is not None:
            found, rest = self._page(rest, at_once)
            yield from found

    def _page(self, span: NameSpan, limit: int) -> tuple[list[Known], NameSpan | None]:
        """Of both lists, the names up to where one of them has more, and the rest of the span."""
        configured, goes_on = self.store.page(span, limit)
        days, last_seen = self.seen.page(span, limit)
        by_name = {biz_type: Business(biz_type, self.store.defaults) for biz_type in days}
        by_name |= {business.biz_type: business for business in configured}
        ends = [configured[-1].biz_type] if goes_on else []
        ends += [last_seen] if last_seen is not None else []
        end = min(ends, default=span.high)
        found = [Known(by_name[name], days.get(name)) for name in sorted(by_name) if name <= end]
        return found, span.behind(end) if ends else None
