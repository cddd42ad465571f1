"""Rows of the previous release are read and written again by this one: byte for byte the same."""

import json
from typing import Any

from duewheel.rules.businesses.settings import Business, Defaults
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.queue_messages import decode, encode
from duewheel.stores.businesses import settings
from duewheel.stores.tasks import codec, idempotency_records
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.timers import timers
from tests.support.cases import each_case
from tests.support.clock import ManualClock
from tests.upgrade.golden import item_from, kept

BUCKETS = 10_000_000
WHEEL = [item_from(item) for item in kept("wheel")]
REGISTRY = [item_from(item) for item in kept("registry")]
MESSAGES: list[str] = kept("messages")


def of_kind(start: str) -> list[dict[str, Any]]:
    return [item for item in REGISTRY if item["kind"]["S"].startswith(start)]


def store() -> TaskStore:
    client: Any = None  # no call is made
    return TaskStore(
        client=client, clock=ManualClock(), table="wheel", buckets=BUCKETS, list_index=True
    )


@each_case(
    "item",
    [item for item in WHEEL if "status" in item],
)
def test_a_task_is_written_again_unchanged(item: dict[str, Any]) -> None:
    written = codec.task_item(codec.task_from(item), BUCKETS, listed="biz_part" in item)
    # Since then the index of dead tasks has partitions, as the list has.
    if "dead_biz" in item and item["dead_biz"] == item["biz_type"]:
        assert written.pop("dead_biz") == item["biz_part"]
        item = {name: value for name, value in item.items() if name != "dead_biz"}
    assert written == item


@each_case(
    "item",
    [item for item in WHEEL if codec.is_reentry(item)],
)
def test_an_entry_is_written_again_unchanged(item: dict[str, Any]) -> None:
    entry = codec.reentry_from(item)
    assert entry.written_ms is not None
    address = codec.address_of(item)
    assert codec.reentry_item(address, entry.home, BUCKETS, entry.written_ms) == item


@each_case("text", MESSAGES)
def test_a_message_is_written_again_unchanged(text: str) -> None:
    assert encode(decode(text)) == text


def test_the_record_of_a_call_in_a_message_is_written_again_unchanged() -> None:
    texts = [text for body in MESSAGES for text in getattr(decode(body), "called", ())]
    assert texts
    for text in texts:
        task: Task = store().from_text(text)
        assert json.loads(store().as_text(task)) == json.loads(text)


@each_case("item", of_kind("business"))
def test_a_business_is_written_again_unchanged(item: dict[str, Any]) -> None:
    none: Any = None
    read = settings.BusinessStore(
        client=none, clock=ManualClock(), table="registry", defaults=Defaults(7, 10.0, 30.0)
    )
    business: Business = read._from(item)
    assert business.damaged is None
    assert settings._item(business) == item


@each_case(
    "item",
    [item for item in of_kind("timer#") if "rules" in item],
)
def test_a_timer_is_written_again_unchanged(item: dict[str, Any]) -> None:
    assert timers._item(timers.timer_from(item)) == item


@each_case("item", of_kind("idempotency#"))
def test_the_record_of_a_request_is_written_again_unchanged(item: dict[str, Any]) -> None:
    name = item["kind"]["S"].removeprefix("idempotency#")
    assert idempotency_records._item(idempotency_records._record(name, item)) == item
