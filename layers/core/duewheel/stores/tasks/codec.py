"""A task as an item of the wheel, and back.

A nested value is a row of JSON text in one attribute, without type markers. The payload is the
source text that the caller sent. An item with a value that is never written here is unreadable as a
whole.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.json import Decoder, encode

from duewheel.rules.callbacks.outcome import Verdict
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.callbacks.url import called_at
from duewheel.rules.labels import NO_LABELS
from duewheel.rules.names import KEY, BizType, FlowKey, TaskKey
from duewheel.rules.priority import Priority
from duewheel.rules.sweep.verdict import HomeState, Reentry
from duewheel.rules.tasks.task import Occurrence, Status, Task
from duewheel.rules.tolerance import TOLERANCE_SECONDS_MAX
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.addresses import Address, Second
from duewheel.stores import item_attributes
from duewheel.stores.callbacks.codec import (
    COUNT_MAX,
    DURATION_SECONDS_MAX,
    callback_of_text,
    callback_text,
    on_outcome_of_text,
    on_outcome_text,
    retry_of_text,
    retry_text,
)
from duewheel.stores.item_attributes import (
    Flag,
    InstantMs,
    InvalidAttribute,
    N,
    S,
    Source,
    Text,
    decoded,
    labels_attribute,
    labels_of_text,
    reads_an_item,
)
from duewheel.stores.tasks import plan_codec
from duewheel.stores.tasks.attempt_codec import (
    answer_from,
    answer_texts,
    history_from,
    history_text,
)
from duewheel.stores.tasks.plan_codec import TimerId, Version, plan_from, timer_attributes
from duewheel.stores.tasks.revival_codec import revivals_from, revivals_text
from duewheel.stores.tasks.waiting_codec import (
    in_line_from,
    paused_from,
    postponement_from,
    reservation_from,
    running_from,
    waiting_attributes,
)

TOMBSTONE_SECONDS = 7 * 86_400  # far longer than any create is under way
_ITEM_BYTES_MAX = 400 * 1024
# Twice what a create takes. An item of 400 KB could not be settled, nor those written with it.
_PAYLOAD_BYTES_MAX = 131_072
# It may have a size of each second that may be planned ahead, such as `1,172799,1024,`.
_PLAN_BYTES_MAX = 131_072

History = Annotated[str, Meta(max_length=_ITEM_BYTES_MAX)]
_Tolerance = Annotated[int, Meta(ge=0, le=TOLERANCE_SECONDS_MAX)]


class HomeRow(Struct, kw_only=True):
    """The attributes of a task that the sweep reads. It sweeps one with a damaged key or plan as
    any other."""

    biz_type: S[BizType]
    status: S[Status]
    next_ms: N[InstantMs]
    version: N[Version]
    lateness_ms: N[InstantMs] | None = None
    history: S[History] | None = None
    revivals: S[Source] | None = None
    redrives: N[Version] | None = None
    parked: Flag | None = None
    first_second: N[Second] | None = None
    expires_at: N[Second] | None = None
    key: Any = None
    plan: Any = None


class TaskRow(HomeRow, kw_only=True):
    callback: S[Source]
    due_ms: N[InstantMs]
    created_ms: N[InstantMs]
    updated_ms: N[InstantMs]
    attempts: N[Annotated[int, Meta(ge=0, le=COUNT_MAX)]]
    payload: S[Annotated[str, Meta(max_length=_PAYLOAD_BYTES_MAX)]] | None = None
    retry: S[Source] | None = None
    expires_after: N[Annotated[float, Meta(ge=0, le=DURATION_SECONDS_MAX)]] | None = None
    reason: S[Text] | None = None
    settled_ms: N[InstantMs] | None = None
    error: S[Text] | None = None
    key: S[TaskKey] | None = None
    digest: S[Text] | None = None
    max_due_ms: N[InstantMs] | None = None
    line: S[Source] | None = None
    tolerance: S[Source] | None = None
    waits_for: S[Source] | None = None
    notice_of: S[Text] | None = None
    notice_id: S[Text] | None = None
    on_outcome: S[Source] | None = None
    flow_key: S[FlowKey] | None = None
    parked_key: S[FlowKey] | None = None
    ordered_ms: N[InstantMs] | None = None
    in_line: S[Source] | None = None
    timer: S[TimerId] | None = None
    occurrence: S[Source] | None = None
    plan: S[Annotated[str, Meta(max_length=_PLAN_BYTES_MAX)]] | None = None
    priority: S[Priority] | None = None
    labels: S[Source] | None = None
    answer: S[Source] | None = None
    answer_body: S[Text] | None = None
    running: S[Source] | None = None
    paused: S[Source] | None = None
    result: S[Text] | None = None
    changed_by: S[Text] | None = None
    marks: S[Text] | None = None


_tolerance = Decoder(tuple[_Tolerance | None, InstantMs | None])


def compact(value: Any) -> str:
    return encode(value).decode()


def _occurrence_of(row: TaskRow) -> Occurrence | None:
    if row.timer is None and row.occurrence is None:
        return None
    timer_id = None if row.timer is None else row.timer.S
    found = decoded("occurrence", row.occurrence, partial(plan_codec.occurrence_from, timer_id))
    if found is None:
        raise InvalidAttribute("occurrence")
    return found


# attribute: field, for texts that are stored as they are
_TEXTS = {
    "payload": "payload",
    "reason": "reason",
    "error": "last_error",
    "key": "key",
    "digest": "digest",
    "notice_of": "notice_of",
    "notice_id": "notice_id",
    "flow_key": "flow_key",
    "result": "result",
    "parked_key": "parked_key",
    "changed_by": "changed_by",
    "marks": "marks",
}
# attributes that are fields
_ALWAYS = ("due_ms", "next_ms", "created_ms", "updated_ms", "attempts", "version")
_AT_TIMES = ("settled_ms", "expires_at", "lateness_ms", "max_due_ms", "first_second")


def key(address: Address, buckets: int) -> dict[str, Any]:
    return {"slot": {"S": address.slot(buckets)}, "place": {"S": address.place}}


def address_of(item: Mapping[str, Any]) -> Address:
    slot, place = item["slot"]["S"], item["place"]["S"]
    try:
        return addresses.address_from(addresses.shard_of(slot), place)
    except ValueError as error:
        raise item_attributes.unreadable(item, "place") from error


def address_of_entry(item: Mapping[str, Any]) -> Address:
    """The address of an entry; raises unless all of the item is readable."""
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
    return _entry_named_by(item, address_of(item))


def _entry_named_by(item: Mapping[str, Any], home: Address) -> Address:
    """A home without `entry` names itself; it never does so by its name."""
    if "home" in item:
        raise InvalidAttribute("home")
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
        "home": {"S": home.name},
        "written_ms": {"N": str(now_ms)},
    }


def tombstone_item(home: Address, buckets: int, now_ms: int) -> dict[str, Any]:
    """Keeps a task from being put at this home. It is a re-entry of a task that is not there, and
    was not for long: every reader passes it, and the sweep deletes it with its second."""
    return {
        **reentry_item(home, home, buckets, 0),
        "expires_at": {"N": str(now_ms // 1000 + TOMBSTONE_SECONDS)},
    }


@reads_an_item
def reentry_from(item: Mapping[str, Any]) -> Reentry:
    return Reentry(_named(item, "home"), item_attributes.number(item, "written_ms"))


def task_item(task: Task, buckets: int, *, listed: bool) -> dict[str, Any]:
    item = {
        **key(task.home, buckets),
        "biz_type": {"S": task.biz_type},
        "status": {"S": task.status.value},
        "callback": {"S": callback_text(task.callback)},
    }
    if listed and task.plan is None:
        item["biz_part"] = {"S": addresses.partition_of_business(task.biz_type, task.home)}
    if not task.names_its_home:
        item["entry"] = {"S": task.entry.name}
    if task.redrives:
        item["redrives"] = {"N": str(task.redrives)}
        item["revivals"] = {"S": revivals_text(task.revivals)}
    if task.status is Status.DEAD:
        item["dead_biz"] = {"S": addresses.partition_of_business(task.biz_type, task.home)}
    if task.retry is not None:
        item["retry"] = {"S": retry_text(task.retry)}
    if task.priority is not None:
        item["priority"] = {"S": task.priority}
    if task.history:
        item["history"] = {"S": history_text(task.history, _own_host(task))}
    if task.answer is not None:
        item |= {name: {"S": text} for name, text in answer_texts(task.answer).items()}
    return (
        item
        | _plain_attributes(task)
        | _of_a_timer(task)
        | waiting_attributes(task)
        | _lateness_allowed(task)
        | _in_order(task)
        | _told(task)
    )


def _own_host(task: Task) -> str | None:
    """A run is called by the callback of its timer, with which its record is not written."""
    return None if task.occurrence is not None else called_at(task.callback)


def _lateness_allowed(task: Task) -> dict[str, Any]:
    item: dict[str, Any] = {}
    if task.expires_after_seconds is not None:
        item["expires_after"] = {"N": repr(task.expires_after_seconds)}
    row = task.tolerance_seconds, task.requested_ms
    if row != (None, None):
        item["tolerance"] = {"S": compact(row)}
    return item


def _told(task: Task) -> dict[str, Any]:
    item: dict[str, Any] = {}
    if task.on_outcome is not None:
        item["on_outcome"] = {"S": on_outcome_text(task.on_outcome)}
    return item


def _in_order(task: Task) -> dict[str, Any]:
    return {} if task.ordered_ms is None else {"ordered_ms": {"N": str(task.ordered_ms)}}


def _of_a_timer(task: Task) -> dict[str, Any]:
    return {} if task.occurrence is None and task.plan is None else timer_attributes(task)


def _plain_attributes(task: Task) -> dict[str, Any]:
    item: dict[str, Any] = labels_attribute(task.labels) if task.labels else {}
    for attribute, name in _TEXTS.items():
        if (text := getattr(task, name)) is not None:
            item[attribute] = {"S": text}
    for name in (*_ALWAYS, *_AT_TIMES):
        if (number := getattr(task, name)) is not None:
            item[name] = {"N": str(number)}
    return item


@reads_an_item
def task_from(item: Mapping[str, Any]) -> Task:
    row, home = item_attributes.attributes(item, TaskRow), address_of(item)
    if row.payload is not None and not item_attributes.is_json(row.payload.S):
        raise InvalidAttribute("payload")
    tolerance = decoded("tolerance", row.tolerance, _tolerance.decode)
    tolerance_seconds, requested_ms = tolerance or (None, None)
    callback = _callback_of(row)
    own_host = None if row.history is None or row.timer is not None else called_at(callback)
    return Task(
        home=home,
        entry=_entry_named_by(item, home),
        biz_type=row.biz_type.S,
        status=row.status.S,
        callback=callback,
        retry=decoded("retry", row.retry, retry_of_text),
        expires_after_seconds=row.expires_after and row.expires_after.N,
        tolerance_seconds=tolerance_seconds,
        requested_ms=requested_ms,
        redrives=row.redrives.N if row.redrives else 0,
        revivals=decoded("revivals", row.revivals, revivals_from) or (),
        history=decoded("history", row.history, partial(history_from, own_host=own_host)) or (),
        reservation=decoded("line", row.line, reservation_from),
        postponement=decoded("waits_for", row.waits_for, postponement_from),
        ordered_ms=row.ordered_ms and row.ordered_ms.N,
        in_line=decoded("in_line", row.in_line, in_line_from),
        running=decoded("running", row.running, running_from),
        paused=decoded("paused", row.paused, paused_from),
        parked=row.parked is not None and row.parked.BOOL,
        occurrence=_occurrence_of(row),
        plan=decoded("plan", row.plan, plan_from),
        priority=row.priority and row.priority.S,
        labels=decoded("labels", row.labels, labels_of_text) or NO_LABELS,
        answer=decoded("answer", row.answer, partial(answer_from, row.answer_body)),
        on_outcome=decoded("on_outcome", row.on_outcome, on_outcome_of_text),
        **_plain_fields(row),
    )


def _plain_fields(row: TaskRow) -> dict[str, Any]:
    texts = {name: getattr(row, attribute) for attribute, name in _TEXTS.items()}
    fields = {name: value.S for name, value in texts.items() if value is not None}
    numbers = {name: getattr(row, name) for name in (*_ALWAYS, *_AT_TIMES)}
    return fields | {name: value.N for name, value in numbers.items() if value is not None}


@reads_an_item
def home_state_from(item: Mapping[str, Any]) -> HomeState:
    row, home = item_attributes.attributes(item, HomeRow), address_of(item)
    history = decoded("history", row.history, history_from) or ()
    failed = (attempt for attempt in history if attempt.outcome != Verdict.DELIVERED)
    return HomeState(
        home=home,
        entry=_entry_named_by(item, home),
        status=row.status.S,
        next_ms=row.next_ms.N,
        version=row.version.N,
        biz_type=row.biz_type.S,
        lateness_ms=row.lateness_ms and row.lateness_ms.N,
        failed_seconds=tuple(attempt.entry_second for attempt in failed),
        revivals=decoded("revivals", row.revivals, revivals_from) or (),
        parked=row.parked is not None and row.parked.BOOL,
        first_second=row.first_second and row.first_second.N,
        is_plan=row.plan is not None,
        key=_readable_key(item),
        redrives=row.redrives.N if row.redrives else 0,
        expires_at=row.expires_at and row.expires_at.N,
    )


def _readable_key(item: Mapping[str, Any]) -> str | None:
    """A task with a damaged key is swept as any other."""
    key = item.get("key", {}).get("S", "")
    return key if KEY.fullmatch(key) else None


def _named(item: Mapping[str, Any], name: str) -> Address:
    return item_attributes.built(
        item, name, lambda: addresses.address_named(item_attributes.text(item, name))
    )


def _callback_of(row: TaskRow) -> Callback | None:
    """`null` if it is that of its business."""
    return None if row.callback.S == "null" else decoded("callback", row.callback, callback_of_text)
