"""The health of a business: what its recent calls showed, shared by all notifiers.

It affects when and in which lane a task is called, never how the task ends. So a notifier that
reads it late, or not at all, breaks no guarantee.
"""

from msgspec import Struct

KEPT_SECONDS = 86_400  # after a write; no value in it lies further ahead
BREAKERS_MAX = 20  # of a business, at a time
UNUSED_MS = 3_600_000


class Breaker(Struct, frozen=True, kw_only=True):
    """An open breaker: its host is not called. From `until_ms` on one notifier may probe the host;
    it first moves `until_ms` on, so that no other probes at the same time."""

    host: str
    since_ms: int
    until_ms: int
    owner_token: str  # of the notifier that wrote it
    probes_failed: int = 0

    @property
    def is_damaged(self) -> bool:
        """What is stored is not known; the outcome of a probe replaces it."""
        return not self.owner_token

    def is_evictable(self, now_ms: int) -> bool:
        """Unused for an hour, so a breaker of another host may replace it."""
        return not self.is_damaged and now_ms - self.until_ms > UNUSED_MS


def damaged_breaker(host: str) -> Breaker:
    """Open, and a probe of its host is due."""
    return Breaker(host=host, since_ms=0, until_ms=0, owner_token="")


class BusinessHealth(Struct, frozen=True):
    """`openings` counts opened breakers, so that their number can be bounded."""

    slow_until_ms: int = 0
    breakers: tuple[Breaker, ...] = ()
    openings: int = 0

    def breaker_of(self, host: str) -> Breaker | None:
        return next((breaker for breaker in self.breakers if breaker.host == host), None)

    def evictable(self, now_ms: int) -> list[Breaker]:
        return [breaker for breaker in self.breakers if breaker.is_evictable(now_ms)]

    def has_room(self, now_ms: int) -> bool:
        return len(self.breakers) - len(self.evictable(now_ms)) < BREAKERS_MAX


NO_HEALTH = BusinessHealth()
