"""How a business stands: what its calls have shown lately, as all notifiers know it.

It decides when and where a task is called, never what becomes of it; so whoever does not know it,
or knows it a few seconds late, breaks no promise.
"""

from msgspec import Struct

KEPT_SECONDS = 86_400  # after a write; nothing in it reaches as far ahead
BREAKERS_MAX = 20  # of a business, at a time
LEFT_ALONE_MS = 3_600_000


class Breaker(Struct, frozen=True):
    """Open: its host keeps failing and is not called. From `until_ms` on somebody may probe it,
    who first moves `until_ms` on, so that nobody else does at the same time."""

    host: str
    since_ms: int
    until_ms: int
    by: str  # a mark of whoever wrote it
    probes_failed: int = 0

    def is_left_alone(self, now_ms: int) -> bool:
        """Nobody has had anything to call there for so long that it may give way to another."""
        return now_ms - self.until_ms > LEFT_ALONE_MS


class Standing(Struct, frozen=True):
    """`openings` rises whenever a breaker opens, so that their number can be kept within bounds."""

    slow_until_ms: int = 0
    breakers: tuple[Breaker, ...] = ()
    openings: int = 0

    def breaker_of(self, host: str) -> Breaker | None:
        return next((breaker for breaker in self.breakers if breaker.host == host), None)

    def left_alone(self, now_ms: int) -> list[Breaker]:
        return [breaker for breaker in self.breakers if breaker.is_left_alone(now_ms)]

    def has_room(self, now_ms: int) -> bool:
        return len(self.breakers) - len(self.left_alone(now_ms)) < BREAKERS_MAX


NO_STANDING = Standing()
