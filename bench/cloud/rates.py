"""A token bucket: a rate per second, and at most the tokens of one second."""

from dataclasses import dataclass
from typing import Protocol


class Bucket(Protocol):
    def take(self, now_ms: float, most: float) -> float:
        """All available tokens, up to `most`."""
        ...

    def there(self, now_ms: float) -> float:
        """The available tokens."""
        ...


@dataclass
class TokenBucket:
    a_second: float
    holds: float
    tokens: float
    filled_ms: float = 0

    def take(self, now_ms: float, most: float) -> float:
        """All available tokens, up to `most`."""
        taken = min(most, self.there(now_ms))
        self.tokens -= taken
        return taken

    def there(self, now_ms: float) -> float:
        grown = (now_ms - self.filled_ms) * self.a_second / 1000
        self.tokens, self.filled_ms = min(self.holds, self.tokens + grown), now_ms
        return self.tokens


def full(a_second: float, seconds: float = 1) -> TokenBucket:
    return TokenBucket(a_second, a_second * seconds, a_second * seconds)
