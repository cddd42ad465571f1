"""Configure a business: read it, change what is named, write it if it still stands so."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duewheel.clock import Clock
from duewheel.rules.business import Business, changed
from duewheel.rules.precondition import Precondition
from duewheel.rules.refusals import Unavailable
from duewheel.stores.businesses import BusinessStore
from duewheel.stores.known_businesses import KnownBusinesses

# Each lost race shows that another was first; more than a few in a row is a business fought over.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class ConfigureBusiness:
    clock: Clock
    store: BusinessStore
    known: KnownBusinesses

    def __call__(
        self, biz_type: str, change: Mapping[str, Any], precondition: Precondition
    ) -> Business:
        """Of version 1 when it was made by this."""
        for _ in range(_TRIES):
            before = self.store.read_whole(biz_type)
            precondition.check(before)
            after = changed(before, change, self.clock.now_ms())
            if self.store.write(before, after):
                self.known.forget(biz_type)
                return after
        raise Unavailable("Too many requests change this business at once.")
