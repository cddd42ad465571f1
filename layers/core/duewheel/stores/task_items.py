"""A task as an item of the wheel, and back.

Nested values are kept as JSON text: one attribute, no type markers, small and quick.
The payload is kept as the source text the caller sent. An item that was edited into what
is never written here is unreadable as a whole, so that nobody acts on a half of it.
"""

from collections.abc import Mapping
from typing import Any

from duewheel.rules import addresses
from duewheel.rules.addresses import SECOND_MAX, Address
from duewheel.rules.outcome import Verdict
from duewheel.rules.source_text import is_json
from duewheel.rules.sweep_verdict import HomeState, Reentry
from duewheel.rules.task import BIZ_TYPE, KEY, Callback, Promise, Status, Task
from duewheel.stores import attributes
from duewheel.stores.attributes import ITEM_VERSION, Nonsense, decimal, reads_an_item
from duewheel.stores.callback_rows import callback_of_row, callback_row
from duewheel.stores.retry_rows import COUNT_MAX, DURATION_SECONDS_MAX, retry_of_row, retry_row
from duewheel.stores.task_rows import (
    VERSION_MAX,
    attempt_row,
    compact,
    history_of,
    occurrence_of,
    occurrence_row,
    place_from,
    plan_from,
    plan_row,
    promise_row,
    revivals_of,
    turn_from,
)

# Twice what a create takes. An item of 400 KB could not be settled, nor those written with it.
_PAYLOAD_BYTES_MAX = 131_072

# What a task is promised: a turn, as older releases take it, or a place in a line.
_TURN, _PLACE_IN_LINE = "promise", "line"

# attribute: field, for texts that are stored as they are
_TEXTS = {
    "payload": "payload",
    "reason": "reason",
    "error": "last_error",
    "key": "key",
    "digest": "digest",
    "notice_of": "notice_of",
}
# attributes that are fields
_ALWAYS = ("due_ms", "next_ms", "created_ms", "updated_ms", "attempts", "version")
_AT_TIMES = ("settled_ms", "expires_at", "lateness_ms", "max_due_ms", "first_second")
_LARGEST = {
    "attempts": COUNT_MAX,
    "version": VERSION_MAX,
    "expires_at": SECOND_MAX,
    "first_second": SECOND_MAX,
}


def key(address: Address, buckets: int) -> dict[str, Any]:
    return {"slot": {"S": address.slot(buckets)}, "place": {"S": address.place}}


def address_of(item: Mapping[str, Any]) -> Address:
    slot, place = item["slot"]["S"], item["place"]["S"]
    try:
        return addresses.address_from(addresses.shard_of(slot), place)
    except ValueError as error:
        raise attributes.unreadable(item, "place") from error


def address_of_entry(item: Mapping[str, Any]) -> Address:
    """The same, of an entry all of which can be read."""
    if is_reentry(item):
        reentry_from(item)
    else:
        home_state_from(item)
    return address_of(item)


def is_reentry(item: Mapping[str, Any]) -> bool:
    return "home" in item and "status" not in item


@reads_an_item
def home_of_reentry(item: Mapping[str, Any]) -> Address:
    return _named(item, "home")


@reads_an_item
def entry_named_by(item: Mapping[str, Any]) -> Address:
    """A home without `entry` names itself; it never does so by its name."""
    if "home" in item:
        raise Nonsense("home")
    home = address_of(item)
    entry = _named(item, "entry") if "entry" in item else home
    if entry == home and "entry" in item:
        raise Nonsense("entry")
    return entry


@reads_an_item
def status_of(item: Mapping[str, Any]) -> Status:
    return attributes.made(item, "status", lambda: Status(attributes.text(item, "status")))


def reentry_item(entry: Address, home: Address, buckets: int, now_ms: int) -> dict[str, Any]:
    """`written_ms` tells later whether its home may have been deleted by time."""
    return {
        **key(entry, buckets),
        "v": {"N": str(ITEM_VERSION)},
        "home": {"S": home.name},
        "written_ms": {"N": str(now_ms)},
    }


@reads_an_item
def reentry_from(item: Mapping[str, Any]) -> Reentry:
    written_ms = attributes.number(item, "written_ms") if "written_ms" in item else None
    return Reentry(_named(item, "home"), written_ms)


def task_item(task: Task, buckets: int, *, listed: bool) -> dict[str, Any]:
    item = {
        **key(task.home, buckets),
        "v": {"N": str(ITEM_VERSION)},
        "biz_type": {"S": task.biz_type},
        "status": {"S": task.status.value},
        "callback": {"S": compact(task.callback and callback_row(task.callback))},
    }
    if listed and task.plan is None:
        item["biz_part"] = {"S": addresses.partition_of_business(task.biz_type, task.home)}
    if not task.names_its_home:
        item["entry"] = {"S": task.entry.name}
    if task.redrives:
        item["redrives"] = {"N": str(task.redrives)}
        item["revivals"] = {"S": compact(task.revivals)}
    if task.status is Status.DEAD:
        item["dead_biz"] = {"S": addresses.partition_of_business(task.biz_type, task.home)}
    if task.retry is not None:
        item["retry"] = {"S": compact(retry_row(task.retry))}
    if task.expires_after_seconds is not None:
        item["expires_after"] = {"N": repr(task.expires_after_seconds)}
    if task.promise is not None:
        name = _TURN if task.promise.is_turn else _PLACE_IN_LINE
        item[name] = {"S": compact(promise_row(task.promise))}
    if task.parked:
        item["parked"] = {"BOOL": True}
    if task.history:
        item["history"] = {"S": compact([attempt_row(attempt) for attempt in task.history])}
    return item | _plain_attributes(task) | _of_a_timer(task)


def _of_a_timer(task: Task) -> dict[str, Any]:
    """What plans one is in no index."""
    item: dict[str, Any] = {}
    if task.occurrence is not None:
        item["timer"] = {"S": task.occurrence.timer_id}
        item["occurrence"] = {"S": compact(occurrence_row(task.occurrence))}
    if task.plan is not None:
        item["plan"] = {"S": compact(plan_row(task.plan))}
    return item


def _plain_attributes(task: Task) -> dict[str, Any]:
    item: dict[str, Any] = {}
    for attribute, name in _TEXTS.items():
        if (text := getattr(task, name)) is not None:
            item[attribute] = {"S": text}
    for name in (*_ALWAYS, *_AT_TIMES):
        if (number := getattr(task, name)) is not None:
            item[name] = {"N": str(number)}
    return item


@reads_an_item
def task_from(item: Mapping[str, Any]) -> Task:
    plain: dict[str, Any] = _texts(item) | _numbers(item)
    return Task(
        home=address_of(item),
        entry=entry_named_by(item),
        biz_type=_biz_type(item),
        status=status_of(item),
        callback=attributes.parsed(item, "callback", _callback_from),
        retry=attributes.parsed(item, "retry", retry_of_row) if "retry" in item else None,
        expires_after_seconds=_expires_after(item),
        redrives=_redrives(item),
        revivals=revivals_of(item),
        history=history_of(item),
        promise=_promise(item),
        parked=_parked(item),
        occurrence=occurrence_of(item),
        plan=attributes.parsed(item, "plan", plan_from) if "plan" in item else None,
        **plain,
    )


@reads_an_item
def home_state_from(item: Mapping[str, Any]) -> HomeState:
    return HomeState(
        home=address_of(item),
        entry=entry_named_by(item),
        status=status_of(item),
        next_ms=attributes.number(item, "next_ms"),
        version=attributes.number(item, "version", VERSION_MAX),
        biz_type=_biz_type(item),
        lateness_ms=attributes.number(item, "lateness_ms") if "lateness_ms" in item else None,
        failed_seconds=tuple(
            attempt.entry_second
            for attempt in history_of(item)
            if attempt.outcome != Verdict.DELIVERED
        ),
        revivals=revivals_of(item),
        parked=_parked(item),
        first_second=(
            attributes.number(item, "first_second", SECOND_MAX) if "first_second" in item else None
        ),
        is_plan="plan" in item,
        key=_readable_key(item),
        redrives=_redrives(item),
        expires_at=(
            attributes.number(item, "expires_at", SECOND_MAX) if "expires_at" in item else None
        ),
    )


def _redrives(item: Mapping[str, Any]) -> int:
    return attributes.number(item, "redrives", VERSION_MAX) if "redrives" in item else 0


def _readable_key(item: Mapping[str, Any]) -> str | None:
    """A task whose key is damaged is swept as any other."""
    key = item.get("key", {}).get("S", "")
    return key if KEY.fullmatch(key) else None


def _named(item: Mapping[str, Any], name: str) -> Address:
    return attributes.made(item, name, lambda: addresses.address_named(attributes.text(item, name)))


def _biz_type(item: Mapping[str, Any]) -> str:
    biz_type = attributes.text(item, "biz_type")
    if not BIZ_TYPE.fullmatch(biz_type):
        raise Nonsense("biz_type")
    return biz_type


def _promise(item: Mapping[str, Any]) -> Promise | None:
    """An older release that takes a turn for a task leaves its place in the line as it was."""
    if _TURN in item:
        return attributes.parsed(item, _TURN, turn_from)
    return attributes.parsed(item, _PLACE_IN_LINE, place_from) if _PLACE_IN_LINE in item else None


def _parked(item: Mapping[str, Any]) -> bool:
    if "parked" not in item:
        return False
    return attributes.made(item, "parked", lambda: attributes.flag(item["parked"]["BOOL"]))


def _texts(item: Mapping[str, Any]) -> dict[str, str]:
    largest = {"payload": _PAYLOAD_BYTES_MAX}
    values = {
        name: attributes.text(item, attribute, largest.get(attribute, attributes.TEXT_BYTES_MAX))
        for attribute, name in _TEXTS.items()
        if attribute in item
    }
    if "payload" in values and not is_json(values["payload"]):
        raise Nonsense("payload")
    if "key" in values and not KEY.fullmatch(values["key"]):
        raise Nonsense("key")
    return values


def _numbers(item: Mapping[str, Any]) -> dict[str, int]:
    present = (name for name in _AT_TIMES if name in item)
    return {
        name: attributes.number(item, name, _LARGEST.get(name, attributes.INSTANT_MS_MAX))
        for name in (*_ALWAYS, *present)
    }


def _expires_after(item: Mapping[str, Any]) -> float | None:
    if "expires_after" not in item:
        return None
    return attributes.made(
        item,
        "expires_after",
        lambda: decimal(float(item["expires_after"]["N"]), DURATION_SECONDS_MAX),
    )


def _callback_from(row: dict[str, Any] | None) -> Callback | None:
    return None if row is None else callback_of_row(row)
