"""Items edited by hand into nonsense: set aside and reported, and everything else goes on."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from duewheel.rules.audit_request import AuditRequest
from duewheel.rules.list_request import ListRequest
from duewheel.rules.listing import ListQuery
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.task import RetryPolicy, Status, Task
from duewheel.stores import pointers
from tests.support.clock import NOON_MS
from tests.support.damage import edit, key_of
from tests.support.receiver import BUSY
from tests.support.world import World

ATTRIBUTES = (
    *("biz_type", "status", "callback", "due_ms", "next_ms", "created_ms", "updated_ms"),
    *("attempts", "version", "payload"),
)
NONSENSE: tuple[dict[str, Any], ...] = (
    {"S": ""},
    {"S": "{"},
    {"S": "[" * 5_000},
    {"S": '{"url": 17}'},
    {"S": '{"url": "\\ud800"}'},
    {"S": "nonsense"},
    {"S": "x" * 300_000},
    {"N": "-1"},
    {"N": "1.5"},
    {"N": "1000000000000000000"},
    {"N": "1E+60"},
    {"BOOL": True},
    {"NULL": True},
    {"L": [{"S": "x"}]},
    {"M": {}},
    {"SS": ["x"]},
)
MORE = (
    "entry",
    "home",
    "retry",
    "history",
    "revivals",
    "redrives",
    "expires_after",
    "key",
    "error",
)


def in_a_page(world: World) -> tuple[Task, list[Task]]:
    poisoned, *healthy = (world.created(in_ms=30_000) for _ in range(4))
    return poisoned, healthy


def goes_on_without_it(world: World, poisoned: Task, healthy: list[Task]) -> None:
    world.dispatch_until(poisoned.home.second)
    world.drain()
    called = world.receiver.task_ids
    assert sorted(set(called) - {poisoned.task_id}) == sorted(task.task_id for task in healthy)
    assert all(called.count(task.task_id) == 1 for task in healthy)
    assert {world.read(task).status for task in healthy} == {Status.DELIVERED}
    assert world.sweep_second_once(poisoned.home.second), "the sweep passes"
    world.drain()
    assert all(world.receiver.task_ids.count(task.task_id) == 1 for task in healthy)
    # No second of more than eleven digits was ever written.
    places = [item["place"]["S"] for item in world.items()]
    assert all(re.match(r"[0-9]{11}[^0-9]", place) for place in places)


@pytest.mark.parametrize("attribute", [name for name in ATTRIBUTES if name != "payload"])
def test_a_task_without_one_of_its_attributes_is_set_aside(world: World, attribute: str) -> None:
    poisoned, healthy = in_a_page(world)
    edit(world, key_of(world, poisoned), **{attribute: None})
    goes_on_without_it(world, poisoned, healthy)

    assert poisoned.task_id not in world.receiver.task_ids
    (finding,) = world.audit(AuditRequest(poisoned.home.second, poisoned.home.second)).findings
    assert (finding.wrong, finding.attribute) == ("unreadable", attribute)
    assert finding.task_id == poisoned.task_id


@settings(
    max_examples=25,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    attribute=st.sampled_from([*ATTRIBUTES, *MORE]),
    nonsense=st.sampled_from(NONSENSE),
)
def test_whatever_one_item_holds_its_neighbours_are_delivered_once_and_the_sweep_passes(
    world: World, attribute: str, nonsense: dict[str, Any]
) -> None:
    assume(attribute != "due_ms" or "N" in nonsense)  # a key of the list index: AWS refuses others
    world.receiver.received.clear()
    poisoned, healthy = in_a_page(world)
    edit(world, key_of(world, poisoned), **{attribute: nonsense})
    goes_on_without_it(world, poisoned, healthy)

    findings = world.audit(AuditRequest(poisoned.home.second, poisoned.home.second)).findings
    try:
        task = world.read(poisoned)
    except UnreadableItem:
        assert [finding.task_id for finding in findings] == [poisoned.task_id]
    else:  # what this attribute may hold after all, or nobody missed: then it was called
        assert findings == []
        assert task.status is Status.DELIVERED


def test_what_is_unreadable_is_reported_by_its_place_and_never_by_what_it_holds(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    poisoned, _ = in_a_page(world)
    edit(world, key_of(world, poisoned), callback={"S": "secret"})
    world.dispatch_until(poisoned.home.second)
    world.drain()

    (record,) = [r for r in caplog.records if getattr(r, "action", "") == "unreadable"]
    assert (record.place, record.wrong) == (poisoned.home.place, "callback")  # type: ignore[attr-defined]
    assert "secret" not in str(vars(record))


@pytest.mark.parametrize(
    "lease",
    [
        {"tries": {"S": "many"}},
        {"owner": {"S": "me"}, "until_ms": {"S": "later"}},
        {"owner": {"S": "me"}, "until_ms": {"N": "9999999999999"}},
        {"owner": {"S": "me"}, "until_ms": {"N": "1000000000000000000"}},
        {"end": {"S": "zzz"}},
        {"rest": {"L": [{"N": "1"}]}},
        {"tries": {"N": "-1000000"}},
    ],
)
@pytest.mark.parametrize("finder", ["notifier", "sweep"])
def test_a_damaged_lease_is_forgotten(world: World, lease: dict[str, Any], finder: str) -> None:
    wrong_kind = any("S" in lease.get(name, {}) for name in ("tries", "until_ms"))
    if finder == "notifier" and wrong_kind:
        pytest.skip("AWS takes values of two kinds for different; moto cannot compare them")
    poisoned, healthy = in_a_page(world)
    place = {"S": f"{poisoned.home.second:011d}~0"}
    if finder == "notifier":
        edit(world, {**key_of(world, poisoned), "place": place}, **lease)
        world.dispatch_until(poisoned.home.second)
        world.drain()
    else:
        world.dispatch_until(poisoned.home.second)
        for message in world.receive():
            world.sqs.delete_message(
                QueueUrl=world.settings.slice_queue_url, ReceiptHandle=message["ReceiptHandle"]
            )
        edit(world, {**key_of(world, poisoned), "place": place}, **lease)
    world.sweep_past(poisoned.home.second)
    tasks = [poisoned, *healthy]
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_damaged_header_counts_for_nothing(world: World) -> None:
    poisoned, healthy = in_a_page(world)
    place = {"S": f"{poisoned.home.second:011d}#"}
    edit(world, {**key_of(world, poisoned), "place": place}, shards={"N": "1000000000"})
    goes_on_without_it(world, healthy[0], [poisoned, *healthy[1:]])


@pytest.mark.parametrize("home", [{"S": "nowhere"}, {"N": "1"}, {"S": "0:9"}, None])
def test_an_entry_that_points_nowhere_is_passed(world: World, home: Any) -> None:
    poisoned, healthy = in_a_page(world)
    entry = world.reenter.put(world.created(in_ms=600_000).home, poisoned.due_ms)
    key = {**key_of(world, poisoned), "place": {"S": entry.place}}
    edit(world, key, home=home)
    goes_on_without_it(world, poisoned, healthy)


def test_a_place_that_is_none_is_passed(world: World) -> None:
    poisoned, healthy = in_a_page(world)
    for rest in (".", ".5", "./", ".500#", "/x", "~", "~x", "?"):
        place = {"S": f"{poisoned.home.second:011d}{rest}"}
        edit(world, {**key_of(world, poisoned), "place": place}, status={"S": "pending"})
    goes_on_without_it(world, poisoned, healthy)


def test_a_history_of_any_length_is_cut_to_what_is_kept(world: World) -> None:
    poisoned, healthy = in_a_page(world)
    row = f'[{NOON_MS},0,0,"retry",0,503,""]'
    edit(world, key_of(world, poisoned), history={"S": f"[{','.join([row] * 9_000)}]"})
    goes_on_without_it(world, poisoned, healthy)
    assert len(world.read(poisoned).history) == 10


def test_what_cannot_be_called_is_called_off_and_is_dead(world: World) -> None:
    """The URL is text; what it says is the target's to judge, for this one task."""
    poisoned, healthy = in_a_page(world)
    edit(world, key_of(world, poisoned), callback={"S": '{"url":"nonsense"}'})
    goes_on_without_it(world, poisoned, healthy)
    assert poisoned.task_id in world.receiver.task_ids


def test_lists_go_on_without_what_is_unreadable(world: World) -> None:
    poisoned = world.created_by_key(world.new(60_000, key="order-1")).task
    healthy = world.created_by_key(world.new(60_000, key="order-2")).task
    edit(world, key_of(world, poisoned), payload={"S": "{rubbish"})
    listed = world.list_tasks(ListRequest(ListQuery("orders"))).tasks
    assert [task.task_id for task in listed] == [healthy.task_id]
    with pytest.raises(UnreadableItem):
        world.look_up.task(poisoned.task_id)


def test_an_unreadable_retry_is_not_given_new_entries_for_ever(world: World) -> None:
    world.receiver.answer = lambda received: BUSY
    task = world.created(in_ms=20_000, retry=RetryPolicy(5, delays_seconds=(30.0,)))
    world.dispatch_until(task.home.second)
    world.drain()
    entry = world.read(task).entry
    edit(world, key_of(world, task), callback={"S": "{"})
    world.sweep_past(entry.second + 600)

    assert len(world.receiver.received) == 1
    assert world.entries_elsewhere() == []
    assert world.pointer(pointers.SWEEP).position >= entry.second + 600


def test_a_task_mended_by_hand_is_brought_back_as_a_dead_one(world: World) -> None:
    poisoned, _ = in_a_page(world)
    callback = {"S": '{"url":"https://receiver.example/paid"}'}
    edit(world, key_of(world, poisoned), callback={"S": "{"})
    world.sweep_past(poisoned.home.second)
    edit(world, key_of(world, poisoned), callback=callback, status={"S": "dead"})
    world.redrive(poisoned.task_id)
    world.drain()

    assert world.read(poisoned).status is Status.DELIVERED
    second = world.read(poisoned).entry.second
    assert world.audit(AuditRequest(second, second)).findings == []
