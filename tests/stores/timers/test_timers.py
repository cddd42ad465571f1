"""A timer's records: definition and list line are written together, and a repeated write accepts
its own record."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.priority import Priority
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks.task import Sizes
from duewheel.rules.timers.schedule import Dialect, DstGap, DstOverlap, Schedule
from duewheel.rules.timers.timer import Gap, Misfire, Overlap, Rules, Timer
from duewheel.rules.wheel.addresses import Address, address_at
from duewheel.stores import registry_keys
from duewheel.stores.timers.timers import TimerLine, TimerStore
from tests.support.cases import each_case
from tests.support.clock import NOON_MS
from tests.support.timers import damage
from tests.support.world import CALLER, World

HOURLY = Rules("close orders", Schedule(cron="0 * * * *"))
EVERYTHING = Rules(
    "Zeitgeber #7 ⏱",
    Schedule(
        cron="0 0 9 ? * MON 2031",
        dialect=Dialect.CRONEXPR,
        timezone="Europe/London",
        start_second=1_900_000_000,
        end_second=2_000_000_000,
        dst_gap=DstGap.SKIP,
        dst_overlap=DstOverlap.BOTH,
        exclude=("2031-12-25", "2031-12-26"),
    ),
    max_runs=10,
    jitter_seconds=30,
    payload='{"at": "{{due_at}}", "price": 1.00, "most": 1e400}',
    callback=HttpCallback("https://receiver.example/", headers=(("x", "1"), ("x", "2"))),
    retry=RetryPolicy(attempts_max=2, delays_seconds=(1.5,)),
    expires_after_seconds=0.5,
    misfire=Misfire.ALL,
    grace_seconds=0,
    overlap=Overlap.BUFFER_ONE,
    disable_on_stop=True,
    pause_on_failures=3,
    tolerance_seconds=60,
    priority=Priority.LOW,
    flow_key="eu/customer-7",
    labels=(("order", "17: é"), ("team", "billing")),
)
INTERVAL = Rules(
    "beat", Schedule(every_seconds=1, anchor_second=1_800_000_000), callback=LambdaCallback("f")
)


@pytest.fixture
def store(world: World) -> TimerStore:
    return TimerStore(world.dynamodb, world.clock, world.settings.registry_table)


def timer(rules: Rules = HOURLY, timer_id: str = "4503599627370496", **fields: Any) -> Timer:
    values = {"enabled": False, "version": 1, "created_ms": NOON_MS, "updated_ms": NOON_MS}
    return Timer(timer_id=timer_id, biz_type="orders", rules=rules, **(values | fields))


def chain(number: int = 1) -> Address:
    return address_at(NOON_MS, bytes([number] * 8), direct=True)


def changed(before: Timer, **fields: Any) -> Timer:
    return replace(before, version=before.version + 1, **fields)


def lines(store: TimerStore, prefix: str = "") -> list[TimerLine]:
    return store.page("orders", prefix, None, 100)[0]


@pytest.mark.parametrize("rules", [HOURLY, EVERYTHING, INTERVAL], ids=lambda rules: rules.name)
def test_a_timer_is_read_as_it_was_stored(store: TimerStore, rules: Rules) -> None:
    gaps = (Gap(NOON_MS // 1000, NOON_MS // 1000 + 1), Gap(NOON_MS // 1000 + 7))
    second = NOON_MS // 1000
    made = timer(
        rules,
        enabled=True,
        chain=chain(),
        numbered=12,
        sizes=Sizes(second + 90, {(second + 30, second + 30): 8, (second + 60, second + 71): 2}),
        last_second=second + 60,
        ended=True,
        gaps=gaps,
    )
    assert store.create(made, CALLER, [])
    assert store.read(made.timer_id) == made
    assert store.read_many([made.timer_id, "17", made.timer_id]) == {made.timer_id: made}
    assert lines(store) == [TimerLine(rules.name, made.timer_id, True)]


def test_a_missing_timer_is_read_as_none(store: TimerStore) -> None:
    assert store.read("17") is None
    assert store.read_many([]) == {}


def test_a_taken_id_is_refused_unless_by_an_earlier_try(store: TimerStore) -> None:
    assert store.create(timer(), CALLER, [])
    assert store.create(timer(), CALLER, [])
    assert not store.create(timer(EVERYTHING), CALLER, [])
    assert store.read(timer().timer_id) == timer()
    assert [line.name for line in lines(store)] == [HOURLY.name]


def test_a_change_moves_the_list_line_and_one_of_two_changes_is_made(store: TimerStore) -> None:
    store.create(timer(), CALLER, [])
    renamed = changed(timer(), rules=replace(HOURLY, name="archive orders"), enabled=True)
    assert store.change(timer(), renamed, CALLER, [])
    assert store.change(timer(), renamed, CALLER, []), "an earlier try of this change"
    assert not store.change(timer(), changed(timer(), enabled=True), CALLER, [])
    assert store.read(timer().timer_id) == renamed
    assert lines(store) == [TimerLine("archive orders", timer().timer_id, True)]


def test_a_refused_action_leaves_the_timer_unchanged(store: TimerStore, world: World) -> None:
    store.create(timer(), CALLER, [])
    task = world.new().placed(world.entry_writer.placement(), bytes(8))
    world.tasks.create(task)
    put = {"Put": world.tasks.put_request(task)}
    assert not store.change(timer(), changed(timer(), enabled=True), CALLER, [put])
    assert not store.delete(timer(), CALLER, [put])
    assert not store.create(timer(timer_id="4503599627370497"), CALLER, [put])
    assert store.read(timer().timer_id) == timer()
    assert lines(store) == [TimerLine(HOURLY.name, timer().timer_id, False)]


def test_a_deleted_timer_leaves_no_records(store: TimerStore, world: World) -> None:
    store.create(timer(), CALLER, [])
    for key in (registry_keys.timer_counters, registry_keys.timer_running):
        item = {**key(timer().timer_id), "fired": {"N": "3"}}
        world.dynamodb.put_item(TableName=store.table, Item=item)
    before = world.dynamodb.scan(TableName=store.table)["Count"]
    assert not store.delete(changed(timer()), CALLER, []), "the stored timer differs"
    assert store.delete(timer(), CALLER, [])
    assert store.delete(timer(), CALLER, []), "an earlier try"
    assert world.dynamodb.scan(TableName=store.table)["Count"] == before - 4


def test_a_timer_is_ended_only_by_its_own_chain(store: TimerStore) -> None:
    running = timer(enabled=True, chain=chain())
    store.create(running, CALLER, [])
    assert not store.mark_ended(running.timer_id, chain(2), 5)
    assert not store.mark_ended("17", chain(), 5)
    assert store.mark_ended(running.timer_id, chain(), 5)
    assert store.mark_ended(running.timer_id, chain(), 5), "an earlier try"
    ended = replace(running, ended=True, numbered=5)
    assert store.read(running.timer_id) == ended
    assert not store.change(running, changed(running, enabled=False), CALLER, []), (
        "read before it ended"
    )
    assert store.change(ended, changed(ended, chain=chain(2), ended=False), CALLER, [])


def test_timers_are_listed_by_name_and_prefix_in_pages(store: TimerStore) -> None:
    for number, name in enumerate(["b", "a#1", "a", "a", "ä"]):
        store.create(timer(replace(HOURLY, name=name), str(1_099_511_627_776 + number)), CALLER, [])
    names: list[str] = []
    after = None
    for _ in range(5):
        page, _ = store.page("orders", "", after, 1)
        after = page[-1]
        names.append(after.name)
    assert sorted(names) == sorted(["b", "a#1", "a", "a", "ä"])
    assert store.page("orders", "", after, 1) == ([], False)
    assert {line.name for line in lines(store, "a")} == {"a", "a#1"}
    assert lines(store, "c") == []
    assert store.page("other", "", None, 10) == ([], False)


@each_case(
    ("attribute", "value"),
    [
        ("rules", {"S": "nonsense"}),
        ("rules", {"S": '{"name":"x","schedule":{}}'}),
        ("rules", {"S": r'{"name":"\ud800","schedule":{"every_seconds":5}}'}),
        ("rules", {"S": '{"name":"x","schedule":{"cron":"* * * * *","every_seconds":5}}'}),
        ("rules", {"S": '{"name":"x","schedule":{"cron":"* * * * *"},"colour":1}'}),
        ("rules", {"S": '{"name":"x","schedule":{"every_seconds":0}}'}),
        ("rules", {"S": '{"name":"x","schedule":{"cron":"* * * * *","exclude":["soon"]}}'}),
        ("version", {"S": "1"}),
        ("enabled", {"S": "yes"}),
        ("chain", {"S": "nowhere"}),
        ("payload", {"S": "{"}),
        ("biz_type", {"S": "NO"}),
        ("numbered", {"N": "-1"}),
        ("last_second", {"N": "-1"}),
        ("sizes", {"S": "[1,2,3]"}),
        ("gaps", {"S": "[[1,2,3]]"}),
        ("gaps", {"S": '[["1",2]]'}),
    ],
)
def test_a_damaged_definition_is_unreadable_without_affecting_others(
    store: TimerStore, world: World, attribute: str, value: Any
) -> None:
    other = timer(timer_id="4503599627370497")
    store.create(timer(), CALLER, [])
    store.create(other, CALLER, [])
    damage(world, timer(), **{attribute: value})
    with pytest.raises(UnreadableItem, match="timer#4503599627370496"):
        store.read(timer().timer_id)
    read = store.read_many([timer().timer_id, other.timer_id])
    assert isinstance(read[timer().timer_id], UnreadableItem)
    assert read[other.timer_id] == other
