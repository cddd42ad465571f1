"""The last started occurrence of a timer, and the counters of its occurrences."""

from typing import Any

import pytest

from duewheel.rules.timers.overlap import Line
from duewheel.rules.wheel.addresses import address_at
from duewheel.stores import registry_keys
from duewheel.stores.timers.counters import Counted
from duewheel.stores.timers.occurrences import Running, RunningStore
from tests.support.world import World

TIMER_ID = "4503599627370497"
ONE, TWO, THREE = (address_at(1_800_000_000_000 + n, bytes(8)) for n in range(3))


@pytest.fixture
def store(world: World) -> RunningStore:
    return RunningStore(world.dynamodb, world.clock, world.settings.registry_table)


def put(world: World, key: dict[str, Any], **attributes: Any) -> None:
    item = {**key, **attributes}
    world.unrecorded.put_item(TableName=world.settings.registry_table, Item=item)


def read(store: RunningStore) -> Running:
    return store.read_many([TIMER_ID]).get(TIMER_ID, Running())


def test_a_line_replaces_the_one_that_was_read(store: RunningStore) -> None:
    assert read(store) == Running()
    for line in (Line(ONE), Line(ONE, TWO), Line(TWO, THREE), Line(THREE)):
        assert store.put(TIMER_ID, read(store), line).line == line
        assert read(store).line == line


@pytest.mark.parametrize("first", [Line(ONE), Line(ONE, TWO), Line(THREE, TWO)])
def test_a_line_that_another_has_changed_is_returned_as_it_is(
    store: RunningStore, first: Line
) -> None:
    """In either place."""
    store.put(TIMER_ID, read(store), Line(THREE))
    before = read(store)
    store.put(TIMER_ID, before, first)
    assert store.put(TIMER_ID, before, Line(TWO)).line == first
    assert read(store).line == first


def test_a_repeated_put_returns_itself(store: RunningStore) -> None:
    before = read(store)
    store.put(TIMER_ID, before, Line(ONE, TWO))
    assert store.put(TIMER_ID, before, Line(ONE, TWO)).line == Line(ONE, TWO)


@pytest.mark.parametrize("name", ["home", "waiting"])
@pytest.mark.parametrize("value", [{"S": "nonsense"}, {"N": "1"}, None])
def test_a_damaged_record_does_not_prevent_a_run(
    world: World, store: RunningStore, name: str, value: dict[str, str] | None
) -> None:
    put(world, registry_keys.timer_running(TIMER_ID), **({} if value is None else {name: value}))
    damaged = read(store)
    assert damaged.line == Line()
    assert store.put(TIMER_ID, damaged, Line(ONE, TWO)).line == Line(ONE, TWO)
    assert read(store).line == Line(ONE, TWO)


def test_counters_are_added_up(world: World) -> None:
    world.counters.add(TIMER_ID, {Counted.FIRED: 2, Counted.DELIVERED: 1})
    world.counters.add(TIMER_ID, {Counted.FIRED: 1, Counted.DEAD: 0})
    world.counters.add(TIMER_ID, {})
    counters = world.counters.read(TIMER_ID)
    assert set(counters) == {name.value for name in Counted}
    assert {name: count for name, count in counters.items() if count} == {
        "fired": 3,
        "delivered": 1,
    }


def test_a_damaged_counter_reads_as_zero(world: World) -> None:
    put(world, registry_keys.timer_counters(TIMER_ID), fired={"S": "many"}, dead={"N": "4"})
    counters = world.counters.read(TIMER_ID)
    assert (counters["fired"], counters["dead"]) == (0, 4)
