"""Read how much of its limits a business uses: one request for its rates and one for its permits,
if it has such limits, and two for the pointers."""

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.businesses.settings import Business
from duewheel.rules.delivery.permits import Permits
from duewheel.rules.delivery.usage import Usage, permit_usage, rate_usage
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.open_places import age_seconds, oldest_first
from duewheel.stores.businesses.permits import PermitStore
from duewheel.stores.businesses.rate_limits import RateLimitStore
from duewheel.stores.wheel.pointers import SWEEP, TIME, PointerStore


class ReadUsage(Struct, frozen=True, kw_only=True):
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
        """Without what is of the whole service."""
        calls = creates = None
        if business.call_rate is not None or business.create_rate is not None:
            calls, creates = self.turns.cursors(business.biz_type)
        limit = business.own.calls_in_flight
        permits = Permits() if limit is None else self.permits.read(business.biz_type)
        now_ms = self.clock.now_ms()
        return Usage(
            calls=rate_usage(business.call_rate, calls, now_ms),
            creates=rate_usage(business.create_rate, creates, now_ms),
            permits=permit_usage(limit, permits, now_ms),
        )
