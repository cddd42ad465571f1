"""The settings of businesses as a process caches them: read once every few seconds.

That a business has no record is cached as well. Readers do not wait for each other: two that miss
at the same moment both read. A wait could be endless if the other reader crashes.
"""

from collections.abc import Iterable
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.businesses.health import BusinessHealth
from duewheel.rules.businesses.settings import Business
from duewheel.stores.businesses.settings import BusinessStore

KEPT_MS = 5_000
KNOWN_MAX = 2_000  # any caller may send any name


class _Known(Struct, frozen=True):
    business: Business
    read_ms: int

    def is_fresh(self, now_ms: int) -> bool:
        return 0 <= now_ms - self.read_ms < KEPT_MS


class BusinessCache:
    def __init__(self, store: BusinessStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = Lock()  # over both of these
        self._known: dict[str, _Known] = {}
        self._forgotten = 0

    def one(self, biz_type: str) -> Business:
        return self.many([biz_type])[biz_type]

    def kept(self, biz_type: str) -> Business | None:
        """The cached business; None if it is too old."""
        now_ms = self._clock.now_ms()
        with self._lock:
            known = self._known.get(biz_type)
        return known.business if known is not None and known.is_fresh(now_ms) else None

    def many(self, biz_types: Iterable[str]) -> dict[str, Business]:
        """Cached or read; of version 0 without a record."""
        wanted = dict.fromkeys(biz_types)
        now_ms = self._clock.now_ms()
        with self._lock:
            found = {
                biz_type: known.business
                for biz_type in wanted
                if (known := self._known.get(biz_type)) and known.is_fresh(now_ms)
            }
            missing = [biz_type for biz_type in wanted if biz_type not in found]
            forgotten = self._forgotten
        if not missing:
            return found
        read = self._store.read_many(missing)
        with self._lock:
            if self._forgotten == forgotten:  # else it may have been read before the change
                self._keep(read, now_ms)
        return found | read

    def forget(self, biz_type: str) -> None:
        """Forget a business that this process has just changed."""
        with self._lock:
            self._forgotten += 1
            self._known.pop(biz_type, None)

    def put_health(self, biz_type: str, health: BusinessHealth) -> None:
        """The health that was just written; a running read may return an older one."""
        with self._lock:
            self._forgotten += 1
            if known := self._known.get(biz_type):
                business = replace(known.business, health=health)
                self._known[biz_type] = replace(known, business=business)

    def latest(self, biz_type: str) -> Business | None:
        """The cached business, however old; reads nothing."""
        with self._lock:
            known = self._known.get(biz_type)
        return known.business if known else None

    def health_of(self, biz_type: str) -> BusinessHealth:
        known = self.latest(biz_type)
        return known.health if known else BusinessHealth()

    def has_read_other(self, biz_type: str, since_ms: int) -> bool:
        """Whether another business was read since, so that it has tasks."""
        with self._lock:
            others = (k.read_ms for name, k in reversed(self._known.items()) if name != biz_type)
            return next(others, 0) > since_ms

    def _keep(self, read: dict[str, Business], now_ms: int) -> None:
        for biz_type, business in read.items():
            self._known.pop(biz_type, None)  # so that it comes last, as the youngest
            self._known[biz_type] = _Known(business, now_ms)
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
