"""Why a task waits, as rows of its item: a limit, the order of its flow key, work that goes on, a
pause.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.json import Decoder, encode

from duewheel.rules.callbacks.completion import WITHIN_SECONDS_MAX
from duewheel.rules.tasks.task import (
    InLine,
    Paused,
    PostponedBy,
    Postponement,
    Reservation,
    Running,
    Task,
)
from duewheel.stores.item_attributes import InstantMs, Text
from duewheel.stores.tasks.attempt_codec import AttemptRow, attempt_row
from duewheel.stores.tasks.plan_codec import Version

_SCOPES_MAX = 2


class _PausedRow(Struct, array_like=True, frozen=True):
    """The fields of a Paused."""

    until_ms: InstantMs
    from_ms: InstantMs
    since_ms: InstantMs
    by: Text


class _RunningRow(Struct, array_like=True, frozen=True, kw_only=True):
    until_ms: InstantMs
    within_seconds: Annotated[int, Meta(ge=1, le=WITHIN_SECONDS_MAX)]
    call: AttemptRow
    scopes: Annotated[tuple[Text, ...], Meta(max_length=_SCOPES_MAX)] = ()
    note: Text | None = None


_place = Decoder(tuple[InstantMs, Version, Annotated[int, Meta(ge=0, le=1)]])
_waits_for = Decoder(tuple[PostponedBy, InstantMs])
_in_line = Decoder(tuple[InstantMs, InstantMs])
_paused = Decoder(_PausedRow)
_running = Decoder(_RunningRow)


def waiting_attributes(task: Task) -> dict[str, Any]:
    item: dict[str, Any] = {}
    if (reservation := task.reservation) is not None:
        is_late = int(reservation.is_late)
        item["line"] = _text((reservation.at_ms, reservation.version, is_late))
    if task.postponement is not None:
        item["waits_for"] = _text((task.postponement.by, task.postponement.until_ms))
    if task.in_line is not None:
        item["in_line"] = _text((task.in_line.until_ms, task.in_line.from_ms))
    if task.running is not None:
        item["running"] = {"S": running_text(task.running)}
    if (paused := task.paused) is not None:
        row = paused.until_ms, paused.from_ms, paused.since_ms, paused.by
        item["paused"] = _text(row)
    if task.parked:
        item["parked"] = {"BOOL": True}
    return item


def _text(row: tuple[Any, ...]) -> dict[str, str]:
    return {"S": encode(row).decode()}


def reservation_from(source: str) -> Reservation:
    at_ms, version, is_late = _place.decode(source)
    return Reservation(at_ms, version, is_late=is_late == 1)


def postponement_from(source: str) -> Postponement:
    return Postponement(*_waits_for.decode(source))


def in_line_from(source: str) -> InLine:
    return InLine(*_in_line.decode(source))


def paused_from(source: str) -> Paused:
    row = _paused.decode(source)
    return Paused(since_ms=row.since_ms, by=row.by, until_ms=row.until_ms, from_ms=row.from_ms)


def running_text(running: Running) -> str:
    row = _RunningRow(
        until_ms=running.until_ms,
        within_seconds=running.within_seconds,
        call=attempt_row(running.call),
        scopes=running.scopes,
        note=running.note,
    )
    return encode(row).decode()


def running_from(source: str) -> Running:
    row = _running.decode(source)
    return Running(
        call=row.call.attempt,
        until_ms=row.until_ms,
        within_seconds=row.within_seconds,
        scopes=row.scopes,
        note=row.note,
    )
