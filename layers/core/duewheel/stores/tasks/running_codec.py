"""Work that goes on after a call, as a row of its task."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import Decoder, encode

from duewheel.rules.callbacks.completion import WITHIN_SECONDS_MAX
from duewheel.rules.tasks.task import Running
from duewheel.stores.item_attributes import InstantMs, Text
from duewheel.stores.tasks.attempt_codec import AttemptRow, attempt_row

_SCOPES_MAX = 2


class _Row(Struct, array_like=True, frozen=True, kw_only=True):
    until_ms: InstantMs
    within_seconds: Annotated[int, Meta(ge=1, le=WITHIN_SECONDS_MAX)]
    call: AttemptRow
    scopes: Annotated[tuple[Text, ...], Meta(max_length=_SCOPES_MAX)] = ()
    note: Text | None = None


_row = Decoder(_Row)


def running_text(running: Running) -> str:
    row = _Row(
        until_ms=running.until_ms,
        within_seconds=running.within_seconds,
        call=attempt_row(running.call),
        scopes=running.scopes,
        note=running.note,
    )
    return encode(row).decode()


def running_from(source: str) -> Running:
    row = _row.decode(source)
    return Running(
        call=row.call.attempt,
        until_ms=row.until_ms,
        within_seconds=row.within_seconds,
        scopes=row.scopes,
        note=row.note,
    )
