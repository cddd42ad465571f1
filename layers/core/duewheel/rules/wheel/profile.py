"""Profile: how the scheduler runs, and how far ahead of the time it dispatches slices.

Invariant: it decides when slices are dispatched, and by which process. When a slice may be read,
and from when on a change comes too late, follows from the lead alone and is the same in every
profile.
"""

from msgspec import Struct

RUN_EVERY_SECONDS = 60  # by schedule, somewhere within the minute


class Profile(Struct, frozen=True):
    """`ahead_seconds`: how long before it opens a slice may be dispatched. `stays`: whether a
    scheduler leads on, tick by tick, until the next one relieves it, with another standing by; else
    a run ends when all seconds ahead are dispatched."""

    name: str
    ahead_seconds: int
    stays: bool

    @property
    def ahead_ms(self) -> int:
        return self.ahead_seconds * 1000


PRECISE = Profile("precise", ahead_seconds=0, stays=True)
# Two runs may be nearly two minutes apart; the rest is for the run itself and for a late start.
ECONOMY = Profile("economy", ahead_seconds=150, stays=False)

PROFILES = {profile.name: profile for profile in (PRECISE, ECONOMY)}
