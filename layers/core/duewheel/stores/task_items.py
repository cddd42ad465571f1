"""A task as an item of the wheel, and back.

Nested values are kept as JSON text: one attribute, no type markers, small and quick.
The payload is kept as the source text the caller sent.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from duewheel.rules import addresses
from duewheel.rules.addresses import Address
from duewheel.rules.outcome import Verdict
from duewheel.rules.sweep_verdict import HomeState
from duewheel.rules.task import Attempt, Callback, RetryPolicy, Status, Task

ITEM_VERSION = "1"

# attribute: field, for what is stored as it is
_TEXTS = {
    "payload": "payload",
    "reason": "reason",
    "error": "last_error",
    "key": "key",
    "digest": "digest",
}
_NUMBERS = {
    "due_ms": "due_ms",
    "next_ms": "next_ms",
    "created_ms": "created_ms",
    "updated_ms": "updated_ms",
    "attempts": "attempts",
    "version": "version",
    "settled_ms": "settled_ms",
    "expires_at": "expires_at",
    "lateness_ms": "lateness_ms",
    "max_due_ms": "max_due_ms",
}


def key(address: Address, buckets: int) -> dict[str, Any]:
    return {"slot": {"S": address.slot(buckets)}, "place": {"S": address.place}}


def address_of(item: Mapping[str, Any]) -> Address:
    return addresses.address_from(addresses.shard_of(item["slot"]["S"]), item["place"]["S"])


def entry_named_by(item: Mapping[str, Any]) -> Address:
    """A home without `entry` names itself."""
    return addresses.address_named(item["entry"]["S"]) if "entry" in item else address_of(item)


def is_reentry(item: Mapping[str, Any]) -> bool:
    return "home" in item


def home_of_reentry(item: Mapping[str, Any]) -> Address:
    return addresses.address_named(item["home"]["S"])


def reentry_item(entry: Address, home: Address, buckets: int) -> dict[str, Any]:
    return {**key(entry, buckets), "v": {"N": ITEM_VERSION}, "home": {"S": home.name}}


def task_item(task: Task, buckets: int, *, listed: bool) -> dict[str, Any]:
    item = {
        **key(task.home, buckets),
        "v": {"N": ITEM_VERSION},
        "biz_type": {"S": task.biz_type},
        "status": {"S": task.status.value},
        "callback": {"S": _callback_text(task.callback)},
    }
    if listed:
        item["biz_part"] = {"S": addresses.partition_of_business(task.biz_type, task.home)}
    if not task.names_its_home:
        item["entry"] = {"S": task.entry.name}
    if task.redrives:
        item["redrives"] = {"N": str(task.redrives)}
        item["revivals"] = {"S": _compact(task.revivals)}
    if task.status is Status.DEAD:
        item["dead_biz"] = {"S": task.biz_type}
    if task.retry is not None:
        item["retry"] = {"S": _compact(asdict(task.retry))}
    if task.expires_after_seconds is not None:
        item["expires_after"] = {"N": repr(task.expires_after_seconds)}
    if task.history:
        item["history"] = {"S": _compact([_attempt_row(attempt) for attempt in task.history])}
    return item | _plain_attributes(task)


def _plain_attributes(task: Task) -> dict[str, Any]:
    item: dict[str, Any] = {}
    for attribute, name in _TEXTS.items():
        if (text := getattr(task, name)) is not None:
            item[attribute] = {"S": text}
    for attribute, name in _NUMBERS.items():
        if (number := getattr(task, name)) is not None:
            item[attribute] = {"N": str(number)}
    return item


def task_from(item: Mapping[str, Any]) -> Task:
    home = address_of(item)
    values: dict[str, Any] = {
        name: item[attribute]["S"] for attribute, name in _TEXTS.items() if attribute in item
    }
    values.update(
        (name, int(item[attribute]["N"]))
        for attribute, name in _NUMBERS.items()
        if attribute in item
    )
    return Task(
        home=home,
        entry=addresses.address_named(item["entry"]["S"]) if "entry" in item else home,
        biz_type=item["biz_type"]["S"],
        status=Status(item["status"]["S"]),
        callback=_callback_from(item["callback"]["S"]),
        retry=_retry_from(item["retry"]["S"]) if "retry" in item else None,
        expires_after_seconds=(
            float(item["expires_after"]["N"]) if "expires_after" in item else None
        ),
        redrives=int(item["redrives"]["N"]) if "redrives" in item else 0,
        revivals=_revivals_from(item),
        history=_history_from(item),
        **values,
    )


def home_state_from(item: Mapping[str, Any]) -> HomeState:
    return HomeState(
        home=address_of(item),
        entry=entry_named_by(item),
        status=Status(item["status"]["S"]),
        next_ms=int(item["next_ms"]["N"]),
        version=int(item["version"]["N"]),
        biz_type=item["biz_type"]["S"],
        lateness_ms=int(item["lateness_ms"]["N"]) if "lateness_ms" in item else None,
        failed_seconds=tuple(
            attempt.entry_second
            for attempt in _history_from(item)
            if attempt.outcome != Verdict.DELIVERED
        ),
        revivals=_revivals_from(item),
    )


def _callback_text(callback: Callback) -> str:
    row: dict[str, Any] = {"url": callback.url}
    if callback.method != "POST":
        row["method"] = callback.method
    if callback.headers:
        row["headers"] = callback.headers
    return _compact(row)


def _callback_from(text: str) -> Callback:
    row = json.loads(text)
    return Callback(
        row["url"],
        row.get("method", "POST"),
        tuple((name, value) for name, value in row.get("headers", ())),
    )


def _retry_from(text: str) -> RetryPolicy:
    row = json.loads(text)
    return RetryPolicy(**{**row, "delays_seconds": tuple(row["delays_seconds"])})


def _attempt_row(attempt: Attempt) -> list[Any]:
    return [
        attempt.at_ms,
        attempt.lateness_ms,
        attempt.duration_ms,
        attempt.outcome,
        attempt.at_ms // 1000 - attempt.entry_second,  # mostly 0, and short
        attempt.status_code,
        attempt.note,
    ]


def _attempt_from(row: list[Any]) -> Attempt:
    at_ms, lateness_ms, duration_ms, outcome, late_seconds, status_code, note = row
    entry_second = at_ms // 1000 - late_seconds
    return Attempt(at_ms, lateness_ms, duration_ms, outcome, entry_second, status_code, note)


def _history_from(item: Mapping[str, Any]) -> tuple[Attempt, ...]:
    if "history" not in item:
        return ()
    return tuple(map(_attempt_from, json.loads(item["history"]["S"])))


def _revivals_from(item: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    if "revivals" not in item:
        return ()
    return tuple((died, revived) for died, revived in json.loads(item["revivals"]["S"]))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
