"""A secret is stored once, by the first of several processes."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from duewheel.stores.secrets import read_or_record
from tests.support.world import World


def test_concurrent_callers_get_the_same_secret(world: World) -> None:
    kept = partial(read_or_record, world.dynamodb, world.settings.registry_table)
    fresh = [bytes([number]) * 32 for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        read = list(pool.map(lambda mine: kept("cursor", mine), fresh))

    assert len(set(read)) == 1
    assert read[0] in fresh


def test_a_stored_secret_is_not_changed(world: World) -> None:
    kept = partial(read_or_record, world.dynamodb, world.settings.registry_table)
    first = kept("cursor", b"\x00\xff" * 16)

    assert kept("cursor", b"b" * 32) == first == b"\x00\xff" * 16
    assert kept("another", b"b" * 32) == b"b" * 32
