"""Many keys under one prefix, listed and cancelled in pages, also after interruptions."""

import os
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Attempt, Task
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.addresses import address_at, address_of_task
from duewheel.stores.tasks import codec
from duewheel.wiring import process
from duewheel.wiring import wheel as wheel_wiring
from tests.functions.conftest import call
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock
from tests.support.recorder import Call, Recorder
from tests.support.straight import put_straight

PATH = "/v1/businesses/orders/tasks"
PREFIX = "order-17:"
NEIGHBOURS = ["order-1", "order-17", "order-17.", "order-170:1", "order-16:9", "order-18:0", "z"]
DAY_SECONDS = 86_400
MANY = 10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "prove" else 3_000
CALLED = Attempt(
    at_ms=0, lateness_ms=0, duration_ms=0, outcome="delivered", entry_second=0, status_code=200
)


class Crash(BaseException):
    """Stands for the end of the process."""


def keys_numbered(numbers: Iterable[int]) -> list[str]:
    return [f"{PREFIX}{number:05d}" for number in numbers]


def create(key: str, biz_type: str = "orders", delay_seconds: float = DAY_SECONDS) -> Any:
    callback = {"url": "https://receiver.example/"}
    body = {"biz_type": biz_type, "key": key, "delay_seconds": delay_seconds, "callback": callback}
    status, task = call("POST", "/v1/tasks", body)
    assert status == 201, task
    return task


def fill(keys: Sequence[str], ended: Iterable[str] = ()) -> None:
    """Write keyed tasks directly to the table, in random order, as copies of a created one. The
    ended ones are copies of a cancelled one."""
    store, left_out = wheel_wiring.tasks(), set(ended)
    pattern = store.get(address_of_task(create("z:pattern")["task_id"]))
    assert pattern is not None
    key_item = item_of_key("z:pattern")
    items: list[dict[str, Any]] = []
    for number, key in enumerate(Random(17).sample(keys, len(keys))):
        home = address_at(pattern.due_ms + number, number.to_bytes(8, "big"))
        task = replace(pattern, home=home, entry=home, key=key)
        named = {"slot": {"S": addresses.key_slot("orders", key)}, "place": {"S": key}}
        if key in left_out:
            task = lifecycle.cancelled(task, "cancelled by caller", task.created_ms, DAY_SECONDS)
            named["expires_at"] = {"N": str(task.expires_at)}
        items += [store.item(task), {**key_item, **named, "task": {"S": home.name}}]
    put_straight(store.table, items)


def item_of_key(key: str) -> dict[str, Any]:
    name = {"slot": {"S": addresses.key_slot("orders", key)}, "place": {"S": key}}
    answer = process.dynamodb().get_item(TableName=wheel_wiring.tasks().table, Key=name)
    return dict(answer["Item"])


def page(method: str, prefix: str = PREFIX, cursor: str | None = None, limit: int = 100) -> Any:
    query = f"key_prefix={prefix}" + (f"&limit={limit}" if method == "GET" else "")
    status, answer = call(method, PATH, query=query + (f"&cursor={cursor}" if cursor else ""))
    assert status == 200, answer
    return answer


def walk(method: str, prefix: str = PREFIX, cursor: str | None = None) -> list[Any]:
    pages = [page(method, prefix, cursor)]
    while pages[-1]["cursor"] is not None:
        pages.append(page(method, prefix, pages[-1]["cursor"]))
    return pages


def listed(prefix: str = PREFIX, cursor: str | None = None) -> list[str]:
    return [task["key"] for page in walk("GET", prefix, cursor) for task in page["tasks"]]


@pytest.mark.soak
def test_each_live_key_of_thousands_is_listed_once_and_in_order(wired: ManualClock) -> None:
    keys = keys_numbered(range(MANY))
    ended = {*keys[::7], *keys[1_000:1_500]}
    fill([*keys, *NEIGHBOURS], ended)
    pages = walk("GET")

    assert [task["key"] for page in pages for task in page["tasks"]] == [
        key for key in keys if key not in ended
    ]
    assert max(len(page["tasks"]) for page in pages) <= 100
    assert [] in [page["tasks"] for page in pages[:-1]], "some pages have only ended tasks"
    assert len(pages) <= MANY / 100 * 1.2, "pages are nearly full"


@pytest.mark.exhaustive
def test_a_cursor_keeps_its_position_after_changes_of_earlier_keys(wired: ManualClock) -> None:
    keys = keys_numbered(range(0, 600, 2))
    fill(keys)
    first = page("GET")
    seen = [task["key"] for task in first["tasks"]]
    last = int(seen[-1].removeprefix(PREFIX))

    call("DELETE", f"{PATH}/{seen[0]}")
    settle(seen[1])
    settle(seen[-1])  # the key of the cursor
    delete_record(seen[2])
    for number in (1, last - 1):
        create(f"{PREFIX}{number:05d}")
    gone, come = keys_numbered([last + 6])[0], keys_numbered([last + 1, 599])
    call("DELETE", f"{PATH}/{gone}")
    for key in come:
        create(key)

    ahead = {*keys, *come} - {*seen, gone}
    assert seen == keys[: len(seen)]
    assert listed(cursor=first["cursor"]) == sorted(ahead)


def settle(key: str) -> None:
    """Settle the task as delivered, as a notifier does."""
    task = task_of(key)
    now_ms = task.updated_ms
    ended = lifecycle.delivered(task, CALLED, now_ms, DAY_SECONDS)
    wheel_wiring.tasks().put_delivered([ended])
    wheel_wiring.keys().release([ended])


def delete_record(key: str) -> None:
    """Delete both items, as the time to live does long after the end of the task, in any order."""
    settle(key)
    home = task_of(key).home
    table, client = wheel_wiring.tasks().table, process.dynamodb()
    client.delete_item(TableName=table, Key=codec.key(home, process.settings().buckets))
    name = {"slot": {"S": addresses.key_slot("orders", key)}, "place": {"S": key}}
    client.delete_item(TableName=table, Key=name)


def task_of(key: str) -> Task:
    named = wheel_wiring.keys().read("orders", key)
    assert named is not None
    task = wheel_wiring.tasks().get(named.home)
    assert task is not None
    return task


def test_a_shorter_prefix_includes_the_keys_of_a_longer_one(wired: ManualClock) -> None:
    keys = keys_numbered(range(20))
    fill([*keys, *NEIGHBOURS])
    create(keys[0], biz_type="payments")

    assert listed("order-17:") == keys
    assert listed("order-17") == sorted([*keys, "order-17", "order-17.", "order-170:1"])
    assert listed("order-1") == sorted([*keys, *NEIGHBOURS[:-1]])
    assert listed("order-17:0000") == keys[:10]
    assert listed("order-17:00007") == ["order-17:00007"], "a whole key is a prefix, too"
    assert listed("order-17:00007x") == []


@pytest.mark.exhaustive
def test_a_cancelled_prefix_frees_its_keys_and_keeps_other_prefixes(wired: ManualClock) -> None:
    keys = keys_numbered(range(150))
    ended, soon = keys[::5], keys_numbered([900, 901])
    fill([*keys, *NEIGHBOURS], ended)
    create(keys[0], biz_type="payments")
    for key in soon:
        create(key, delay_seconds=2.4)
    pages = walk("DELETE")

    assert sum(page["cancelled"] for page in pages) == len(keys) - len(ended)
    assert [key for page in pages for key in page["too_late"]] == soon
    assert listed() == soon
    assert listed("order-1") == sorted([*soon, *NEIGHBOURS[:-1]])
    assert call("GET", f"/v1/businesses/payments/tasks/{keys[0]}")[1]["status"] == "pending"
    for key in (keys[0], keys[1], keys[-1]):
        assert "expires_at" in item_of_key(key)
        create(key)
    assert listed() == [keys[0], keys[1], keys[-1], *soon]


def from_its_cursor(reached: str | None) -> str | None:
    return reached


def from_the_start(reached: str | None) -> str | None:
    return None


@pytest.mark.parametrize(
    "takes_up", quick_first([from_its_cursor, from_the_start], pytest.mark.exhaustive)
)
def test_a_cancel_that_died_within_a_page_is_completed(
    wired: ManualClock, takes_up: Callable[[str | None], str | None]
) -> None:
    keys = keys_numbered(range(140))
    fill([*keys, *NEIGHBOURS])
    reached = page("DELETE")["cursor"]
    before = len(listed())
    die_at_update(61)
    with pytest.raises(Crash):
        page("DELETE", cursor=reached)
    # A cancel has two updates, of the task and of its key: of the 31st only the first was made.
    assert len(listed()) == before - 30 - 1

    pages = walk("DELETE", cursor=takes_up(reached))
    assert sum(page["cancelled"] for page in pages) == before - 31
    assert listed() == []
    assert listed("order-1") == sorted(NEIGHBOURS[:-1])
    for key in (keys[0], keys[len(keys) - before + 30], keys[-1]):
        create(key)


def die_at_update(number: int) -> None:
    """The process ends at the update of this number from now on."""
    recorder = Recorder()
    recorder.attach(process.dynamodb())

    def hook(_: Call) -> None:
        if recorder.operations().count("UpdateItem") == number:
            recorder.after = None
            raise Crash

    recorder.after = hook
