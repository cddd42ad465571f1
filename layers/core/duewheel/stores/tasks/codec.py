"""A task as an item of the wheel, and back.

Nested values are rows of JSON text: one attribute, no type markers, small and quick. The payload is
the source text that the caller sent. An item with a value that is never written here is unreadable
as a whole.
"""

import json
from collections.abc import Mapping
from typing import Any

from duewheel.rules.callbacks.aws.registry import target_of
from duewheel.rules.callbacks.outcome import Verdict
from duewheel.rules.callbacks.types import AwsCallback, Callback
from duewheel.rules.names import BIZ_TYPE, KEY, TIMER_ID
from duewheel.rules.sweep.verdict import HomeState, Reentry
from duewheel.rules.tasks.lifecycle import HISTORY_MAX
from duewheel.rules.tasks.task import (
    UNSIZED,
    Attempt,
    Occurrence,
    Plan,
    Reservation,
    Sizes,
    Status,
    Task,
)
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.addresses import SECOND_MAX, SHARDS_MAX, Address
from duewheel.stores import item_attributes
from duewheel.stores.callbacks.codec import (
    COUNT_MAX,
    DURATION_SECONDS_MAX,
    callback_of_row,
    callback_row,
    retry_of_row,
    retry_row,
)
from duewheel.stores.item_attributes import (
    USUAL_VERSION,
    InvalidAttribute,
    decimal,
    integer,
    reads_an_item,
    string,
)

VERSION_MAX = 10**15
_ITEM_BYTES_MAX = 400 * 1024
_ROWS_MAX = 100


def attempt_row(attempt: Attempt) -> list[Any]:
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
    return Attempt(
        at_ms=integer(at_ms),
        lateness_ms=integer(lateness_ms),
        # Of a clock that was set back while it was measured.
        duration_ms=integer(duration_ms, smallest=-item_attributes.INSTANT_MS_MAX),
        outcome=string(outcome)[: item_attributes.TEXT_BYTES_MAX],
        entry_second=integer(
            at_ms // 1000 - integer(late_seconds, smallest=-SECOND_MAX), SECOND_MAX
        ),
        status_code=None if status_code is None else integer(status_code),
        note=string(note)[: item_attributes.TEXT_BYTES_MAX],
    )


def history_of(item: Mapping[str, Any]) -> tuple[Attempt, ...]:
    """The history of a task; of one that was edited to be longer, the part that is kept."""

    if "history" not in item:
        return ()
    rows = item_attributes.parsed(item, "history", list, _ITEM_BYTES_MAX)[-HISTORY_MAX:]
    return item_attributes.built(item, "history", lambda: tuple(map(_attempt_from, rows)))


def revivals_of(item: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    def build(rows: list[Any]) -> tuple[tuple[int, int], ...]:
        pairs = tuple((integer(died, SECOND_MAX), integer(back, SECOND_MAX)) for died, back in rows)
        if len(pairs) > _ROWS_MAX:
            raise ValueError("too many")
        return pairs

    return item_attributes.parsed(item, "revivals", build) if "revivals" in item else ()


def promise_row(reservation: Reservation) -> list[Any]:
    row: list[Any] = [reservation.at_ms, reservation.version]
    return row if reservation.is_turn else [*row, int(reservation.is_late)]


def turn_from(row: list[Any]) -> Reservation:
    """A reservation as older releases write it: always a turn."""
    at_ms, version = row
    return Reservation(integer(at_ms), integer(version, VERSION_MAX), is_turn=True)


def place_from(row: list[Any]) -> Reservation:
    at_ms, version, is_late = row
    return Reservation(
        integer(at_ms), integer(version, VERSION_MAX), is_late=integer(is_late, 1) == 1
    )


def occurrence_row(occurrence: Occurrence) -> list[Any]:
    """The timer's id has an attribute of its own, for the index."""
    row: list[Any] = [occurrence.second, occurrence.number]
    return [*row, True] if occurrence.manual else row


def occurrence_of(item: Mapping[str, Any]) -> Occurrence | None:
    if "timer" not in item and "occurrence" not in item:
        return None
    timer_id = item_attributes.built(
        item, "timer", lambda: _timer_id(item_attributes.text(item, "timer"))
    )

    def build(row: list[Any]) -> Occurrence:
        second, number, *manual = row
        is_manual = bool(manual) and item_attributes.flag(*manual)
        return Occurrence(
            timer_id, integer(second, SECOND_MAX), integer(number, VERSION_MAX), is_manual
        )

    return item_attributes.parsed(item, "occurrence", build)


def plan_row(plan: Plan) -> list[Any]:
    row: list[Any] = [plan.timer_id, plan.planned_until_second, plan.numbered]
    return [*row, *sizes_row(plan.sizes)] if plan.sizes.until_second else row


def plan_from(row: list[Any]) -> Plan:
    timer_id, until, numbered, *sizes = row
    return Plan(
        _timer_id(timer_id),
        integer(until, SECOND_MAX),
        integer(numbered, VERSION_MAX),
        sizes_from(sizes) if sizes else UNSIZED,
    )


def sizes_row(sizes: Sizes) -> list[Any]:
    """The seconds by their distance to the one before, each followed by its shard count."""
    row, before = [sizes.until_second], 0
    for second, shards in sorted(sizes.shards.items()):
        row += [second - before, shards]
        before = second
    return row


def sizes_from(row: list[Any]) -> Sizes:
    until, *pairs = row
    shards: dict[int, int] = {}
    second = 0
    for ahead, count in zip(pairs[::2], pairs[1::2], strict=True):
        second = integer(second + integer(ahead, SECOND_MAX), SECOND_MAX)
        shards[second] = integer(count, SHARDS_MAX, smallest=1)
    return Sizes(integer(until, SECOND_MAX), shards)


def _timer_id(value: Any) -> str:
    if not TIMER_ID.fullmatch(string(value)):
        raise ValueError("no timer id")
    return str(value)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


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
        raise item_attributes.unreadable(item, "place") from error


def address_of_entry(item: Mapping[str, Any]) -> Address:
    """The address of an entry all of which is readable."""
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
        raise InvalidAttribute("home")
    home = address_of(item)
    entry = _named(item, "entry") if "entry" in item else home
    if entry == home and "entry" in item:
        raise InvalidAttribute("entry")
    return entry


@reads_an_item
def status_of(item: Mapping[str, Any]) -> Status:
    return item_attributes.built(
        item, "status", lambda: Status(item_attributes.text(item, "status"))
    )


def reentry_item(entry: Address, home: Address, buckets: int, now_ms: int) -> dict[str, Any]:
    """`written_ms` shows later whether the home may have been deleted by TTL."""
    return {
        **key(entry, buckets),
        "v": {"N": str(USUAL_VERSION)},
        "home": {"S": home.name},
        "written_ms": {"N": str(now_ms)},
    }


@reads_an_item
def reentry_from(item: Mapping[str, Any]) -> Reentry:
    written_ms = item_attributes.number(item, "written_ms") if "written_ms" in item else None
    return Reentry(_named(item, "home"), written_ms)


def task_item(task: Task, buckets: int, *, listed: bool) -> dict[str, Any]:
    item = {
        **key(task.home, buckets),
        "v": {"N": str(_version(task))},
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
    if task.reservation is not None:
        name = _TURN if task.reservation.is_turn else _PLACE_IN_LINE
        item[name] = {"S": compact(promise_row(task.reservation))}
    if task.parked:
        item["parked"] = {"BOOL": True}
    if task.history:
        item["history"] = {"S": compact([attempt_row(attempt) for attempt in task.history])}
    return item | _plain_attributes(task) | _of_a_timer(task)


def _version(task: Task) -> int:
    """A release that does not know the type of a callback must not take the task for damage."""
    if isinstance(task.callback, AwsCallback):
        return target_of(task.callback).item_version
    return USUAL_VERSION


def _of_a_timer(task: Task) -> dict[str, Any]:
    """A chain is in no index."""
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
        callback=item_attributes.parsed(item, "callback", _callback_from),
        retry=item_attributes.parsed(item, "retry", retry_of_row) if "retry" in item else None,
        expires_after_seconds=_expires_after(item),
        redrives=_redrives(item),
        revivals=revivals_of(item),
        history=history_of(item),
        reservation=_promise(item),
        parked=_parked(item),
        occurrence=occurrence_of(item),
        plan=item_attributes.parsed(item, "plan", plan_from) if "plan" in item else None,
        **plain,
    )


@reads_an_item
def home_state_from(item: Mapping[str, Any]) -> HomeState:
    return HomeState(
        home=address_of(item),
        entry=entry_named_by(item),
        status=status_of(item),
        next_ms=item_attributes.number(item, "next_ms"),
        version=item_attributes.number(item, "version", VERSION_MAX),
        biz_type=_biz_type(item),
        lateness_ms=item_attributes.number(item, "lateness_ms") if "lateness_ms" in item else None,
        failed_seconds=tuple(
            attempt.entry_second
            for attempt in history_of(item)
            if attempt.outcome != Verdict.DELIVERED
        ),
        revivals=revivals_of(item),
        parked=_parked(item),
        first_second=(
            item_attributes.number(item, "first_second", SECOND_MAX)
            if "first_second" in item
            else None
        ),
        is_plan="plan" in item,
        key=_readable_key(item),
        redrives=_redrives(item),
        expires_at=(
            item_attributes.number(item, "expires_at", SECOND_MAX) if "expires_at" in item else None
        ),
    )


def _redrives(item: Mapping[str, Any]) -> int:
    return item_attributes.number(item, "redrives", VERSION_MAX) if "redrives" in item else 0


def _readable_key(item: Mapping[str, Any]) -> str | None:
    """A task with a damaged key is swept as any other."""
    key = item.get("key", {}).get("S", "")
    return key if KEY.fullmatch(key) else None


def _named(item: Mapping[str, Any], name: str) -> Address:
    return item_attributes.built(
        item, name, lambda: addresses.address_named(item_attributes.text(item, name))
    )


def _biz_type(item: Mapping[str, Any]) -> str:
    biz_type = item_attributes.text(item, "biz_type")
    if not BIZ_TYPE.fullmatch(biz_type):
        raise InvalidAttribute("biz_type")
    return biz_type


def _promise(item: Mapping[str, Any]) -> Reservation | None:
    """An older release that takes a turn for a task leaves its place in the line as it was."""
    if _TURN in item:
        return item_attributes.parsed(item, _TURN, turn_from)
    return (
        item_attributes.parsed(item, _PLACE_IN_LINE, place_from) if _PLACE_IN_LINE in item else None
    )


def _parked(item: Mapping[str, Any]) -> bool:
    if "parked" not in item:
        return False
    return item_attributes.built(
        item, "parked", lambda: item_attributes.flag(item["parked"]["BOOL"])
    )


def _texts(item: Mapping[str, Any]) -> dict[str, str]:
    largest = {"payload": _PAYLOAD_BYTES_MAX}
    values = {
        name: item_attributes.text(
            item, attribute, largest.get(attribute, item_attributes.TEXT_BYTES_MAX)
        )
        for attribute, name in _TEXTS.items()
        if attribute in item
    }
    if "payload" in values and not item_attributes.is_json(values["payload"]):
        raise InvalidAttribute("payload")
    if "key" in values and not KEY.fullmatch(values["key"]):
        raise InvalidAttribute("key")
    return values


def _numbers(item: Mapping[str, Any]) -> dict[str, int]:
    present = (name for name in _AT_TIMES if name in item)
    return {
        name: item_attributes.number(item, name, _LARGEST.get(name, item_attributes.INSTANT_MS_MAX))
        for name in (*_ALWAYS, *present)
    }


def _expires_after(item: Mapping[str, Any]) -> float | None:
    if "expires_after" not in item:
        return None
    return item_attributes.built(
        item,
        "expires_after",
        lambda: decimal(float(item["expires_after"]["N"]), DURATION_SECONDS_MAX),
    )


def _callback_from(row: dict[str, Any] | None) -> Callback | None:
    return None if row is None else callback_of_row(row)
