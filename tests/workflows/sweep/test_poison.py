"""Items with nonsense edited in by hand are set aside and reported, and all other work goes on."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep.audit import AuditRequest, Finding
from duewheel.rules.tasks.listing import ListQuery, ListRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import Address, holds_seconds
from duewheel.stores.wheel import pointers
from duewheel.targets.http.target import HttpTarget
from tests.support.bounds import quick_first
from tests.support.clock import NOON_MS
from tests.support.damage import delete, edit, entry_key, key_of
from tests.support.receiver import BUSY
from tests.support.world import World

ALWAYS_THERE = (
    *("biz_type", "status", "callback", "due_ms", "next_ms", "created_ms", "updated_ms"),
    *("attempts", "version"),
)
SOMETIMES_THERE = (
    *("payload", "entry", "home", "retry", "history", "revivals", "redrives", "expires_after"),
    *("key", "error", "reason", "digest", "settled_ms", "expires_at", "lateness_ms", "max_due_ms"),
)
NONSENSE: tuple[dict[str, Any], ...] = (
    {"S": ""},
    {"S": "[" * 5_000},
    {"S": '{"url": 17}'},
    {"S": '{"url": "\\ud800"}'},
    {"S": "nonsense"},
    {"S": "x" * 140_000},
    {"N": "-1"},
    {"N": "1.5"},
    {"N": "1000000000000000000"},
    {"NULL": True},
    {"L": [{"S": "x"}]},
    {"SS": ["x"]},
)


@pytest.fixture(autouse=True)
def _check_that_seconds_have_eleven_digits(world: World) -> Iterator[None]:
    yield
    places = [item["place"]["S"] for item in world.items() if holds_seconds(item["slot"]["S"])]
    assert all(re.match(r"[0-9]{11}[^0-9]", place) for place in places)


def in_a_page(world: World, poisoned: int = 1) -> tuple[list[Task], list[Task]]:
    """Tasks to be damaged, and healthy tasks before, between and behind them."""
    in_ms = 10_000 - world.clock.now_ms() % 1000
    tasks = [world.created(in_ms=in_ms + number) for number in range(poisoned + 3)]
    healthy = [tasks.pop(place) for place in (-1, len(tasks) // 2, 0)]
    return tasks, healthy


def check_only_healthy_are_delivered(
    world: World, poisoned: list[Task], healthy: list[Task]
) -> None:
    ids = sorted(task.task_id for task in healthy)
    second = healthy[0].home.second
    world.dispatch_until(second)
    world.drain()
    assert called(world, healthy) == ids
    assert {world.read(task).status for task in healthy} == {Status.DELIVERED}
    assert world.sweep_second_once(second), "the sweep moves on"
    world.drain()
    assert called(world, healthy) == ids, "called once"


def called(world: World, tasks: list[Task]) -> list[str]:
    ids = {task.task_id for task in tasks}
    return sorted(task_id for task_id in world.receiver.task_ids if task_id in ids)


def audited(world: World, task: Task) -> list[Finding]:
    return world.audit(AuditRequest(task.home.second, task.home.second)).findings


def test_a_task_without_one_of_its_attributes_is_set_aside(world: World) -> None:
    poisoned, healthy = in_a_page(world, len(ALWAYS_THERE))
    for task, attribute in zip(poisoned, ALWAYS_THERE, strict=True):
        edit(world, key_of(world, task), **{attribute: None})
    check_only_healthy_are_delivered(world, poisoned, healthy)

    assert called(world, poisoned) == []
    found = [(f.wrong.value, f.task_id, f.attribute) for f in audited(world, healthy[0])]
    expected = zip(poisoned, ALWAYS_THERE, strict=True)
    assert found == [("unreadable", task.task_id, attribute) for task, attribute in expected]


@pytest.mark.parametrize(
    "group", quick_first([(ALWAYS_THERE,), (SOMETIMES_THERE,)], pytest.mark.exhaustive)
)
def test_nonsense_in_an_attribute_affects_no_other_task_and_does_not_stop_the_sweep(
    world: World, group: tuple[str, ...]
) -> None:
    for attribute in group:
        # AWS refuses other types for a key of an index.
        values = [v for v in NONSENSE if attribute not in ("due_ms", "settled_ms") or "N" in v]
        poisoned, healthy = in_a_page(world, len(values))
        for task, nonsense in zip(poisoned, values, strict=True):
            edit(world, key_of(world, task), **{attribute: nonsense})
        check_only_healthy_are_delivered(world, poisoned, healthy)

        unreadable = {finding.task_id for finding in audited(world, healthy[0])}
        assert unreadable <= {task.task_id for task in poisoned}
        assert set(called(world, poisoned)).isdisjoint(unreadable)
        for task, nonsense in zip(poisoned, values, strict=True):
            # A task whose nonsense is a valid value, or was not read, was called.
            if task.task_id not in unreadable:
                assert world.read(task).status is Status.DELIVERED, (attribute, nonsense)


def test_an_unreadable_item_is_reported_by_its_place_without_its_content(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    (poisoned,), _ = in_a_page(world)
    edit(world, key_of(world, poisoned), callback={"S": "secret"})
    world.dispatch_until(poisoned.home.second)
    world.drain()

    (record,) = [r for r in caplog.records if getattr(r, "action", "") == "unreadable"]
    assert (record.place, record.wrong) == (poisoned.home.place, "callback")  # type: ignore[attr-defined]
    assert "secret" not in str(vars(record))


LEASES: tuple[dict[str, Any], ...] = (
    {"owner": {"S": "me"}, "until_ms": {"N": "9999999999999"}},
    {"owner": {"S": "me"}, "until_ms": {"N": "1000000000000000000"}},
    {"end": {"S": "zzz"}},
    {"rest": {"L": [{"N": "1"}]}},
    {"tries": {"N": "-1000000"}},
)
# For AWS, values of two types are different; moto cannot compare them in a condition.
LEASES_OF_ANOTHER_KIND: tuple[dict[str, Any], ...] = (
    {"tries": {"S": "many"}},
    {"owner": {"S": "me"}, "until_ms": {"S": "later"}},
)


def with_leases(world: World, leases: tuple[dict[str, Any], ...]) -> list[tuple[Task, Any]]:
    """A task for each lease, in a second of its own, and the key of its page's lease."""
    tasks = [world.created(in_ms=200_000 + number * 1_000) for number in range(len(leases))]
    return [
        (task, {**key_of(world, task), "place": {"S": f"{task.home.second:011d}~0"}})
        for task in tasks
    ]


@pytest.mark.parametrize(
    "leases",
    [
        LEASES,
        pytest.param(
            LEASES_OF_ANOTHER_KIND,
            marks=pytest.mark.ministack_only(reason="moto cannot compare values of two kinds"),
        ),
    ],
)
def test_a_notifier_leaves_a_page_with_a_damaged_lease_to_the_sweep(
    world: World, leases: tuple[dict[str, Any], ...]
) -> None:
    tasks = with_leases(world, leases)
    for (_, key), lease in zip(tasks, leases, strict=True):
        edit(world, key, **lease)
    world.dispatch_until(tasks[-1][0].home.second)
    world.drain()
    assert world.receiver.task_ids == []
    world.sweep_past(tasks[-1][0].home.second)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task, _ in tasks)


def test_the_sweep_deletes_a_damaged_lease_and_sends_its_page_again(world: World) -> None:
    leases = LEASES + LEASES_OF_ANOTHER_KIND
    tasks = with_leases(world, leases)
    world.dispatch_until(tasks[-1][0].home.second)
    for message in world.receive():
        world.sqs.delete_message(
            QueueUrl=world.settings.slice_queue_url, ReceiptHandle=message["ReceiptHandle"]
        )
    for (_, key), lease in zip(tasks, leases, strict=True):
        edit(world, key, **lease)
    world.sweep_past(tasks[-1][0].home.second)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task, _ in tasks)


def test_a_damaged_header_is_ignored(world: World) -> None:
    _, healthy = in_a_page(world)
    place = {"S": f"{healthy[0].home.second:011d}#"}
    edit(world, {**key_of(world, healthy[0]), "place": place}, shards={"N": "1000000000"})
    check_only_healthy_are_delivered(world, [], healthy)


def test_an_entry_that_points_nowhere_is_ignored_and_reported(world: World) -> None:
    _, healthy = in_a_page(world)
    for home in ({"S": "nowhere"}, {"N": "1"}, {"S": "0:9"}, None):
        entry = world.entry_writer.put(healthy[0], healthy[0].due_ms)
        edit(world, entry_key(world, entry), home=home)
    check_only_healthy_are_delivered(world, [], healthy)
    assert len(audited(world, healthy[0])) == 4


@pytest.mark.parametrize("days", [0, 31])
def test_an_entry_without_a_home_is_worked_off_and_reported_if_the_home_was_deleted_early(
    world: World, days: int, caplog: pytest.LogCaptureFixture
) -> None:
    gone = world.created(in_ms=400 * 86_400_000)
    due_ms = world.clock.now_ms() + days * 86_400_000 + 10_000
    entry = world.entry_writer.put(gone, due_ms)
    delete(world, key_of(world, gone))
    healthy = [world.created(in_ms=due_ms - world.clock.now_ms()) for _ in range(3)]
    if days:
        world.pointers.skip_to(pointers.TIME, world.origin, entry.second - 10)
    check_only_healthy_are_delivered(world, [gone], healthy)
    assert called(world, [gone]) == []

    reported = [r for r in caplog.records if getattr(r, "action", "") == "home-gone"]
    assert [r.task_id for r in reported] == ([] if days else [gone.task_id])  # type: ignore[attr-defined]
    assert entry_exists(world, entry) is False, "it is worked off like any other"


def entry_exists(world: World, entry: Address) -> bool:
    return entry in world.entries_elsewhere()


def test_an_item_with_an_invalid_place_is_ignored(world: World) -> None:
    _, healthy = in_a_page(world)
    for rest in (".", ".5", "./", ".500#", "/x", "~", "~x", "?"):
        place = {"S": f"{healthy[0].home.second:011d}{rest}"}
        edit(world, {**key_of(world, healthy[0]), "place": place}, status={"S": "pending"})
    check_only_healthy_are_delivered(world, [], healthy)


@pytest.mark.exhaustive
def test_a_history_of_any_length_is_cut_to_the_last_ten_attempts(world: World) -> None:
    (poisoned,), healthy = in_a_page(world)
    row = f'[{NOON_MS},0,0,"retry",0,503,""]'
    edit(world, key_of(world, poisoned), history={"S": f"[{','.join([row] * 9_000)}]"})
    check_only_healthy_are_delivered(world, [poisoned], healthy)
    assert len(world.read(poisoned).history) == 10


def test_a_task_that_cannot_be_called_dies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The URL is text, which the target checks, for this task only."""
    (poisoned,), healthy = in_a_page(world)
    edit(world, key_of(world, poisoned), callback={"S": '{"url":"nonsense"}'})
    target = HttpTarget(clock=world.clock, allowed_private_cidrs=())
    receive = world.receiver.call

    async def call(callback: Any, *rest: Any) -> Any:
        return await (target.call if callback.url == "nonsense" else receive)(callback, *rest)

    monkeypatch.setattr(world.receiver, "call", call)
    check_only_healthy_are_delivered(world, [poisoned], healthy)
    assert world.read(poisoned).status is Status.DEAD


def test_lists_leave_out_unreadable_tasks(world: World) -> None:
    poisoned = world.created_by_key(world.new(60_000, key="order-1")).task
    healthy = world.created_by_key(world.new(60_000, key="order-2")).task
    edit(world, key_of(world, poisoned), payload={"S": "{rubbish"})
    listed = world.list_tasks(ListRequest(ListQuery("orders"))).tasks
    assert [task.task_id for task in listed] == [healthy.task_id]
    with pytest.raises(UnreadableItem):
        world.change_pending.find(poisoned.home)


def test_an_unreadable_task_in_retry_gets_no_new_entries(world: World) -> None:
    world.receiver.answer = lambda received: BUSY
    task = world.created(in_ms=20_000, retry=RetryPolicy(5, delays_seconds=(30.0,)))
    world.dispatch_until(task.home.second)
    world.drain()
    entry = world.read(task).entry
    edit(world, key_of(world, task), callback={"S": "{"})
    world.sweep_past(entry.second)

    assert len(world.receiver.received) == 1
    assert world.entries_elsewhere() == []


def test_a_task_repaired_by_hand_can_be_redriven_as_dead(world: World) -> None:
    (poisoned,), _ = in_a_page(world)
    callback = {"S": '{"url":"https://receiver.example/paid"}'}
    edit(world, key_of(world, poisoned), callback={"S": "{"})
    world.sweep_past(poisoned.home.second)
    edit(world, key_of(world, poisoned), callback=callback, status={"S": "dead"})
    world.redrive(poisoned.task_id)
    world.drain()

    assert world.read(poisoned).status is Status.DELIVERED
    second = world.read(poisoned).entry.second
    assert world.audit(AuditRequest(second, second)).findings == []
