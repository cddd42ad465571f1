"""This release carries on with what the previous release wrote, until everything is finished."""

import inspect
import json
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from duewheel.rules.access.api_keys import ApiKey
from duewheel.rules.history.changes import KeptChanges
from duewheel.rules.preconditions import Precondition
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.sweep.minute_statistics import StatsRequest
from duewheel.rules.tasks.listing import ListQuery, ListRequest
from duewheel.rules.tasks.task import Made, Status, Task
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.queue_messages import (
    DirectMessage,
    Message,
    PageMessage,
    ReleaseMessage,
    decode,
)
from duewheel.stores import registry_keys
from duewheel.stores.access.api_keys import ApiKeyStore
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.stores.secrets import CURSOR, read_or_record
from duewheel.stores.tasks import codec
from duewheel.stores.wheel import pointers
from local.aws.emulator import Emulator
from local.aws.resources import Resources
from tests.support import timers
from tests.support.clock import ManualClock
from tests.support.world import CALLER, LAMBDA_MS, World
from tests.upgrade.golden import item_from, kept, written
from tests.upgrade.story import requested, tell

MINUTES = 30  # by then everything has ended that is not due far ahead
WHEEL = [item_from(item) for item in kept("wheel")]
REGISTRY = [item_from(item) for item in kept("registry")]
SECRETS = [item_from(item) for item in kept("secrets")]
MESSAGES: list[str] = kept("messages")
NOW_MS: int = kept("moment")["now_ms"]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def upgraded(emulator: Emulator, resources: Resources, clock: ManualClock) -> Iterator[World]:
    """This release, on the tables and queues of the previous one. Every message comes again, as SQS
    may deliver it twice."""
    world = World(emulator, resources, clock)
    world._numbers = count(1_000_000)  # random bytes other than the previous one
    kept_items = (("wheel_table", WHEEL), ("registry_table", REGISTRY), ("secrets_table", SECRETS))
    for table, items in kept_items:
        for item in items:
            world.unrecorded.put_item(TableName=getattr(world.settings, table), Item=item)
    world.wire()
    for body in MESSAGES:
        world.sqs.send_message(QueueUrl=world.queues[decode(body).lane].url, MessageBody=body)
    yield world
    world.close()


def kept_tasks() -> list[Task]:
    homes = [item for item in WHEEL if "status" in item]
    return [task for task in map(codec.task_from, homes) if task.plan is None]


def settled_by_the_record_of_a_call() -> set[str]:
    """Tasks that the previous release called and could not settle."""
    called = [text for body in MESSAGES for text in getattr(decode(body), "called", ())]
    return {codec.task_from(json.loads(text)).task_id for text in called}


def minutes_pass(world: World, minutes: int, stride: int = 10) -> None:
    """In strides, since otherwise direct entries would fall due too late for their messages."""
    for _ in range(minutes * 60 // stride):
        world.drain()
        world.dispatch_until(world.clock.now_ms() // 1000 + stride)
        world.drain()
        world.sweep_once()


def audited(world: World) -> list[Any]:
    seconds = {
        addresses.second_of(item["place"]["S"])
        for item in world.items()
        if addresses.holds_seconds(item["slot"]["S"])
    }
    found = [world.audit(AuditRequest(second, second)).findings for second in sorted(seconds)]
    return [finding for findings in found for finding in findings]


def test_the_audit_finds_nothing_in_what_the_previous_release_left(upgraded: World) -> None:
    assert audited(upgraded) == []


@pytest.mark.exhaustive
def test_all_pending_tasks_are_called_once(upgraded: World) -> None:
    minutes_pass(upgraded, MINUTES)
    assert audited(upgraded) == []
    called = Counter(upgraded.receiver.task_ids)
    done = settled_by_the_record_of_a_call()
    assert done
    until_ms = upgraded.clock.now_ms() - 60_000
    states: Counter[str] = Counter()
    for before in kept_tasks():
        after = upgraded.read(before)
        is_due = before.is_live and before.next_ms < until_ms and before.biz_type != "paused"
        ended = Status.DELIVERED if is_due else before.status
        assert after.status is ended, (before.biz_type, before.task_id)
        assert after.parked is (before.biz_type == "paused")
        is_called = is_due and before.task_id not in done
        assert called[before.task_id] == is_called, (before.biz_type, before.task_id)
        states[after.status.value] += 1
    assert set(states) == {status.value for status in Status}


@pytest.mark.exhaustive
def test_timers_of_the_previous_release_continue(upgraded: World) -> None:
    minutes_pass(upgraded, 150, stride=60)  # longer than the previous release has planned ahead
    until = upgraded.clock.now_ms() // 1000 - 60
    ran = 0
    for item in REGISTRY:
        if item["record"]["S"] != "definition":
            continue
        timer = upgraded.timers.read(registry_keys.timer_id_of(item))
        assert timer is not None
        schedule = timer.rules.schedule
        assert schedule.every_seconds
        seconds = range(schedule.anchor_second, until, schedule.every_seconds)
        expected = [second for second in seconds if second > NOW_MS // 1000]
        due = [
            task
            for task in timers.occurrences(upgraded, timer)
            if NOW_MS < task.due_ms < until * 1000
        ]
        assert [task.due_ms // 1000 for task in due] == (expected if timer.enabled else [])
        assert {task.status for task in due} <= {Status.DELIVERED}
        ran += timer.enabled
    assert ran == 2


def test_runs_of_the_previous_release_are_listed_with_those_of_step_records(
    upgraded: World,
) -> None:
    upgraded.wire(run_index=False)
    upgraded.clock.advance_ms(2 * 3_600_000)
    names = [item for item in REGISTRY if item["record"]["S"] == "definition"]
    kinds: set[bool] = set()
    for timer_id in map(registry_keys.timer_id_of, names):
        timer = upgraded.timers.read(timer_id)
        assert timer is not None
        chain = timers.chain_of(upgraded, timer)
        if chain is not None and chain.plan is not None:
            deadline_ms = upgraded.clock.now_ms() + LAMBDA_MS
            upgraded.deliver.deliver_entries.plan_timers([(chain, chain.plan)], deadline_ms)
        planned = timers.occurrences(upgraded, timer)
        homes, goes_on = upgraded.runs.page(timer_id, newest_first=True, behind=None, limit=1_000)
        assert not goes_on
        assert [home.place for home in homes] == sorted(
            (task.home.place for task in planned), reverse=True
        )
        kinds |= {task.occurrence.indexed for task in planned if task.occurrence}
    assert kinds == {True, False}


def test_tasks_of_the_previous_release_can_be_read_and_changed(upgraded: World) -> None:
    tasks = {task.task_id: task for task in kept_tasks()}
    listed = upgraded.list_tasks(ListRequest(ListQuery("crowd"), 100))
    assert {task.task_id for task in listed.tasks} == {
        task_id for task_id, task in tasks.items() if task.biz_type == "crowd"
    }
    for task in tasks.values():
        if task.key is not None:
            assert upgraded.home_of_key(task.biz_type, task.key) == task.home
    (dead,) = [task for task in tasks.values() if task.status is Status.DEAD]
    upgraded.redrive(dead.task_id)
    far = next(task for task in tasks.values() if task.biz_type == "other")
    upgraded.cancel(far.task_id)
    assert upgraded.read(far).status is Status.CANCELLED
    paused = next(task for task in tasks.values() if task.biz_type == "paused")
    upgraded.configure_business.pause("paused", Precondition(), paused=False, by=CALLER)
    minutes_pass(upgraded, 3)
    assert upgraded.read(paused).status is Status.DELIVERED
    assert upgraded.read(dead).status is Status.DELIVERED


def test_a_request_under_an_idempotency_key_gets_the_same_answer(upgraded: World) -> None:
    expected = [task.task_id for task in kept_tasks() if task.biz_type == "asked"]
    answers = [made for number in range(2) for made in requested(upgraded, number)]
    assert sorted(made.task.task_id for made in answers if isinstance(made, Made)) == sorted(
        expected
    )


def test_statistics_definitions_keys_and_changes_are_read(upgraded: World) -> None:
    minute = NOW_MS // 60_000
    total = upgraded.read_statistics("orders", StatsRequest(minute - 60, minute)).total
    assert total.created
    table = upgraded.settings.registry_table
    secret = read_or_record(upgraded.unrecorded, table, CURSOR, b"another")
    assert secret == b"cursors are sealed with this"
    records = ChangeRecords(upgraded.unrecorded, table)
    for item in REGISTRY:
        kind, _, name = item["kind"]["S"].partition("#")
        if kind == registry_keys.BUSINESS_KIND:
            assert upgraded.businesses.read_whole(item["record"]["S"]).version
        if kind == registry_keys.API_KEY_KIND:
            keys = ApiKeyStore(upgraded.unrecorded, table)
            assert isinstance(keys.read(item["record"]["S"]), ApiKey)
        if kind == "changes":
            of_kind, _, of_name = name.partition("#")
            changes = records.read(of_kind, of_name, NOW_MS)
            assert isinstance(changes, KeptChanges)
            assert changes.changes
    assert upgraded.businesses.read_whole("slow").own.lane
    assert upgraded.pointer(pointers.TIME).position > upgraded.origin


def test_every_stored_secret_opens(upgraded: World) -> None:
    opened = [
        upgraded.secret_store.open(item["record"]["S"], stored)
        for item in REGISTRY
        if item["kind"]["S"] == registry_keys.BUSINESS_KIND
        for stored in upgraded.businesses.read_whole(item["record"]["S"]).own.stored_secrets
    ]
    assert len(opened) == len(SECRETS)


# Completeness of the kept items and messages


def sorts_of_wheel_items() -> set[str]:
    sorts = set()
    for item in WHEEL:
        slot, place = item["slot"]["S"], item["place"]["S"]
        if not addresses.holds_seconds(slot):
            sorts.add(slot.partition("#")[0])
        elif addresses.is_header(place):
            sorts.add("header")
        elif addresses.is_lease(place):
            sorts.add("lease")
        else:
            sorts.add("re-entry" if codec.is_reentry(item) else "task")
    return sorts


def test_every_sort_of_item_of_the_wheel_is_kept() -> None:
    assert sorts_of_wheel_items() == {"task", "re-entry", "header", "lease", "key", "parked"}


def test_every_attribute_that_a_task_may_have_is_kept() -> None:
    """Compared with a task that has all attributes, so that a new one is missed here at the next
    release."""
    found = {name for item in WHEEL if "status" in item for name in item}
    known = {*codec._ALWAYS, *codec._AT_TIMES, *codec._TEXTS}
    since = {"first_second", "flow_key", "parked_key", "result", "notice_id", "marks"}
    assert known - since <= found


NEW_RECORDS = {
    ("turns", "permits"),
    ("seen", "x"),
    ("timer-names", "x"),
    ("idempotency", "made"),
    ("open-operations", "x"),
    ("operations", "x"),
    ("operation", "x"),
    ("operation", "ids"),
    ("operation", "refused#0000000001"),
    ("backfilled", "000000000001"),
}  # since the last release


def test_every_kind_of_record_of_the_registry_is_kept() -> None:
    found = {(item["kind"]["S"].partition("#")[0], item["record"]["S"]) for item in REGISTRY}
    kinds = _kinds() - NEW_RECORDS
    assert {kind for kind, _ in found} == {kind for kind, _ in kinds}
    assert {pair for pair in kinds if "x" not in pair[1]} <= found
    assert found.isdisjoint(NEW_RECORDS), "these are in the golden files now"


def _kinds() -> set[tuple[str, str]]:
    """The kinds of records, from the results of the module's functions for any name."""
    kinds = {(registry_keys.SHAPE["kind"]["S"], registry_keys.SHAPE["record"]["S"])}
    for name, function in inspect.getmembers(registry_keys, inspect.isfunction):
        parameters = inspect.signature(function).parameters.values()
        if name == "key" or any(one.annotation not in (str, int) for one in parameters):
            continue
        made = function(*(1 if one.annotation is int else "x" for one in parameters))
        if isinstance(made, dict):
            record = made["record"]["S"]
            kinds.add((made["kind"]["S"].partition("#")[0], "x" if "x" in record else record))
        elif name.endswith("_kind"):
            kinds.add((made.partition("#")[0], "x"))
    return kinds


def _shape(message: Message) -> str:
    match message:
        case PageMessage():
            says = [name for name in ("after", "places", "called") if getattr(message, name)]
            return " ".join(["page", message.lane.value, *says])
        case DirectMessage():
            return "direct"
        case ReleaseMessage():
            return "release"


SORTS = {
    "page main",
    "page main after",
    "page main places called",
    "page slow places",
    "direct",
    "release",
}


def test_every_sort_of_message_is_kept() -> None:
    assert {_shape(decode(body)) for body in MESSAGES} == SORTS


@pytest.mark.exhaustive
def test_the_story_sends_every_sort_of_message(world: World) -> None:
    tell(world)
    assert {_shape(decode(body)) for body in written(world)["messages"]} == SORTS
