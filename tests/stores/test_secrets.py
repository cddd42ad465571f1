"""A secret is recorded once, whoever comes first."""

from concurrent.futures import ThreadPoolExecutor

from duewheel.stores.secrets import SecretRecords
from tests.support.world import World


def test_all_who_come_at_once_get_the_same_secret(world: World) -> None:
    kept = SecretRecords(world.dynamodb, world.settings.registry_table)
    fresh = [bytes([number]) * 32 for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        read = list(pool.map(lambda mine: kept.read_or_record("cursor", mine), fresh))

    assert len(set(read)) == 1
    assert read[0] in fresh


def test_a_secret_stays_as_it_was_first_recorded(world: World) -> None:
    kept = SecretRecords(world.dynamodb, world.settings.registry_table)
    first = kept.read_or_record("cursor", b"\x00\xff" * 16)

    assert kept.read_or_record("cursor", b"b" * 32) == first == b"\x00\xff" * 16
    assert kept.read_or_record("another", b"b" * 32) == b"b" * 32
