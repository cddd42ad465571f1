"""Read businesses: one by its name, or all of them in pages, with their health.

A business is known by its settings, and as well without them by any other sign: its health, the
tasks that the sweep has counted, its timers, a task in the list index.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.rules import cursors
from duewheel.rules.access.grants import Access
from duewheel.rules.businesses.health import NO_HEALTH
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.usage import Usage, permit_usage, rate_usage
from duewheel.rules.query_string import PageQuery
from duewheel.rules.refusals import UnknownBusiness, UnreadableItem
from duewheel.rules.tasks.listing import ListQuery, Stretch, stretches
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.open_places import age_seconds, oldest_first
from duewheel.stores.businesses.permits import PermitStore
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.sweep.minute_statistics import StatisticsStore
from duewheel.stores.sweep.seen_businesses import SeenBusinesses
from duewheel.stores.tasks.indexes import ListIndex
from duewheel.stores.timers.timers import TimerStore
from duewheel.stores.wheel.pointers import SWEEP, TIME, PointerStore
from duewheel.workflows.businesses.known import KnownBusinesses

NOT_CONFIGURED = "The business has no settings of its own; its tasks run by the defaults."
NO_SIGN = "It has no settings, and no task or timer of it is known; its tasks run by the defaults."
READERS = 16
READ_AT_ONCE = 100

_QUESTION = ("businesses",)


class Seen(Struct, frozen=True):
    """A business, and the beginning of the last minute in which a task of it fell due or failed."""

    business: Business
    last_task_ms: int | None


class SeenWithUsage(Struct, frozen=True):
    seen: Seen
    usage: Usage


class BusinessPage(Struct, frozen=True):
    businesses: list[Seen]
    cursor: str | None


class Signs(Struct, frozen=True, kw_only=True):
    """What shows that there is a business. `index` is None while the list index is off."""

    seen: SeenBusinesses
    statistics: StatisticsStore
    timers: TimerStore
    index: ListIndex | None
    readers: ThreadPoolExecutor

    def last_task_ms(self, biz_type: str, day: int | None) -> int | None:
        minute = None if day is None else self.statistics.last_minute(biz_type, day)
        return None if minute is None else minute * 60_000

    def last_tasks_ms(self, days: Mapping[str, int]) -> dict[str, int | None]:
        found = fan_out(self.readers, self.last_task_ms, days, days.values())
        return dict(zip(days, found, strict=True))

    def has_timer_or_task(self, biz_type: str) -> bool:
        """Also of tasks that are not due yet. One request, and sixteen if it finds no timer."""
        lines, _ = self.timers.page(biz_type, "", None, 1)
        return bool(lines) or self._has_listed_task(biz_type)

    def _has_listed_task(self, biz_type: str) -> bool:
        index = self.index
        if index is None:
            return False

        def has_some(stretch: Stretch) -> bool:
            return bool(index.first_keys(stretch, 1).keys)

        return any(fan_out(self.readers, has_some, stretches(ListQuery(biz_type), None)))


class ReadUsage(Struct, frozen=True, kw_only=True):
    """How much of its limits a business uses: a request for its rates and one for its permits, if
    it has such limits, and two for the pointers."""

    clock: Clock
    turns: RateLimitStore
    permits: PermitStore
    pointers: PointerStore
    origin: int

    def __call__(self, business: Business) -> Usage:
        dispatched = self.pointers.read(TIME, self.origin, strongly=False).position
        places = self.pointers.read(SWEEP, self.origin, strongly=False).open_places
        now_ms = self.clock.now_ms()
        return replace(
            self.of_limits(business),
            dispatch_lag_seconds=timing.lag_seconds(dispatched, now_ms),
            oldest_open_seconds=age_seconds(oldest_first(places)[0], now_ms) if places else None,
        )

    def of_limits(self, business: Business) -> Usage:
        """Without what is of the whole service, and without what a damaged record says."""
        usage, now_ms = Usage(), self.clock.now_ms()
        if business.call_rate is not None or business.create_rate is not None:
            with suppress(UnreadableItem):  # it is reported
                calls, creates = self.turns.cursors(business.biz_type)
                usage = replace(
                    usage,
                    calls=rate_usage(business.call_rate, calls, now_ms),
                    creates=rate_usage(business.create_rate, creates, now_ms),
                )
        if (limit := business.own.calls_in_flight) is not None:
            with suppress(UnreadableItem):
                permits = self.permits.read(business.biz_type)
                usage = replace(usage, permits=permit_usage(limit, permits, now_ms))
        return usage


class ReadBusinesses(Struct, frozen=True, kw_only=True):
    """`store` reads the health as well."""

    store: BusinessStore
    known: KnownBusinesses
    signs: Signs
    read_usage: ReadUsage
    secret: bytes

    def one(self, biz_type: str) -> SeenWithUsage:
        """By its current record, with its health. Of version 0 if it has no settings."""
        (business,) = self.with_health([self.store.read_whole(biz_type)])
        day = self.signs.seen.day_of(biz_type)
        is_known = business.version or business.health != NO_HEALTH or day is not None
        if not is_known and not self.signs.has_timer_or_task(biz_type):
            raise UnknownBusiness(NO_SIGN, "biz_type")
        last_task_ms = self.signs.last_task_ms(biz_type, day)
        return SeenWithUsage(Seen(business, last_task_ms), self.read_usage(business))

    def with_health(self, businesses: Sequence[Business]) -> list[Business]:
        read = self.store.read_many(business.biz_type for business in businesses)
        return [replace(business, health=read[business.biz_type].health) for business in businesses]

    def page(self, query: PageQuery, access: Access) -> BusinessPage:
        """In the order of their names, those within reach: with settings, or with tasks that were
        due. Damaged records are reported and left out."""
        after = cursors.opened(query.cursor, _QUESTION, self.secret)
        each = self.known.each(access, after, READ_AT_ONCE)
        found = list(islice(each, query.limit + 1))
        goes_on, found = len(found) > query.limit, found[: query.limit]
        last = found[-1].business.biz_type if goes_on else None
        readable = [one.business for one in found if one.business.damaged is None]
        days = {one.business.biz_type: one.day for one in found if one.day is not None}
        shown = {one.biz_type: days[one.biz_type] for one in readable if one.biz_type in days}
        last_ms = self.signs.last_tasks_ms(shown)
        cursor = cursors.sealed(last, _QUESTION, self.secret)
        businesses = self.with_health(readable)
        return BusinessPage([Seen(one, last_ms.get(one.biz_type)) for one in businesses], cursor)
