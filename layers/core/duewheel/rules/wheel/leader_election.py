"""Leader election: which of several schedulers moves the time pointer, and how they take turns.

The lease is part of the pointer's record. A waiting scheduler registers as standby; one
that finds leader and standby registers as candidate, which makes the leader step down.
"""

from enum import Enum

from msgspec import Struct

from duewheel.rules.wheel.open_places import OpenPlace

LEASE_MS = 8_000
STANDBY_GRACE_MS = 2_000  # how long a free lease is left to its standby
POINTER_WRITE_EVERY_MS = 5_000  # what the seconds between share; less than the lease
WATCH_SECONDS = 1.0
WATCH_SECONDS_AT_HANDOVER = 0.25


class Pointer(Struct, frozen=True):
    """A pointer as stored. `position`: the last second that is finished, except for the open places
    of the sweep pointer."""

    name: str
    position: int
    epoch: int = 0
    owner: str | None = None
    lease_until_ms: int = 0
    standby: str | None = None
    candidate: str | None = None
    notes: tuple[tuple[int, int], ...] = ()  # sweep pointer: (time pointer, seen at ms)
    open_places: tuple[OpenPlace, ...] = ()  # sweep pointer, oldest second first


class Step(Enum):
    CLAIM = "claim"
    REGISTER_AS_STANDBY = "register as standby"
    REGISTER_AS_CANDIDATE = "register as candidate"
    WAIT = "wait"


def next_step(pointer: Pointer, me: str, now_ms: int) -> Step:
    if pointer.owner is None or pointer.lease_until_ms <= now_ms:
        left_to_standby = now_ms < pointer.lease_until_ms + STANDBY_GRACE_MS
        if pointer.standby in (None, me) or not left_to_standby:
            return Step.CLAIM
        return Step.WAIT
    if me in (pointer.standby, pointer.candidate):
        return Step.WAIT
    if pointer.standby is None:
        return Step.REGISTER_AS_STANDBY
    if pointer.candidate is None:
        return Step.REGISTER_AS_CANDIDATE
    return Step.WAIT


def watch_seconds(pointer: Pointer) -> float:
    """A hand-over is near once there is a candidate: check more often, so that no tick is late."""
    return WATCH_SECONDS if pointer.candidate is None else WATCH_SECONDS_AT_HANDOVER


def standby_after_claim(pointer: Pointer, me: str) -> str | None:
    """The candidate, which becomes standby: the old standby is gone or is `me`."""
    return None if pointer.candidate == me else pointer.candidate
