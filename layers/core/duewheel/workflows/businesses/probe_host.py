"""Let the next due call of a business try a host that its open breaker blocks, whatever its wait.

The breaker belongs to this business and this host alone, and lets one call through. So no other
business calls the host because of it.
"""

from collections.abc import Callable

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.delivery.circuit_breaker import to_be_probed
from duewheel.rules.fields import invalid
from duewheel.rules.refusals import Unavailable
from duewheel.stores.businesses.health import HealthStore, HealthUnavailable
from duewheel.workflows.tries import until_won

_TRIES = 3  # a notifier may move the breaker meanwhile


class ProbeHost(Struct, frozen=True, kw_only=True):
    clock: Clock
    health_store: HealthStore
    random_bytes: Callable[[], bytes]

    def __call__(self, biz_type: str, host: str) -> None:
        def try_once() -> bool | None:
            seen = self.health_store.read(biz_type).breaker_of(host)
            if seen is None:
                raise invalid("host", "has no open breaker of this business: it is called.")
            after = to_be_probed(seen, self.clock.now_ms(), self.random_bytes().hex())
            health = self.health_store.move(biz_type, seen, after)
            return True if health.breaker_of(host) == after else None

        try:
            until_won(try_once, _TRIES, Unavailable())
        except HealthUnavailable as error:
            raise Unavailable from error
