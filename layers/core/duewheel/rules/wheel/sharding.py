"""Sharding of crowded seconds: how many shards a second gets, and which of them an entry takes.

A second begins with one shard; their number only rises, each time to a power of two. So an entry
is found wherever it was put, by a reader of as many shards as the header says.
"""

from collections.abc import Callable
from hashlib import blake2s

from duewheel.rules.wheel.addresses import SHARDS_MAX

# One partition takes 1,000 writes a second, and an entry costs one when it is settled. Shards that
# grew while entries came hold unequal parts: with 2^k of them the first has this times 1 + k/2.
SLICE_ENTRIES = 250
LOOKED_AT_ONE_IN = 16


def shards_for(expected: float) -> int:
    """So many that no shard is expected to hold more than a slice should."""
    shards = 1
    while shards * SLICE_ENTRIES < expected and shards < SHARDS_MAX:
        shards *= 2
    return shards


def widened(shards: int) -> int:
    return min(2 * shards, SHARDS_MAX)


def shard_for(random_bytes: bytes, shards: int) -> int:
    """By a hash, so that the choice of the bytes does not matter."""
    if shards == 1:
        return 0
    digest = blake2s(random_bytes, digest_size=4, person=b"shard").digest()
    return int.from_bytes(digest, "big") % shards


def is_looked_at(entries: int, random_unit: Callable[[], float]) -> bool:
    """Whether to read the header of an unknown second for this number of entries."""
    return random_unit() < entries / LOOKED_AT_ONE_IN
