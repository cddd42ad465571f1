"""Open places are stored with the sweep pointer, and every release that writes it keeps them."""

from msgspec.structs import replace

from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.leader_election import Pointer
from duewheel.rules.wheel.open_places import OpenPlace, Why, first_open_second, is_in_open_place
from duewheel.stores import registry_keys
from duewheel.stores.wheel import pointers
from tests.support.world import World

HELD = OpenPlace(second=1_000, shard=0, page="2r", since_ms=1_130_000, why=Why.HELD)
REST = OpenPlace(second=1_001, shard=3, since_ms=1_131_000, why=Why.NOT_REACHED)


def claimed(world: World) -> Pointer:
    seen = world.pointer(pointers.SWEEP)
    mine = world.pointers.claim(seen, "me", world.clock.now_ms())
    assert mine is not None
    return mine


def noted(world: World) -> Pointer:
    mine = claimed(world)
    moved = world.pointers.advance(
        mine, mine.position + 1, world.clock.now_ms(), open_places=(HELD, REST)
    )
    assert moved is not None
    return moved


def stored(world: World) -> tuple[OpenPlace, ...]:
    return world.pointer(pointers.SWEEP).open_places


def test_stored_open_places_are_read(world: World) -> None:
    noted(world)
    assert stored(world) == (HELD, REST)


def test_a_pointer_without_a_list_has_none_open(world: World) -> None:
    claimed(world)
    assert stored(world) == ()


def test_an_empty_list_of_open_places_is_removed(world: World) -> None:
    mine = noted(world)
    assert world.pointers.release(mine, mine.position, world.clock.now_ms(), open_places=())
    key = registry_keys.pointer(pointers.SWEEP)
    item = world.dynamodb.get_item(TableName=world.settings.registry_table, Key=key)["Item"]
    assert "open_places" not in item


def test_moves_claims_and_skips_keep_the_open_places(world: World) -> None:
    mine = noted(world)
    world.pointers.advance(mine, mine.position, world.clock.now_ms())
    world.clock.advance_ms(60_000)
    again = claimed(world)
    assert again.open_places == (HELD, REST)
    world.pointers.skip_to(pointers.SWEEP, world.origin, again.position + 100)
    assert stored(world) == (HELD, REST)


def test_an_open_place_covers_its_slice_and_an_unreached_second_all_later_ones() -> None:
    entry = Address(second=1_001, ms=0, token="x", shard=3)
    assert is_in_open_place(entry, [REST])
    assert is_in_open_place(replace(entry, shard=9), [REST])
    assert not is_in_open_place(replace(entry, shard=2), [REST])
    assert not is_in_open_place(replace(entry, second=1_002), [REST])
    assert is_in_open_place(replace(entry, second=1_000, shard=0), [HELD])
    assert not is_in_open_place(replace(entry, second=1_000, shard=1), [HELD])


def test_all_seconds_before_the_first_open_one_are_finished() -> None:
    assert first_open_second([], 2_000) == 2_001
    assert first_open_second([REST, HELD], 2_000) == 1_000
